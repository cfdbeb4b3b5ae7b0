"""Tool calls of the caller's own session, and their results, as the vendor's own messages tell them.

A call may be told as the model's own words only where it was that: written by the same agent in the same session, whole, not replaced and
not in doubt. Everything else stays evidence. The texts are the same as in the fence, without control tokens; where a vendor's API takes no
header, the result's says which call it answers, so that both can be cited.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from adapters.base import RenderRequest, attachment_lines, unit_body
from adapters.fence import defuse, field, well_formed
from adapters.headers import header_of_unit
from adapters.passages import Passage, size_of
from adapters.profile import PairRules
from adapters.tool_names import native_id, native_name
from graph.model.query import ToolPairs
from graph.model.units import MAX_ARGUMENT_LEVELS, ContextUnit, EdgeType, EpistemicStatus, Kind, Trust

CERTAIN = frozenset({EpistemicStatus.TENTATIVE, EpistemicStatus.CONFIRMED})
"""What may be told without its status."""

_BETWEEN_RESULTS = "\n\n"


@dataclass(frozen=True, slots=True)
class NativePair:
    """A call and what came of it. ``name`` and ``call_id`` are as the vendor takes them, ``recorded_name`` as it was recorded."""

    units: tuple[str, ...]
    """Ids of the call and of its results."""
    call_id: str
    name: str
    recorded_name: str
    arguments: dict[str, JsonValue]
    text: Passage
    """What the agent said with the call."""
    output: Passage
    """The results with their headers."""

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON."""
        return as_json(self.arguments)


def may_be_native(unit: ContextUnit, *, agent_id: str | None, session_id: str | None) -> bool:
    """Whether a unit may become part of a native pair, as far as it alone can tell: the asking agent wrote it in the session it asks from."""
    metadata = unit.metadata
    return (
        unit.kind in {Kind.DECISION, Kind.TOOL_RESULT}
        and metadata.tool is not None
        and session_id is not None
        and metadata.session_id == session_id
        and agent_id is not None
        and metadata.agent_id == agent_id
    )


def native_parts(
    group: Sequence[ContextUnit], request: RenderRequest, superseded: Mapping[str, str]
) -> tuple[ContextUnit, list[ContextUnit]] | None:
    """The call and the results of a group that may be told natively; None for every other group."""
    if request.tool_pairs is not ToolPairs.NATIVE:
        return None
    results = [unit for unit in group if unit.kind is Kind.TOOL_RESULT]
    calls = [unit for unit in group if unit.kind is not Kind.TOOL_RESULT]
    if not results or len(calls) != 1:
        return None
    call = calls[0]
    fit = (
        call.kind is Kind.DECISION
        and call.metadata.tool is not None
        and call.trust is not Trust.EVIDENCE_CANDIDATE
        and call.metadata.actor in {None, request.agent_id}
        and all(
            may_be_native(unit, agent_id=request.agent_id, session_id=request.session_id)
            and unit.id not in superseded
            and unit.metadata.epistemic_status in CERTAIN
            for unit in group
        )
        and all(_answers(result, call) for result in results)
    )
    return (call, results) if fit else None


def native_pair(call: ContextUnit, results: Sequence[ContextUnit], rules: PairRules, taken: set[str]) -> NativePair | None:
    """The pair in a vendor's terms; None when its arguments are no JSON that every vendor takes. Its id is added to ``taken``."""
    tool = call.metadata.tool
    assert tool is not None
    arguments = plain_arguments(tool.arguments or {})
    if arguments is None:
        return None
    return NativePair(
        units=(call.id, *(result.id for result in results)),
        call_id=native_id(tool.call_id, call.id, rules.id_most, taken),
        name=native_name(tool.name, rules.name_pattern, rules.name_most),
        recorded_name=tool.name,
        arguments=arguments,
        text=_text(call),
        output=_output(call, results),
    )


def plain_arguments(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """A copy with every name and text safe to stand in a request, made without recursion.

    None when it cannot be said as JSON without loss: nested too deeply, a number that is not finite, or two names that become one.
    """
    result: dict[str, JsonValue] = {}
    pending: list[tuple[Any, Any, int]] = [(arguments, result, 1)]
    while pending:
        source, target, level = pending.pop()
        if level > MAX_ARGUMENT_LEVELS:
            return None
        entries = cast("Any", source).items() if isinstance(source, Mapping) else enumerate(cast("list[Any]", source))
        for key, value in entries:
            made = _plain(value)
            if made is _NOT_PLAIN:
                return None
            if isinstance(target, dict):
                name = defuse(cast("str", key))
                if name in target:
                    return None
                target[name] = made
            else:
                cast("list[Any]", target).append(made)
            if isinstance(value, dict | list):
                pending.append((cast("Any", value), made, level + 1))
    return result


_NOT_PLAIN: Any = object()


def _plain(value: JsonValue) -> Any:
    """A leaf as it may stand, or an empty container to be filled."""
    if isinstance(value, dict):
        return {}
    if isinstance(value, list):
        return []
    if isinstance(value, str):
        return defuse(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_PLAIN
    return value


def as_json(value: JsonValue) -> str:
    """JSON as vendors' own clients write it in a call: with spaces, letters as they are."""
    return json.dumps(value, ensure_ascii=False)


def call_texts(call: ContextUnit, rules: PairRules) -> list[str]:
    """The texts that a call costs at most in a native pair, for counting beforehand; its mark in the header of its result is one of them."""
    tool = call.metadata.tool
    assert tool is not None
    arguments = plain_arguments(tool.arguments or {})
    return [
        _text(call).text,
        as_json(arguments) if arguments is not None else "",
        well_formed(tool.name),
        (rules.result_names or "").format(name=well_formed(tool.name)),
        f"_{'0' * 8} | answers {field(call.id)}",
    ]


def _text(call: ContextUnit) -> Passage:
    text = defuse("\n".join([call.content, *attachment_lines(call)]))
    return Passage(text, ((0, size_of(text)),)) if text.strip() else Passage("")


def _output(call: ContextUnit, results: Sequence[ContextUnit]) -> Passage:
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for number, result in enumerate(results):
        head = header_of_unit(result, None, answers=call.id if number == 0 else None)
        body = defuse(unit_body(result))
        start = at + size_of(head)
        spans.append((start, start + size_of(body)))
        at = spans[-1][1] + len(_BETWEEN_RESULTS)
        parts.append(head + body)
    return Passage(_BETWEEN_RESULTS.join(parts), tuple(spans))


def _answers(result: ContextUnit, call: ContextUnit) -> bool:
    """Whether a result is the call's own: caused by it, or with the same native id."""
    if any(relation.edge_type is EdgeType.CAUSATION and relation.target_id == call.id for relation in result.relations):
        return True
    asked, answered = call.metadata.tool, result.metadata.tool
    return asked is not None and answered is not None and asked.call_id is not None and asked.call_id == answered.call_id
