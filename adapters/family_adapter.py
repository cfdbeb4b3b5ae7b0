"""What the adapters of all families share: composing, counting, and the bounds that selection reckons with. A family says only where what stands."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adapters.base import RenderRequest, RenderResult, Toolbox
from adapters.compose import CLOSING, POLICY, SEPARATOR_TOKENS, Composed, compose, longest_frame
from adapters.counting.rules import text_rule
from adapters.counting.weights import UNUSUAL_ERROR, distinct_words, relative_error, weigh
from adapters.fence import well_formed
from adapters.headers import header_of_candidate
from adapters.pairs import NativePair, call_texts
from adapters.passages import Passage, joined, whole
from adapters.profile import Profile
from adapters.tokenizers import Counter, Tally
from graph.model.answer import CountMethod, Rendered, TokenCount, TokenParts
from graph.model.candidates import Candidate
from graph.model.units import ContextUnit, Kind

_JOINTS = 2
"""Tokens that cutting the frame into its parts may save or cost: one where the heading joins the policy, one where a unit joins the fence."""

BETWEEN_TEXTS = "\n\n"


@dataclass(frozen=True, slots=True)
class Said:
    """A payload, its texts for counting, the tokens that stand around them, and by how many these may be off."""

    payload: dict[str, Any]
    passages: Sequence[Passage]
    frame: int
    uncertain: int = 0


@dataclass(frozen=True, slots=True)
class TextCount:
    """Tokens of all texts of a payload, their bounds, how they were found and by which tokenizer."""

    value: int
    low: int
    high: int
    method: CountMethod
    tokenizer: str


@dataclass(frozen=True, slots=True)
class FamilyAdapter(ABC):
    """The adapter of one profile."""

    profile: Profile
    tools: Toolbox
    api: ClassVar[str]

    @abstractmethod
    def say(self, model: str, composed: Composed) -> Said:
        """The vendor's request for what was composed. Pure; ``model`` is the id as the vendor knows it."""

    @property
    def counter(self) -> Counter:
        """Counts tokens of the profile's encoding."""
        return self.tools.tokenizers.for_name(self.profile.tokenizer.encoding)

    def base_tokens(self, question: str | None) -> int:
        said = self.say("", longest_frame(question))
        count = self.counter.count
        return said.frame + math.ceil((sum(count(passage.text) for passage in said.passages) + _JOINTS) * self.profile.tokenizer.factor)

    def unit_tokens(self, candidate: Candidate, native: ContextUnit | None = None) -> int:
        rule = self.profile.tokenizer
        count = self.counter.count
        header = count(header_of_candidate(candidate))
        tokens = math.ceil((header + candidate.content_tokens * rule.content_factor + SEPARATOR_TOKENS) * rule.factor)
        # A result has the same header and body in both forms; what is more is its call's.
        if (
            native is not None
            and native.kind is not Kind.TOOL_RESULT
            and native.metadata.tool is not None
            and self.profile.pairs is not None
        ):
            texts = sum(count(text) + SEPARATOR_TOKENS for text in call_texts(native, self.profile.pairs))
            tokens = max(tokens, math.ceil(texts * rule.factor) + self.profile.pairs.tokens)
        return tokens

    def render(self, request: RenderRequest) -> RenderResult:
        composed = compose(request, self.profile, self.tools.fence_key)
        said = self.say(self.model_id(request.model), composed)
        refused = [f"This model refuses {', '.join(self.profile.refuses)}; leave that out."] if self.profile.refuses else []
        rendered = Rendered(
            api=self.api,
            model=well_formed(request.model),
            payload=said.payload,
            order=composed.order,
            tool_names={pair.name: well_formed(pair.recorded_name) for pair in composed.pairs if pair.name != pair.recorded_name},
            notes=[*self.tools.notes, *composed.notes, *refused],
        )
        return RenderResult(rendered, self._count(said, composed))

    def model_id(self, model: str) -> str:
        """The model's id for the vendor: without the words by which callers choose a family or an API here."""
        rest = well_formed(model).strip()
        for prefix in self.tools.prefixes:
            found = re.search(rf"(?:^|/){re.escape(prefix)}", rest, re.IGNORECASE | re.ASCII)
            if found is not None:
                rest = rest[found.end() :]
        return rest

    def instructions(self, composed: Composed) -> Passage:
        """Policy and constraints as one text."""
        policy = Passage(POLICY)
        return policy if composed.constraints is None else joined([policy, composed.constraints], BETWEEN_TEXTS)

    def evidence(self, composed: Composed) -> Passage:
        """The fenced evidence as one text, with the closing words where a model wants its instructions at both ends."""
        evidence = joined(composed.evidence, "")
        return joined([evidence, Passage(CLOSING)], BETWEEN_TEXTS) if self.closes else evidence

    @property
    def closes(self) -> bool:
        """Whether the model wants its instructions at both ends."""
        return self.profile.attention.instructions_at_both_ends

    def pair_passages(self, pairs: Sequence[NativePair]) -> list[Passage]:
        """The texts of native pairs, for counting."""
        rules = self.profile.pairs
        before = rules.result_names if rules is not None else None
        named = [Passage(before.format(name=pair.name)) for pair in pairs] if before is not None else []
        return [*(text for pair in pairs for text in (pair.text, Passage(pair.name), whole(pair.arguments_text), pair.output)), *named]

    def pair_frame(self, pairs: Sequence[NativePair]) -> tuple[int, int]:
        """Tokens around the texts of native pairs, and by how many these may be off."""
        rules = self.profile.pairs
        return (0, 0) if rules is None else (rules.tokens * len(pairs), rules.uncertain * len(pairs))

    def count_texts(self, passages: Sequence[Passage], tallies: Sequence[Tally], tallied: TextCount) -> TextCount:
        """``tallied`` as it is, or by the rule that counts whole requests for these models, where the profile names one."""
        if self.profile.tokenizer.count_as is None or self.counter.method is CountMethod.ESTIMATE:
            return tallied
        rule = text_rule(self.profile.tokenizer.count_as)
        weighed = [weigh(rule, tally.total, passage.text) for passage, tally in zip(passages, tallies, strict=True) if passage.text]
        value = sum(each.value for each in weighed)
        error = relative_error(rule, value, distinct_words((passage.text for passage in passages), rule))
        if not all(each.usual for each in weighed):
            error = max(error, UNUSUAL_ERROR)
        told = f"{self.counter.name}, weighted"
        return TextCount(math.ceil(value), math.floor(value * (1 - error)), math.ceil(value * (1 + error)), CountMethod.CALIBRATED, told)

    def _count(self, said: Said, composed: Composed) -> TokenCount:
        rule = self.profile.tokenizer
        counter = self.counter
        units = len(composed.order)
        tallies = [counter.tally(passage.text, passage.spans) for passage in said.passages]
        total = sum(tally.total for tally in tallies)
        within = sum(tally.within for tally in tallies)
        error = rule.error(units)
        frame_uncertain = said.uncertain + self.profile.framing.uncertain
        own_tokenizer = rule.factor == 1 and rule.error_one == 0
        floor = (
            CountMethod.ESTIMATE
            if rule.estimate
            else CountMethod.EXACT
            if own_tokenizer and not frame_uncertain
            else CountMethod.CALIBRATED
        )
        counted = self.count_texts(
            said.passages,
            tallies,
            TextCount(
                value=math.ceil(total * rule.factor),
                low=math.floor(math.floor(sum(tally.low for tally in tallies) * rule.factor) * (1 - error)),
                high=math.ceil(math.ceil(sum(tally.high for tally in tallies) * rule.factor) * (1 + error)),
                method=max(counter.method, floor, key=lambda each: each.rank),
                tokenizer=counter.name if rule.factor == 1 else f"{counter.name} x {rule.factor:g}",
            ),
        )
        value = said.frame + counted.value
        content = counted.value * within // total if total else 0
        return TokenCount(
            value=value,
            method=counted.method,
            low=max(counted.low + said.frame - frame_uncertain, 0),
            high=counted.high + said.frame + frame_uncertain,
            tokenizer=counted.tokenizer,
            parts=TokenParts(content=content, framing=value - content),
        )
