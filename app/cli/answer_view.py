"""An answer as a person reads it: a tree of units with the reasons, what was left out, and what it took."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from app.cli import output
from graph.model.answer import ContextAnswer, SelectedUnit
from graph.model.units import EdgeType

KIND_STYLES = {
    "constraint": "magenta",
    "correction": "bold green",
    "decision": "cyan",
    "observation": "white",
    "progress_note": "dim",
    "state_snapshot": "blue",
    "tool_result": "yellow",
}
LEFT_OUT_SHOWN = 8


def show_answer(answer: ContextAnswer) -> None:
    """Tree, left out, times."""
    show_tree(answer)
    show_left_out(answer)
    show_receipt(answer)


def show_tree(answer: ContextAnswer) -> None:
    """The subgraph: each unit below the one by which it was reached, with the reason."""
    tokens = answer.consumption.tokens
    spent = f"{output.count(tokens.value)} of {output.count(answer.receipt.budget_tokens)} tokens ({tokens.method}, {tokens.tokenizer})"
    tree = Tree(Text.assemble((output.number_of(len(answer.units), "unit"), "bold"), f"  {spent}"), guide_style="dim")
    branches: dict[str, Tree] = {}
    chosen = {unit.id: unit for unit in answer.units}
    pending = list(answer.units)
    while pending:
        waiting: list[SelectedUnit] = []
        for unit in pending:
            parent = parent_of(unit, answer, chosen)
            if parent is None or parent in branches:
                branches[unit.id] = (branches[parent] if parent is not None else tree).add(line_of(unit))
            else:
                waiting.append(unit)
        if len(waiting) == len(pending):
            for unit in waiting:
                branches[unit.id] = tree.add(line_of(unit))
            break
        pending = waiting
    output.out.print(tree)


def parent_of(unit: SelectedUnit, answer: ContextAnswer, chosen: dict[str, SelectedUnit]) -> str | None:
    """The unit of the answer under which this one is shown: the nearest on its path, or the one it came along with."""
    for step in reversed(unit.path):
        if step.from_id in chosen and step.from_id != unit.id:
            return step.from_id
    if unit.reason == "pair":
        for relation in answer.relations:
            if relation.edge_type is EdgeType.CAUSATION and unit.id in {relation.source_id, relation.target_id}:
                other = relation.target_id if relation.source_id == unit.id else relation.source_id
                if chosen[other].reason != "pair":
                    return other
    return None


def line_of(unit: SelectedUnit) -> Text:
    """One unit as one line: score, kind, id, why, and the beginning of what it says."""
    steps = " ".join(f"{'→' if step.direction == 'out' else '←'}{step.edge_type}" for step in unit.path)
    reason = f"{unit.reason} {steps}".strip()
    room = max(output.out.width - 8, 40)
    first = output.printable(" ".join(unit.content.split()))
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{unit.relevance_score:.2f} ", style="bold")
    text.append(f"{unit.kind} ", style=KIND_STYLES.get(unit.kind, ""))
    text.append(f"{unit.id} ", style="dim")
    text.append(f"[{reason}] ", style="italic")
    text.append(first[: max(room - len(text.plain) - 16, 16)])
    return text


def show_left_out(answer: ContextAnswer) -> None:
    """What was seen and not chosen, and why."""
    receipt = answer.receipt
    if not receipt.left_out_counts:
        output.out.print(Text(f"Nothing was left out of {output.number_of(receipt.candidates, 'candidate')}.", style="dim"))
        return
    counts = ", ".join(f"{number} {reason}" for reason, number in sorted(receipt.left_out_counts.items()))
    output.out.print(Text(f"left out: {counts}", style="bold"))
    for item in receipt.left_out[:LEFT_OUT_SHOWN]:
        cost = "" if item.tokens is None else f" ({output.count(item.tokens)} tokens)"
        output.out.print(Text(f"  {item.reason:12} {output.printable(item.id)}{cost}", style="dim", no_wrap=True, overflow="ellipsis"))


def show_receipt(answer: ContextAnswer) -> None:
    """How the answer came about."""
    receipt = answer.receipt
    tried = ", ".join(f"{attempt.strategy} {attempt.outcome} in {attempt.ms:.0f} ms" for attempt in receipt.attempts)
    times = ", ".join(f"{stage} {ms:.0f}" for stage, ms in receipt.timings_ms.items())
    output.out.print(Text(f"{receipt.strategy}: {receipt.why}; {tried}", style="dim"))
    if (search := receipt.search) is not None:
        said = f"searched: {search.found_by_text} by words, {search.found_by_vectors} by meaning ({search.vectors}), {search.neighbours} beside"
        output.out.print(Text(f"{said}, {search.names_crossed} names crossed", style="dim"))
        if search.words_dropped:
            output.out.print(Text(f"not searched for: {output.printable(', '.join(search.words_dropped[:8]))} …", style="dim"))
    output.out.print(Text(f"times, ms: {times}   trace {receipt.trace_id}", style="dim"))
    for note in receipt.notes:
        output.out.print(Text(f"note: {note}", style="yellow"))
