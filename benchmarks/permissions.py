"""What permission costs: the same context queries by an admin, who sees everything, and by an agent who sees it through 50 policies."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from app.bootstrap import Lastro
from app.registry.policy_operations import RegistryPolicies
from benchmarks.measuring import Figure, OnProgress, Samples, at_most, plain, rotated
from benchmarks.service import Door
from graph.model.policy import Party, PolicyRequest
from graph.model.scope import Role
from graph.model.units import Kind

NAME = "context"
POLICIES = 50
MOST = 1.15
READER = "reader"


async def open_to_reader(lastro: Lastro, tenant: str, writer: str) -> None:
    """Fifty policies that are for the reader: one for each kind of the writer's units, and others by agents and sessions that are not there."""
    admin = lastro.registry.local(tenant, "operator")
    door = RegistryPolicies(lastro.registry, lastro.policies, lastro.units, admin)
    to = Party(agents=[READER])
    for kind in Kind:
        await door.create_policy(PolicyRequest.model_validate({"kinds": [kind], "from": Party(agents=[writer]), "to": to}))
    for number in range(POLICIES - len(Kind)):
        named = Party(agents=[f"agent-{number}"], sessions=[f"elsewhere-{number}"] if number % 2 else [])
        await door.create_policy(PolicyRequest.model_validate({"kinds": list(Kind), "from": named, "to": to}))


async def doors(lastro: Lastro, port: int, tenant: str) -> dict[str, Door]:
    """One connection for the admin and one for the reader."""
    scope = lastro.registry.local(tenant, "operator")
    keys = {
        "admin": await lastro.registry.create_key(scope, agent_id="operator", role=Role.ADMIN),
        READER: await lastro.registry.create_key(scope, agent_id=READER, role=Role.AGENT),
    }
    return {name: Door(port, key.text) for name, key in keys.items()}


def ask_in_turn(found: Mapping[str, Door], queries: Sequence[Mapping[str, object]], samples: Samples, on_progress: OnProgress) -> int:
    """Every query by both, in turn, after a round that warms up; how many of the answers were the same."""
    same = 0
    for name, door in found.items():
        for place, query in enumerate(queries):
            door.context(query)
            on_progress(f"warming up as {name}", place + 1, len(queries))
    for number, query in enumerate(queries):
        answers: list[list[str]] = []
        for name, door in rotated(list(found.items()), number):
            began = time.perf_counter()
            answer = door.context(query)
            samples.add(f"permissions {name}", time.perf_counter() - began)
            answers.append([str(unit["id"]) for unit in answer["units"]])
        same += answers[0] == answers[1]
        on_progress("asking as admin and as reader", number + 1, len(queries))
    return same


def figures(engine: str, samples: Samples, same: int, asked: int) -> list[Figure]:
    """The two medians and their ratio."""
    admin, reader = (samples.ms(f"permissions {name}") for name in ("admin", READER))
    return [
        plain(NAME, engine, "permissions: admin, p50", admin, "ms"),
        plain(NAME, engine, f"permissions: agent with {POLICIES} policies, p50", reader, "ms"),
        at_most(plain(NAME, engine, "permissions: the agent beside the admin, p50", reader / admin, "x"), MOST),
        plain(
            NAME, engine, "permissions: the same, median of rounds", samples.paired_ratio(f"permissions {READER}", "permissions admin"), "x"
        ),
        plain(NAME, engine, "permissions: answers that are the same", same / asked, ""),
    ]
