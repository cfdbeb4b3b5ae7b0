"""What an adapter says of its payload, and what the counter of whole requests says of the same, are two ways to one number (A5)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from adapters.base import RenderItem, RenderRequest
from adapters.counting import count_request
from adapters.registry import AdapterRegistry
from adapters.tokenizers import Tokenizers
from graph.model.answer import CountMethod
from graph.model.query import ToolPairs
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, Tool

TOKENIZERS = Tokenizers(ctok=False)
REGISTRY = AdapterRegistry(b"k" * 32, tokenizers=TOKENIZERS, plugins=[])
MODELS = (
    "gpt-4", "gpt-4o", "gpt-4.1", "gpt-5.2", "gpt-5.5", "o3", "responses/gpt-4o", "responses/gpt-5.2", "claude-sonnet-4-5", "claude-opus-4-6",
    "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-flash", "deepseek-v3", "deepseek-v4",
)  # fmt: skip
WHEN = datetime(2026, 3, 2, 9, tzinfo=UTC)


def items(notes: int, tool: str) -> list[RenderItem]:
    units = [
        ContextUnit(
            id=f"note-{number}",
            kind=Kind.OBSERVATION,
            content=f"Ferry {number} left Aveiro at 09:{number:02d} with {number * 7} passengers, since the quay was full.",
            metadata=Metadata(timestamp=WHEN, agent_id="a", session_id="s"),
        )
        for number in range(notes)
    ]
    metadata = Metadata(timestamp=WHEN, agent_id="a", session_id="s")
    asked = Tool(name=tool, call_id="x1", arguments={"port": "Aveiro", "minutes": 15})
    units.append(
        ContextUnit(id="call", kind=Kind.DECISION, content="Look at the board.", metadata=metadata.model_copy(update={"tool": asked}))
    )
    units.append(
        ContextUnit(
            id="result",
            kind=Kind.TOOL_RESULT,
            content="- next: 09:40\n- late: 3 %",
            metadata=metadata.model_copy(update={"tool": Tool(name=tool, call_id="x1")}),
            relations=[Relation(target_id="call", edge_type=EdgeType.CAUSATION)],
        )
    )
    return [RenderItem(unit, 1.0, min(place, notes)) for place, unit in enumerate(units)]


@pytest.mark.parametrize("tool", ["board", "read_the_board_of_departures_of_one_port_for_some_minutes_ahead"], ids=["short", "long"])
@pytest.mark.parametrize("pairs", ToolPairs)
@pytest.mark.parametrize("notes", [3, 60])
@pytest.mark.parametrize("model", MODELS)
def test_both_counts_lie_within_what_the_adapter_says(model: str, notes: int, pairs: ToolPairs, tool: str) -> None:
    request = RenderRequest(
        model=model,
        items=items(notes, tool),
        question="And now?",
        tenant_id="t",
        task_id="k",
        step=None,
        agent_id="a",
        session_id="s",
        tool_pairs=pairs,
    )
    said = REGISTRY.for_model(model).render(request)
    counted = count_request(model.rpartition("/")[2], said.rendered.payload, TOKENIZERS).tokens
    assert said.tokens.low <= counted.value <= said.tokens.high
    if said.tokens.method is CountMethod.EXACT:
        assert said.tokens.value == counted.value
    else:
        assert abs(said.tokens.value - counted.value) <= 0.03 * counted.value + 25, "some words, or what stands around a call"
