"""GPT and the o-series through Chat Completions: policy and constraints as developer (before o1: system), evidence as user, question last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.base import RenderRequest, RenderResult, Toolbox
from adapters.compose import CLOSING, POLICY, SEPARATOR_TOKENS, Passage, compose, frame_texts, header_of_candidate
from adapters.fence import well_formed
from adapters.profile import Profile
from adapters.tokenizers import Counter
from graph.model.answer import Rendered, TokenCount, TokenParts
from graph.model.candidates import Candidate

API = "openai.chat.completions"

_JOINTS = 2
"""Tokens that cutting the frame into its parts may save or cost: one where the heading joins the policy, one where a unit joins the fence."""


@dataclass(frozen=True, slots=True)
class GptChat:
    """The adapter of one GPT profile."""

    profile: Profile
    tools: Toolbox

    @property
    def _counter(self) -> Counter:
        return self.tools.tokenizers.for_name(self.profile.tokenizer.encoding)

    def base_tokens(self, question: str | None) -> int:
        policy, heading, fence, asked = frame_texts(question)
        messages = [(self.profile.instruction_role, f"{policy}\n\n{heading}"), ("user", f"{fence}\n\n{CLOSING}" if self._closes else fence)]
        if asked is not None:
            messages.append(("user", asked))
        framing = self.profile.framing
        count = self._counter.count
        return framing.request + sum(framing.message + count(role) + count(text) for role, text in messages) + _JOINTS

    def unit_tokens(self, candidate: Candidate) -> int:
        content = math.ceil(candidate.content_tokens * self.profile.tokenizer.content_factor)
        return self._counter.count(header_of_candidate(candidate)) + content + SEPARATOR_TOKENS

    def render(self, request: RenderRequest) -> RenderResult:
        composed = compose(request, self.profile, self.tools.fence_key)
        instructions = Passage(POLICY)
        if composed.constraints is not None:
            shift = len(f"{POLICY}\n\n".encode())
            instructions = Passage(
                f"{POLICY}\n\n{composed.constraints.text}",
                tuple((start + shift, end + shift) for start, end in composed.constraints.spans),
            )
        evidence = composed.evidence
        if self._closes:
            evidence = Passage(f"{evidence.text}\n\n{CLOSING}", evidence.spans)
        passages: list[tuple[str, Passage]] = [(self.profile.instruction_role, instructions), ("user", evidence)]
        if composed.question is not None:
            passages.append(("user", Passage(composed.question)))
        model = well_formed(request.model)
        payload = {"model": model, "messages": [{"role": role, "content": passage.text} for role, passage in passages]}
        rendered = Rendered(api=API, model=model, payload=payload, order=composed.order, notes=[*self.tools.notes, *composed.notes])
        return RenderResult(rendered, self._count(passages))

    @property
    def _closes(self) -> bool:
        return self.profile.attention.instructions_at_both_ends

    def _count(self, passages: Sequence[tuple[str, Passage]]) -> TokenCount:
        """As OpenAI counts: 3 tokens to prime the answer, 3 a message, the tokens of its role and of its text."""
        counter = self._counter
        framing = self.profile.framing
        frame = framing.request + sum(framing.message + counter.count(role) for role, _ in passages)
        tallies = [counter.tally(passage.text, passage.spans) for _, passage in passages]
        value = frame + sum(tally.total for tally in tallies)
        content = sum(tally.within for tally in tallies)
        return TokenCount(
            value=value,
            method=counter.method,
            low=frame + sum(tally.low for tally in tallies),
            high=frame + sum(tally.high for tally in tallies),
            tokenizer=counter.name,
            parts=TokenParts(content=content, framing=value - content),
        )
