"""The chosen units as a payload that stays within the budget by the adapter's own count of the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adapters.base import RenderItem, RenderRequest
from adapters.pairs import may_be_native
from adapters.tokenizers import O200K, Tokenizers
from app.router.planner import Plan
from app.router.selection import Chosen, Selection
from graph.model.answer import LeftOut, LeftOutReason, Rendered, TokenCount, TokenParts
from graph.model.candidates import Candidate
from graph.model.query import ToolPairs
from graph.unit_rows import StoredUnit

NO_SESSION = "No session was named (Lastro-Session, or the query's session_id), so tool calls are told as evidence."


@dataclass(frozen=True, slots=True)
class Presented:
    """What remains of a selection once it was rendered and counted."""

    chosen: tuple[Chosen, ...]
    left_out: tuple[LeftOut, ...]
    rendered: Rendered | None
    tokens: TokenCount


def present(plan: Plan, selection: Selection, tokenizers: Tokenizers) -> Presented:
    """Render the selection; while the payload counts more than the budget, the last picks go, as many as the excess takes.

    Selection adds upper estimates where the model's tokenizer is public, and there this seldom takes more than one round.
    """
    chosen: list[Chosen] = list(selection.chosen)
    left_out = list(selection.left_out)
    if plan.adapter is None or not plan.query.render:
        return Presented(tuple(chosen), tuple(left_out), None, _neutral_count(chosen, tokenizers))
    while True:
        result = plan.adapter.render(
            RenderRequest(
                model=plan.model,
                items=[RenderItem(item.stored.unit, item.score, item.block) for item in chosen],
                question=plan.query.question,
                tenant_id=plan.scope.tenant_id,
                task_id=plan.query.task_id,
                step=plan.query.step,
                agent_id=plan.scope.principal.agent_id,
                session_id=plan.session_id,
                tool_pairs=plan.query.tool_pairs,
                stable_prefix=plan.query.stable_prefix,
            )
        )
        if result.tokens.value <= plan.query.budget_tokens or not chosen:
            rendered = result.rendered
            if plan.query.tool_pairs is ToolPairs.NATIVE and plan.session_id is None:
                rendered = rendered.model_copy(update={"notes": [*rendered.notes, NO_SESSION]})
            return Presented(tuple(chosen), tuple(left_out), rendered, result.tokens)
        excess = result.tokens.value - plan.query.budget_tokens
        while chosen and excess > 0:
            last = chosen[-1].pick
            gone = [item for item in chosen if item.pick == last]
            left_out[:0] = [LeftOut(id=item.stored.unit.id, reason=LeftOutReason.BUDGET, tokens=item.tokens) for item in gone]
            chosen = [item for item in chosen if item.pick != last]
            excess -= sum(item.tokens for item in gone)


def costs(plan: Plan, units: Mapping[str, StoredUnit]) -> Callable[[Candidate], int]:
    """What a loaded unit costs at most in the payload, in the target model's tokens; without a model, in o200k_base."""
    adapter = plan.adapter
    if adapter is None:
        return lambda head: head.content_tokens
    if plan.query.tool_pairs is not ToolPairs.NATIVE:
        return adapter.unit_tokens
    agent_id, session_id = plan.scope.principal.agent_id, plan.session_id

    def cost(head: Candidate) -> int:
        unit = units[head.id].unit
        return adapter.unit_tokens(head, unit if may_be_native(unit, agent_id=agent_id, session_id=session_id) else None)

    return cost


def _neutral_count(chosen: list[Chosen], tokenizers: Tokenizers) -> TokenCount:
    """Without a payload there is no frame: the sum of what was kept with the units."""
    value = sum(item.tokens for item in chosen)
    counter = tokenizers.for_name(O200K)
    return TokenCount(
        value=value, method=counter.method, low=value, high=value, tokenizer=counter.name, parts=TokenParts(content=value, framing=0)
    )
