"""Who may see a unit, as terms of the full-text index: a search then finds only what its caller may see, in a large tenant too (S5).

A unit carries a term for each ground on which ``cypher/visible.predicate`` can open it; a reader asks for the terms of the grounds that it has.
The tenant is part of every ground. Terms are short hashes, so two may meet by chance: the predicate has the last word in every statement.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from graph.model.scope import AuthorizedScope
from graph.model.search_text import index_clause
from graph.model.units import ALL_KINDS, Trust

TERM_BYTES = 5
"""Of each hash: eight characters. One in 10^12 pairs meets, which costs a row that the predicate refuses."""
MOST_TERMS = 400
"""Terms of one reader that go into a query (an engine takes 1,024 clauses). A reader with more grounds asks by place, and reads more."""
MOST_PLACES = 1_000
UNREAD_MARGIN = 8
"""How many times more is read where a reader's grounds do not fit into a query."""


@dataclass(frozen=True, slots=True)
class Access:
    """A reader's side of it."""

    clause: str
    """For Lucene's parser: the reader's grounds, which do not move the score. Empty when the reader sees nothing."""
    exact: bool
    """False when the grounds are too many, and whole places are asked for: ask for ``UNREAD_MARGIN`` times more."""


@lru_cache(maxsize=10_000)
def access_text(tenant_id: str, scope_key: str, trust: str, kind: str, agent_id: str, session_id: str | None) -> str:
    """The terms of a unit, separated by spaces."""
    session = session_id or ""
    grounds = [
        ("everything", tenant_id, scope_key),
        ("kind", tenant_id, scope_key, kind),
        ("agent", tenant_id, scope_key, agent_id),
        ("agent", tenant_id, scope_key, agent_id, kind),
        ("session", tenant_id, scope_key, session),
        ("session", tenant_id, scope_key, session, kind),
        ("owner", tenant_id, scope_key, agent_id, session),
        ("owner", tenant_id, scope_key, agent_id, session, kind),
    ]
    if Trust(trust).authority:
        grounds.append(("trust", tenant_id, scope_key, trust))
    return " ".join(_term(*ground) for ground in grounds)


def access_of(scope: AuthorizedScope) -> Access:
    """What a reader asks the index for."""
    tenant = scope.tenant_id
    places = [(tenant, key, cast("Mapping[str, object]", place)) for key, place in scope.sees.items()]
    terms = list(dict.fromkeys(term for place in places for term in _grounds(*place)))
    exact = len(terms) <= MOST_TERMS
    if not exact:
        terms = [_term("everything", tenant, key) for _, key, _ in places][:MOST_PLACES]
    if not terms:
        return Access("", exact=True)
    return Access(f"{index_clause('access', terms)}^0", exact)


def _grounds(tenant: str, key: str, place: Mapping[str, object]) -> Iterator[str]:
    if place["everything"]:
        yield _term("everything", tenant, key)
        return
    for trust in cast("Sequence[str]", place["trusts"]):
        yield _term("trust", tenant, key, trust)
    for kind in cast("Sequence[str]", place["any_writer"]):
        yield _term("kind", tenant, key, kind)
    for name, by in (("agent", place["agents"]), ("session", place["sessions"])):
        for who, kinds in cast("Mapping[str, Sequence[str]]", by).items():
            yield from _by_kind(kinds, name, tenant, key, who)
    for agent, sessions in cast("Mapping[str, Mapping[str, Sequence[str]]]", place["owners"]).items():
        for session, kinds in sessions.items():
            yield from _by_kind(kinds, "owner", tenant, key, agent, session)


def _by_kind(kinds: Sequence[str], *ground: str) -> Iterator[str]:
    if set(ALL_KINDS).issubset(kinds):
        yield _term(*ground)
    else:
        for kind in kinds:
            yield _term(*ground, kind)


@lru_cache(maxsize=50_000)
def _term(*ground: str) -> str:
    # Ids hold no control characters, so two grounds never make one text.
    said = "\x00".join(ground).encode()
    return base64.b32encode(hashlib.blake2b(said, digest_size=TERM_BYTES).digest()).decode().lower()
