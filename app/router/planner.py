"""Which strategy answers which query, from a table."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from adapters.base import Adapter
from adapters.registry import AdapterRegistry
from graph.context_store import Window
from graph.model.errors import ApiNotOffered, BudgetTooSmall, InvalidBudget, QueryNotSupported, UnknownModel
from graph.model.query import ContextQuery, QueryType, StrategyName
from graph.model.scope import AuthorizedScope
from graph.order_keys import FOREVER_US, MAX_STEP, microseconds

TIME_SHARES: dict[StrategyName, float] = {
    StrategyName.TRAVERSAL: 0.6,
    StrategyName.HYBRID: 0.6,
    StrategyName.RETRIEVAL: 0.6,
    StrategyName.TIERS: 0.5,
    StrategyName.TEXT: 0.5,
    StrategyName.RECENCY: 0.5,
}
"""What each strategy may take of the time that remains when it begins; the rest is for its fallbacks, for loading and for rendering."""


SENDING_SHARE = 0.05
MOST_SENDING_S = 0.05
"""Of the time of a query, what is kept for putting the answer together and sending it: a share, and how much at the most."""


@dataclass(frozen=True, slots=True)
class Route:
    """What answers a type of query, what follows when it does not answer in time, and why."""

    strategy: StrategyName
    fallbacks: tuple[StrategyName, ...]
    why: str


ROUTES: dict[QueryType, Route] = {
    QueryType.AROUND_UNIT: Route(StrategyName.TRAVERSAL, (StrategyName.RECENCY,), "around a unit, what it is linked to matters most"),
    QueryType.AROUND_TASK: Route(
        StrategyName.TRAVERSAL, (StrategyName.RECENCY,), "around a task, what its newest units are linked to matters most"
    ),
    QueryType.STEP: Route(
        StrategyName.HYBRID, (StrategyName.TRAVERSAL, StrategyName.RECENCY), "for a step, what led to it and what shares its names matter"
    ),
    QueryType.SESSION: Route(StrategyName.TIERS, (StrategyName.RECENCY,), "of a session, what is recent or in use matters most"),
    QueryType.TOPIC: Route(
        StrategyName.RETRIEVAL, (StrategyName.TEXT,), "about a topic, what says the same or stands beside it matters most"
    ),
    QueryType.TOPIC_AROUND: Route(
        StrategyName.HYBRID, (StrategyName.TEXT, StrategyName.RECENCY), "about a topic in a place, what fits both matters most"
    ),
}


NEEDS: dict[StrategyName, tuple[str, ...]] = {
    StrategyName.TRAVERSAL: ("unit_id", "task_id"),
    StrategyName.RECENCY: ("unit_id", "task_id", "session_id"),
    StrategyName.TIERS: ("session_id",),
    StrategyName.RETRIEVAL: ("topic", "question"),
    StrategyName.TEXT: ("topic", "question"),
    StrategyName.HYBRID: ("unit_id", "task_id", "session_id", "topic"),
}
"""Fields of a query of which a strategy needs one to start from."""


def has_start(query: ContextQuery, strategy: StrategyName) -> bool:
    """Whether a query gives a strategy something to start from."""
    return any(getattr(query, name) is not None for name in NEEDS[strategy])


@dataclass(frozen=True, slots=True)
class Plan:
    """A query with everything decided: how, for which model, within which budget and until when."""

    query: ContextQuery
    scope: AuthorizedScope
    query_type: QueryType
    strategies: tuple[StrategyName, ...]
    """The one chosen, then its fallbacks."""
    why: str
    adapter: Adapter | None
    """None when no payload is wanted and no model is named; counts are then in o200k_base."""
    model: str
    window: Window
    ends: float
    """When what is read for the answer must be there, by ``time.monotonic``; a little before its deadline."""

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline; 0 when it has passed."""
        return max(self.ends - monotonic(), 0.0)

    @property
    def session_id(self) -> str | None:
        """The session that the caller asks from, or else about."""
        return self.scope.principal.session_id or self.query.session_id

    def base_tokens(self) -> int:
        """What an answer without any unit costs, in the target model's tokens."""
        return self.adapter.base_tokens(self.query.question) if self.adapter is not None and self.query.render else 0


