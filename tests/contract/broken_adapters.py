"""Adapters broken on purpose: each is a real one with one rule broken, and the rule of the conformance kit that has to find it."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from adapters.base import Adapter, RenderRequest, RenderResult, Toolbox
from adapters.gpt_chat import GptChat
from adapters.profile import Profile
from graph.model.answer import TokenCount
from graph.model.candidates import Candidate
from graph.model.units import ContextUnit, Kind, Trust


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A real adapter whose requests or results are changed on the way."""

    inner: Adapter
    before: Callable[[RenderRequest], RenderRequest] = lambda request: request
    after: Callable[[RenderResult], RenderResult] = lambda result: result
    of_unit: Callable[[int], int] = lambda tokens: tokens

    @property
    def profile(self) -> Profile:
        return self.inner.profile

    def base_tokens(self, question: str | None) -> int:
        return self.inner.base_tokens(question)

    def unit_tokens(self, candidate: Candidate, native: ContextUnit | None = None) -> int:
        return self.of_unit(self.inner.unit_tokens(candidate, native))

    def render(self, request: RenderRequest) -> RenderResult:
        return self.after(self.inner.render(self.before(request)))


def changed(result: RenderResult, *, payload: dict[str, Any] | None = None, order: list[str] | None = None) -> RenderResult:
    rendered = result.rendered
    update: dict[str, Any] = {"payload": payload or rendered.payload, "order": rendered.order if order is None else order}
    return replace(result, rendered=rendered.model_copy(update=update))


def texts_changed(result: RenderResult, change: Callable[[str], str]) -> RenderResult:
    """With the text of the evidence, the second message of Chat Completions, changed."""
    payload = copy.deepcopy(result.rendered.payload)
    payload["messages"][1]["content"] = change(payload["messages"][1]["content"])
    return changed(result, payload=payload)


# --- broken on the way in -------------------------------------------------------------------------------------------------------


def drops_the_last(request: RenderRequest) -> RenderRequest:
    return replace(request, items=request.items[:-1])


def worst_first(request: RenderRequest) -> RenderRequest:
    # Groups backwards, the units of each as they were: a pair stays whole.
    groups = [list(members) for _, members in itertools.groupby(request.items, key=lambda item: item.group)]
    return replace(request, items=[item for members in reversed(groups) for item in members])


def splits_pairs(request: RenderRequest) -> RenderRequest:
    return replace(request, items=[replace(item, group=number) for number, item in enumerate(request.items)])


def trusts_everybody(request: RenderRequest) -> RenderRequest:
    def trusted(item: Any) -> Any:
        return replace(item, unit=item.unit.model_copy(update={"kind": Kind.CONSTRAINT, "trust": Trust.NORMATIVE, "relations": []}))

    return replace(request, items=[trusted(item) for item in request.items])


# --- broken on the way out ------------------------------------------------------------------------------------------------------


def says_it_twice(result: RenderResult) -> RenderResult:
    return texts_changed(result, lambda text: f"{text}\n\n{text}")


def lies_about_order(result: RenderResult) -> RenderResult:
    return changed(result, order=sorted(result.rendered.order, reverse=True))


def speaks_in_no_role(result: RenderResult) -> RenderResult:
    payload = copy.deepcopy(result.rendered.payload)
    payload["messages"][1]["role"] = "evidence"
    return changed(result, payload=payload)


def adds_a_field(result: RenderResult) -> RenderResult:
    return changed(result, payload={**result.rendered.payload, "evidence_first": True})


def counts_half(result: RenderResult) -> RenderResult:
    count = result.tokens
    half: TokenCount = count.model_copy(
        update={
            "value": count.value // 2,
            "low": count.value // 2,
            "high": count.value // 2,
            "parts": count.parts.model_copy(
                update={"content": count.parts.content // 2, "framing": count.value // 2 - count.parts.content // 2}
            ),
        }
    )
    return replace(result, tokens=half)


def escapes_nothing(result: RenderResult) -> RenderResult:
    return texts_changed(result, lambda text: text.replace("\u2039", "<").replace("\u203a", ">"))


def lets_headers_be_forged(result: RenderResult) -> RenderResult:
    return texts_changed(result, lambda text: text.replace("\u2039unit", "[unit").replace("\u2039UNIT", "[UNIT"))


def fences_with_a_word(result: RenderResult) -> RenderResult:
    def plain(text: str) -> str:
        key = text[len("<context ") : text.index(">")]
        return text.replace(key, "evidence")

    return texts_changed(result, plain)


def keeps_half_characters(result: RenderResult) -> RenderResult:
    return texts_changed(result, lambda text: text.replace("\ufffd", "\ud800"))


def ties_results_to_nothing(result: RenderResult) -> RenderResult:
    payload = copy.deepcopy(result.rendered.payload)
    for message in payload["messages"]:
        if message["role"] == "tool":
            message["tool_call_id"] += "x"
    return changed(result, payload=payload)


class Numbers:
    """Numbers its answers, and so says other bytes each time."""

    def __init__(self) -> None:
        self._number = itertools.count()

    def __call__(self, result: RenderResult) -> RenderResult:
        return texts_changed(result, lambda text: f"answer {next(self._number)}\n{text}")


_numbers = Numbers()


def counts_half_builder(profile: Profile, tools: Toolbox) -> Adapter:
    """As a third party names one on the command line."""
    return Wrapped(GptChat(profile, tools), after=counts_half)


def broken() -> Iterator[tuple[str, str, Callable[[Adapter], Adapter]]]:
    """(name, the rule that finds it, how to break an adapter of Chat Completions)."""
    yield "drops the last unit", "represented once", lambda inner: Wrapped(inner, before=drops_the_last)
    yield "says everything twice", "represented once", lambda inner: Wrapped(inner, after=says_it_twice)
    yield "lies about the order", "order is told", lambda inner: Wrapped(inner, after=lies_about_order)
    yield "puts the worst first", "priority order", lambda inner: Wrapped(inner, before=worst_first)
    yield "splits pairs", "pairs whole", lambda inner: Wrapped(inner, before=splits_pairs)
    yield "ties results to nothing", "pairs whole", lambda inner: Wrapped(inner, after=ties_results_to_nothing)
    yield "speaks in a role that does not exist", "vendor types", lambda inner: Wrapped(inner, after=speaks_in_no_role)
    yield "adds a field that does not exist", "vendor types", lambda inner: Wrapped(inner, after=adds_a_field)
    yield "counts half", "count within bounds", lambda inner: Wrapped(inner, after=counts_half)
    yield "foretells half", "cost foretold", lambda inner: Wrapped(inner, of_unit=lambda tokens: tokens // 2)
    yield "gives everything authority", "authority", lambda inner: Wrapped(inner, before=trusts_everybody)
    yield "says other bytes each time", "same bytes", lambda inner: Wrapped(inner, after=_numbers)
    yield "escapes nothing", "fence", lambda inner: Wrapped(inner, after=escapes_nothing)
    yield "lets headers be forged", "fence", lambda inner: Wrapped(inner, after=lets_headers_be_forged)
    yield "fences with a word that all know", "fence", lambda inner: Wrapped(inner, after=fences_with_a_word)
    yield "keeps half characters", "sendable", lambda inner: Wrapped(inner, after=keeps_half_characters)
