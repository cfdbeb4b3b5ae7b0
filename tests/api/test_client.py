"""The Python client: the same operations as REST, with the same outcome and the same errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from conftest import Service

from app.client import LastroClient
from graph.model.errors import LastroError, NotFound, TargetNotFound, Unauthenticated, Unavailable, UnitConflict, UnknownModel
from graph.model.query import ContextQuery
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation

Result = TypeVar("Result")
ODD_IDS = ["a/b", "..", ".", "a?b#c", "ü", "%2F", "a/lineage"]


def seen(id: str, *targets: str) -> ContextUnit:
    return ContextUnit(
        id=id,
        kind=Kind.OBSERVATION,
        content=f"Seen {id}.",
        metadata=Metadata(task_id="t"),
        relations=[Relation(target_id=target, edge_type=EdgeType.CAUSATION) for target in targets],
    )


@pytest.fixture
def with_client(service: Service, tenant: str) -> Callable[[Callable[[LastroClient], Awaitable[Result]]], Result]:
    """Runs something with a client of the test's tenant."""
    key = service.key(tenant)

    def run(work: Callable[[LastroClient], Awaitable[Result]]) -> Result:
        async def within() -> Result:
            async with LastroClient(service.url, key, session_id="s", model="gpt-5.2") as client:
                return await work(client)

        return asyncio.run(within())

    return run


def test_units_are_written_read_listed_and_walked(with_client: Callable[[Callable[[LastroClient], Awaitable[None]]], None]) -> None:
    async def work(client: LastroClient) -> None:
        assert (await client.write([seen("a"), seen("b", "a")])).written == 2
        again = await client.write([await client.read("b")])
        assert (again.written, again.unchanged) == (0, 1)
        page = await client.list_units(task_id="t", limit=1)
        assert [unit.id for unit in page.units] == ["b"]
        assert [unit.id for unit in (await client.list_units(task_id="t", limit=1, cursor=page.next)).units] == ["a"]
        assert [unit.id for unit in (await client.lineage("b", direction="before")).units] == ["b", "a"]
        answer = await client.context(ContextQuery(task_id="t", deadline_ms=20_000))
        assert {unit.id for unit in answer.units} == {"a", "b"}
        assert answer.rendered is not None
        assert answer.rendered.model == "gpt-5.2"
        owner = (await client.read("a")).owner
        assert owner is not None
        assert (owner.session_id, owner.model) == ("s", "gpt-5.2")

    with_client(work)


def test_any_id_can_be_read(with_client: Callable[[Callable[[LastroClient], Awaitable[None]]], None]) -> None:
    async def work(client: LastroClient) -> None:
        await client.write([seen(name) for name in ODD_IDS])
        for name in ODD_IDS:
            assert (await client.read(name)).id == name
            assert [unit.id for unit in (await client.lineage(name)).units] == [name]

    with_client(work)


def test_errors_are_those_of_the_tree(
    service: Service, with_client: Callable[[Callable[[LastroClient], Awaitable[LastroError]]], LastroError]
) -> None:
    async def failure(work: Awaitable[object]) -> LastroError:
        with pytest.raises(LastroError) as raised:
            await work
        return raised.value

    missing = with_client(lambda client: failure(client.read("nowhere")))
    assert type(missing) is NotFound
    edge = with_client(lambda client: failure(client.write([seen("a"), seen("b", "nowhere")])))
    assert type(edge) is TargetNotFound
    assert edge.where is not None
    assert (edge.where.index, edge.where.id, edge.where.field) == (1, "b", "relations")
    model = with_client(lambda client: failure(client.context(ContextQuery(task_id="t", model="nobody-1"))))
    assert type(model) is UnknownModel

    async def conflict(client: LastroClient) -> LastroError:
        await client.write([seen("a")])
        return await failure(client.write([seen("a").model_copy(update={"content": "Otherwise."})]))

    assert type(with_client(conflict)) is UnitConflict

    async def elsewhere(url: str, key: str) -> LastroError:
        async with LastroClient(url, key) as client:
            return await failure(client.read("a"))

    assert type(asyncio.run(elsewhere(service.url, "wrong"))) is Unauthenticated
    assert type(asyncio.run(elsewhere("http://127.0.0.1:9", "wrong"))) is Unavailable
