"""Claude through Messages: policy and constraints as system blocks, evidence and then the question as blocks of one user turn.

The policy is a block of its own, so that the start of every request is the same bytes; the evidence is one block, since its order changes
with what was chosen and blocks of their own would cost tokens and keep no prefix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.base import RenderRequest, RenderResult, Toolbox
from adapters.compose import CLOSING, POLICY, SEPARATOR_TOKENS, Passage, compose, frame_texts, header_of_candidate
from adapters.fence import well_formed
from adapters.profile import Profile
from adapters.tokenizers import Counter
from graph.model.answer import CountMethod, Rendered, TokenCount, TokenParts
from graph.model.candidates import Candidate

API = "anthropic.messages"

MAX_TOKENS = 1024
"""Messages requires a limit of the answer; callers who merge the payload into their own request set theirs."""

CTOK_MOST_CHARACTERS = 8_000
"""Longer requests are counted by the calibrated factor: ctok takes about 10 ms per 1,000 characters, out of a deadline of 500 ms."""


@dataclass(frozen=True, slots=True)
class ClaudeMessages:
    """The adapter of one Claude profile."""

    profile: Profile
    tools: Toolbox

    @property
    def _counter(self) -> Counter:
        return self.tools.tokenizers.for_name(self.profile.tokenizer.encoding)

    def base_tokens(self, question: str | None) -> int:
        texts = [text for text in (*frame_texts(question), self._closing) if text is not None]
        return self._frame + math.ceil(sum(self._counter.count(text) for text in texts) * self.profile.tokenizer.factor)

    def unit_tokens(self, candidate: Candidate) -> int:
        rule = self.profile.tokenizer
        header = self._counter.count(header_of_candidate(candidate))
        return math.ceil((header + candidate.content_tokens * rule.content_factor + SEPARATOR_TOKENS) * rule.factor)

    def render(self, request: RenderRequest) -> RenderResult:
        composed = compose(request, self.profile, self.tools.fence_key)
        system = [Passage(POLICY)]
        if composed.constraints is not None:
            system.append(composed.constraints)
        user = [composed.evidence]
        user += [Passage(text) for text in (self._closing, composed.question) if text is not None]
        model = well_formed(request.model)
        payload = {
            "model": model,
            "max_tokens": MAX_TOKENS,
            "system": [_block(passage) for passage in system],
            "messages": [{"role": "user", "content": [_block(passage) for passage in user]}],
        }
        rendered = Rendered(api=API, model=model, payload=payload, order=composed.order, notes=[*self.tools.notes, *composed.notes])
        return RenderResult(rendered, self._count([*system, *user], len(composed.order)))

    @property
    def _closing(self) -> str | None:
        return CLOSING if self.profile.attention.instructions_at_both_ends else None

    @property
    def _frame(self) -> int:
        return self.profile.framing.request + self.profile.framing.system

    def _count(self, passages: Sequence[Passage], units: int) -> TokenCount:
        """Tokens of all texts, by ctok where it is installed and quick enough, else from o200k_base; then the frame."""
        rule = self.profile.tokenizer
        uncertain = self.profile.framing.uncertain
        counter = self._counter
        tallies = [counter.tally(passage.text, passage.spans) for passage in passages]
        total = sum(tally.total for tally in tallies)
        within = sum(tally.within for tally in tallies)
        by_ctok = self._ctok_tokens(passages)
        if by_ctok is not None:
            error, method, tokenizer = rule.ctok_error, CountMethod.CALIBRATED, f"ctok {rule.ctok}"
            text, low, high = by_ctok, by_ctok, by_ctok
        else:
            error, tokenizer = rule.error(units), f"{counter.name} x {rule.factor:g}"
            method = max(counter.method, CountMethod.CALIBRATED, key=lambda each: each.rank)
            text = math.ceil(total * rule.factor)
            low = math.floor(sum(tally.low for tally in tallies) * rule.factor)
            high = math.ceil(sum(tally.high for tally in tallies) * rule.factor)
        value = self._frame + text
        content = text * within // total if total else 0
        return TokenCount(
            value=value,
            method=method,
            low=max(math.floor(low * (1 - error)) + self._frame - uncertain, 0),
            high=math.ceil(high * (1 + error)) + self._frame + uncertain,
            tokenizer=tokenizer,
            parts=TokenParts(content=content, framing=value - content),
        )

    def _ctok_tokens(self, passages: Sequence[Passage]) -> int | None:
        version = self.profile.tokenizer.ctok
        if version is None or sum(len(passage.text) for passage in passages) > CTOK_MOST_CHARACTERS:
            return None
        count = self.tools.tokenizers.claude()
        if count is None:
            return None
        return sum(count(passage.text, version) - self.profile.framing.request for passage in passages)


def _block(passage: Passage) -> dict[str, str]:
    return {"type": "text", "text": passage.text}
