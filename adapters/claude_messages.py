"""Claude through Messages: policy and constraints as system blocks, evidence and then the question as blocks of one user turn.

The policy is a block of its own, so that the start of every request is the same bytes. The evidence is one block, since its order changes with
what was chosen and blocks of their own would cost tokens and keep no prefix; with ``stable_prefix`` it is several, and the last that is full
says how far the vendor may keep the request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adapters.compose import CLOSING, POLICY, Composed
from adapters.family_adapter import FamilyAdapter, Said, TextCount
from adapters.pairs import NativePair
from adapters.passages import Passage
from adapters.tokenizers import Tally
from graph.model.answer import CountMethod

API = "anthropic.messages"

MAX_TOKENS = 1024
"""Messages requires a limit of the answer; callers who merge the payload into their own request set theirs."""

CTOK_MOST_CHARACTERS = 8_000
"""Longer requests are counted by the calibrated factor: ctok takes about 10 ms per 1,000 characters, out of a deadline of 500 ms."""

BLOCK_UNCERTAIN = 3
"""Tokens by which each block of evidence more may be off. A judgement: what lies between two text blocks was not measured."""


@dataclass(frozen=True, slots=True)
class ClaudeMessages(FamilyAdapter):
    """The adapter of one Claude profile.

    Native pairs: an assistant turn with ``tool_use``, then a user turn that begins with its ``tool_result``; the question follows in the last of
    these. The whole request ends with a user turn, since a model from 4.6 on refuses an answer that was begun for it.
    """

    api: ClassVar[str] = API

    def say(self, model: str, composed: Composed) -> Said:
        system = [Passage(POLICY)] if composed.constraints is None else [Passage(POLICY), composed.constraints]
        closing = [Passage(CLOSING)] if self.closes else []
        question = [Passage(composed.question)] if composed.question is not None else []
        evidence = list(composed.evidence)
        system_blocks, evidence_blocks = [_block(passage) for passage in system], [_block(passage) for passage in evidence]
        if composed.cache_name is not None and self.profile.cache.marks == "blocks":
            # The vendor keeps what stands before a mark: the rules, and the blocks of evidence that will be the same at the next step.
            for blocks in (system_blocks, evidence_blocks[:-1]):
                if blocks:
                    blocks[-1]["cache_control"] = {"type": "ephemeral"}
        turns: list[dict[str, Any]] = [{"role": "user", "content": [*evidence_blocks, *(_block(passage) for passage in closing)]}]
        for pair in composed.pairs:
            turns += _pair(pair)
        turns[-1]["content"] += [_block(passage) for passage in question]
        payload: dict[str, Any] = {"model": model, "max_tokens": MAX_TOKENS, "system": system_blocks, "messages": turns}
        framing = self.profile.framing
        frame, uncertain = self.pair_frame(composed.pairs)
        frame += framing.request + framing.system
        passages = [*system, *evidence, *closing, *question, *self.pair_passages(composed.pairs)]
        return Said(payload, passages, frame, uncertain + BLOCK_UNCERTAIN * (len(evidence) - 1))

    def count_texts(self, passages: Sequence[Passage], tallies: Sequence[Tally], tallied: TextCount) -> TextCount:
        """By ctok where it is installed and quick enough, else from o200k_base."""
        rule = self.profile.tokenizer
        short = rule.ctok is not None and sum(len(passage.text) for passage in passages) <= CTOK_MOST_CHARACTERS
        count = self.tools.tokenizers.claude() if short else None
        if count is None or rule.ctok is None:
            # Of the class itself: a dataclass with slots is made anew, so that a bare super() would not know it.
            return FamilyAdapter.count_texts(self, passages, tallies, tallied)
        value = sum(count(passage.text, rule.ctok) - self.profile.framing.request for passage in passages if passage.text)
        low, high = math.floor(value * (1 - rule.ctok_error)), math.ceil(value * (1 + rule.ctok_error))
        return TextCount(value, low, high, CountMethod.CALIBRATED, f"ctok {rule.ctok}")


def _block(passage: Passage) -> dict[str, Any]:
    return {"type": "text", "text": passage.text}


def _pair(pair: NativePair) -> list[dict[str, Any]]:
    said = [_block(pair.text)] if pair.text.text else []
    call = {"type": "tool_use", "id": pair.call_id, "name": pair.name, "input": pair.arguments}
    answer = {"type": "tool_result", "tool_use_id": pair.call_id, "content": pair.output.text}
    return [{"role": "assistant", "content": [*said, call]}, {"role": "user", "content": [answer]}]