class Planner:
    """Turns a query into a plan."""

    def __init__(self, adapters: AdapterRegistry) -> None:
        self._adapters = adapters

    def plan(self, query: ContextQuery, scope: AuthorizedScope, started: float) -> Plan:
        """Decide type, strategy, adapter and times. ``started`` is when the request came, by ``time.monotonic``.

        Raises:
            QueryNotSupported: the fields given do not make a query.
            UnknownModel, ApiNotOffered: no adapter knows the model, or none speaks that API to it.
            InvalidBudget, BudgetTooSmall: the budget is over the model's window, or under the frame.
        """
        query_type = type_of(query)
        route = ROUTES[query_type]
        strategies, why = (route.strategy, *route.fallbacks), route.why
        if query.strategy is not StrategyName.AUTO and query.strategy is not route.strategy:
            strategies, why = (query.strategy, *(name for name in strategies if name is not query.strategy)), "the caller named it"
            if not has_start(query, query.strategy):
                needed = " or ".join(NEEDS[query.strategy])
                raise QueryNotSupported(f"The strategy {query.strategy} needs {needed}.").at(field="strategy")
        model = query.model if query.model is not None else scope.principal.model
        if query.api is not None and model is None:
            raise QueryNotSupported("An API belongs to a model.", hint="Give a model with it, or leave `api` out.").at(field="api")
        adapter = self._adapter(model, query.api) if model is not None else None
        plan = Plan(
            query=query,
            scope=scope,
            query_type=query_type,
            strategies=strategies,
            why=why,
            adapter=adapter,
            model=model or "",
            window=Window(
                task_id=query.task_id or "",
                step=query.step if query.step is not None else MAX_STEP,
                as_of_us=microseconds(query.as_of) if query.as_of is not None else FOREVER_US,
            ),
            ends=started + query.deadline_ms / 1000 - min(query.deadline_ms / 1000 * SENDING_SHARE, MOST_SENDING_S),
        )
        if adapter is not None and query.budget_tokens > adapter.profile.window_tokens:
            raise InvalidBudget(f"The budget is over the model's window of {adapter.profile.window_tokens} tokens.").at(
                field="budget_tokens"
            )
        if query.budget_tokens < plan.base_tokens():
            raise BudgetTooSmall(f"The frame alone costs {plan.base_tokens()} tokens for this model.").at(field="budget_tokens")
        return plan

    def _adapter(self, model: str, api: str | None) -> Adapter:
        try:
            return self._adapters.for_model(model, api)
        except UnknownModel as error:
            raise error.at(field="model") from None
        except ApiNotOffered as error:
            raise error.at(field="api") from None


def type_of(query: ContextQuery) -> QueryType:
    """What a query asks about, by which fields it gives.

    Raises:
        QueryNotSupported: none or too many of them.
    """
    given = [name for name in ("unit_id", "task_id", "session_id") if getattr(query, name) is not None]
    if query.step is not None:
        if given != ["task_id"]:
            raise QueryNotSupported("A step belongs to a task: give task_id with it, and neither unit_id nor session_id.")
        return QueryType.TOPIC_AROUND if query.topic is not None else QueryType.STEP
    if query.topic is not None and len(given) <= 1:
        return QueryType.TOPIC_AROUND if given else QueryType.TOPIC
    match given:
        case ["unit_id"]:
            return QueryType.AROUND_UNIT
        case ["task_id"]:
            return QueryType.AROUND_TASK
        case ["session_id"]:
            return QueryType.SESSION
        case _:
            raise QueryNotSupported
