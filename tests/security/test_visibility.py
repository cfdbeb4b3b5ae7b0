"""Random policies, teams, readers and units: what the database shows is what a slow and obviously right model says (T2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from unittest.mock import patch

import pytest
from conftest import Service
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph import access
from graph.context_store import ContextStore, Walk, Window
from graph.model.policy import Among, Party, Policy, Standing
from graph.model.scope import AuthorizedScope, Principal, Role
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, Scope, Trust
from graph.order_keys import FOREVER_US
from graph.search_store import SearchStore
from graph.tier_store import TierStore

AGENTS, SESSIONS, TEAMS = ["a1", "a2", "a3"], ["s1", "s2"], ["red", "blue"]
KINDS = [Kind.DECISION, Kind.CONSTRAINT, Kind.OBSERVATION]
PLACES = [Scope(), Scope(organization_id="o"), Scope(organization_id="o", assessment_id="x"), Scope(organization_id="o", assessment_id="y")]
NOW = datetime.now(UTC)
STATION = "station.gamma"
"""A name that all of them mention."""
CASES = 45
"""Random worlds for each engine; each is asked about all units, so 2,025 cases."""


def made_units() -> list[ContextUnit]:
    """One of each kind for each agent, session and some place, in chains, so that walks lead from what is seen to what is not."""
    units: list[ContextUnit] = []
    for number, (agent, session, kind, place) in enumerate(product(AGENTS, [None, *SESSIONS], KINDS, PLACES[:2] + PLACES[2:])):
        if (number % 3 == 0) == (place == PLACES[3]):
            continue  # not every combination, for speed; every value
        before = [Relation(target_id=units[-1].id, edge_type=EdgeType.PROVENANCE)] if units else []
        units.append(
            ContextUnit(
                id=f"u{number}",
                kind=kind,
                content=f"Something was seen at {STATION}.",
                metadata=Metadata(agent_id=agent, session_id=session, task_id="t"),
                relations=before,
                scope=place,
                trust=Trust.APPROVED_ARTIFACT if number % 17 == 0 else Trust.AGENT_OUTPUT,
            )
        )
    return units


UNITS = made_units()
BY_ID = {unit.id: unit for unit in UNITS}

names = st.lists(st.sampled_from(AGENTS), max_size=2, unique=True)
parties = st.builds(
    Party, agents=names, teams=st.lists(st.sampled_from(TEAMS), max_size=1), sessions=st.lists(st.sampled_from(SESSIONS), max_size=1)
)
policies = st.builds(
    Policy.model_construct,
    id=st.just("p"),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True),
    source=parties,
    to=parties,
    among=st.sampled_from(Among),
    scope=st.sampled_from([PLACES[0], PLACES[0], *PLACES[1:]]),
    to_scope=st.sampled_from([PLACES[0], PLACES[0], *PLACES[1:]]),
    expires_at=st.sampled_from([None, None, NOW - timedelta(hours=1), NOW + timedelta(hours=1)]),
    revoked_at=st.sampled_from([None, None, None, NOW]),
    reason=st.just("A test."),
)
standings = st.builds(
    Standing,
    policies=st.lists(policies, max_size=6).map(tuple),
    teams=st.fixed_dictionaries({team: st.frozensets(st.sampled_from(AGENTS), max_size=3) for team in TEAMS}),
)


@dataclass(frozen=True)
class Reader:
    agent: str
    session: str | None
    role: Role
    place: Scope
    bound: bool = False
    """Whether the key is bound to the place."""


readers = st.builds(
    Reader,
    agent=st.sampled_from(AGENTS),
    session=st.sampled_from([None, *SESSIONS]),
    role=st.sampled_from([Role.AGENT, Role.AGENT, Role.AGENT, Role.ANALYST]),
    place=st.sampled_from(PLACES),
    bound=st.booleans(),
)


def may_see(unit: ContextUnit, reader: Reader, standing: Standing) -> bool:
    """The promise, word by word, without any thought of speed."""
    writer, session = unit.metadata.agent_id, unit.metadata.session_id
    here = unit.scope in (
        Scope(),
        Scope(organization_id=reader.place.organization_id) if reader.place.organization_id else Scope(),
        reader.place,
    )
    below = reader.place.assessment_id is None and unit.scope.organization_id == reader.place.organization_id
    within = not reader.bound or unit.scope == reader.place or below or reader.place == Scope()
    if here and reader.role is not Role.AGENT and within:
        return True
    if here and unit.trust in (Trust.NORMATIVE, Trust.APPROVED_ARTIFACT):
        return True
    if here and writer == reader.agent and (reader.session is None or session is None or session == reader.session):
        return True
    return any(opens(policy, unit, here, reader, standing) for policy in standing.policies)


def opens(policy: Policy, unit: ContextUnit, here: bool, reader: Reader, standing: Standing) -> bool:
    in_force = policy.revoked_at is None and (policy.expires_at is None or policy.expires_at > datetime.now(UTC))
    there = here if policy.scope == Scope() else unit.scope == policy.scope
    # A bound key is reached from another place only by a policy that names where the key is.
    reachable = not reader.bound or reader.place == Scope() or policy.scope == Scope() or policy.to_scope != Scope()
    return (
        in_force
        and reachable
        and there
        and unit.kind in policy.kinds
        and named(policy.source, unit.metadata.agent_id, unit.metadata.session_id, standing)
        and named(policy.to, reader.agent, reader.session, standing)
        and related(policy.among, unit, reader, standing)
        and policy.to_scope.organization_id in (None, reader.place.organization_id)
        and policy.to_scope.assessment_id in (None, reader.place.assessment_id)
    )


def named(party: Party, agent: str | None, session: str | None, standing: Standing) -> bool:
    if party.sessions and session not in party.sessions:
        return False
    if not party.agents and not party.teams:
        return True
    return agent in party.agents or any(agent in standing.teams.get(team, frozenset()) for team in party.teams)


def related(among: Among, unit: ContextUnit, reader: Reader, standing: Standing) -> bool:
    writer, session = unit.metadata.agent_id, unit.metadata.session_id
    if among is Among.AGENT:
        return writer == reader.agent
    if among is Among.SESSION:
        return session is not None and session == reader.session
    if among is Among.TEAM:
        return any(writer in agents and reader.agent in agents for agents in standing.teams.values())
    return True


@pytest.fixture(scope="module")
def tenant_of_all(service: Service) -> str:
    tenant = f"visibility-{datetime.now(UTC).timestamp():.6f}"
    for owner in (tenant, f"{tenant}-stranger"):
        for place in PLACES:
            admin = service.lastro.registry.local(owner, "admin")
            service.run(service.lastro.registry.ensure_tenant(admin))
            scope = service.lastro.registry.seen_by(admin, admin.principal, place.organization_id, place.assessment_id)
            known = {unit.id for unit in UNITS if unit.scope == place}
            batch = [
                unit.model_copy(update={"relations": [item for item in unit.relations if item.target_id in known]})
                for unit in UNITS
                if unit.scope == place
            ]
            service.run(service.lastro.ingest.write(scope, batch))
    return tenant


@settings(max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(standing=standings, reader=readers, by_place=st.booleans())
def test_what_the_database_shows_is_what_the_model_says(
    service: Service, tenant_of_all: str, standing: Standing, reader: Reader, by_place: bool
) -> None:
    admin = service.lastro.registry.local(tenant_of_all, "admin")
    principal = Principal(
        tenant_of_all, reader.agent, reader.role, "k", reader.place if reader.bound else Scope(), reader.session, standing=standing
    )
    scope = service.lastro.registry.seen_by(admin, principal, reader.place.organization_id, reader.place.assessment_id)
    expected = {unit.id for unit in UNITS if may_see(unit, reader, standing)}
    store = service.lastro.units
    assert {item.unit.id for item in service.run(store.read_many(scope, list(BY_ID)))} == expected
    assert {item.id for item in service.run(store.page(scope, limit=200)).units} == expected
    assert {item.id for item in service.run(store.page(scope, task_id="t", limit=200)).units} == expected
    assert reached(service, scope) <= expected
    found = service.run(store.read_with_needs(scope, list(BY_ID), most=200))
    assert {item.unit.id for item in found} == expected
    # A reader with more grounds than fit into a query of the index asks by place; the answer is the same.
    with patch.object(access, "MOST_TERMS", 0 if by_place else 400):
        assert searched(service, scope) == expected
    for item in found:
        assert {relation.target_id for relation in item.unit.relations} <= expected


def reached(service: Service, scope: AuthorizedScope) -> set[str]:
    """Everything that a walk from every unit gets to."""
    weights = {direction: dict.fromkeys(EdgeType, 1.0) for direction in ("out", "in")}
    walk = Walk(weights=weights, decay=0.9, fan=16, sample=64, looked_at=128, width=64, limit=200)
    found = service.run(
        ContextStore(service.lastro.database).traverse(scope, dict.fromkeys(BY_ID, 1.0), walk, Window(as_of_us=FOREVER_US), deadline_s=20.0)
    )
    return {item.id for item in found.candidates}


def searched(service: Service, scope: AuthorizedScope) -> set[str]:
    """Everything that search finds: by words, over a name that all share, by place in the sessions, and by tier."""
    database = service.lastro.database
    store, window = SearchStore(database), Window(as_of_us=FOREVER_US)
    by_text = service.run(store.by_text(scope, ["seen"], window, None, 400, deadline_s=20.0))
    by_name = service.run(store.over_entities(scope, [], [STATION], window, None, 400, deadline_s=20.0))
    sessions = {unit.metadata.session_id for unit in UNITS} - {None}
    places = [(str(session), place) for session in sessions for place in range(1, len(UNITS) + 1)]
    beside = {item.candidate.id for item in service.run(store.at_places(scope, places, window, None, deadline_s=20.0))}
    tiers = {
        item.id
        for session in sessions
        for item in service.run(TierStore(database).of_session(scope, str(session), window, 400, deadline_s=20.0))
    }
    found = {item.candidate.id for item in by_text.hits}
    assert found == {item.candidate.id for item in by_name.hits}
    assert beside == tiers == {unit_id for unit_id in found if BY_ID[unit_id].metadata.session_id is not None}
    return found
