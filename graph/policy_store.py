"""Policies and teams in the graph."""

from __future__ import annotations

from datetime import datetime

from graph.audit_store import AuditStore
from graph.connection import Database, WriteTransaction
from graph.model.audit import AuditAction
from graph.model.base import parse
from graph.model.errors import NotFound, TooManyPolicies
from graph.model.policy import MAX_POLICIES, MAX_TEAMS, Policy, PolicyRequest, Standing, Team
from graph.model.scope import AuthorizedScope
from graph.statements import Row
from graph.tenant_lock import hold_tenant, lock_tenant
from graph.unit_rows import as_datetime


class PolicyStore:
    """Reads and writes a tenant's policies and teams. Every change raises the tenant's policy epoch and is written into the audit trail."""

    def __init__(self, database: Database, audit: AuditStore) -> None:
        self._database = database
        self._audit = audit

    async def standing(self, scope: AuthorizedScope) -> Standing:
        """Policies that are not revoked and teams of the tenant."""
        kept = tuple(policy for policy in await self.policies(scope) if policy.revoked_at is None)
        return Standing(kept, {team.id: frozenset(team.agents) for team in await self.teams(scope)})

    async def policies(self, scope: AuthorizedScope) -> list[Policy]:
        """The tenant's policies, newest first, revoked ones too."""
        return [_policy(row) for row in await self._database.read("policies/list_policies", scope)]

    async def teams(self, scope: AuthorizedScope) -> list[Team]:
        """The tenant's teams, by id."""
        rows = await self._database.read("policies/list_teams", scope)
        return [Team.model_construct(id=str(row["id"]), agents=list(row["agents"])) for row in rows]

    async def create(self, scope: AuthorizedScope, policy: Policy) -> None:
        """Store a policy.

        Raises:
            TooManyPolicies: the tenant has as many in force as it may have.
        """

        async def work(transaction: WriteTransaction) -> None:
            await self._changing(transaction, scope)
            kept = await transaction.run("policies/list_policies", scope)
            others = [_policy(row) for row in kept if row["revoked_at"] is None and row["id"] != policy.id]
            if sum(other.expires_at is None or other.expires_at > policy.created_at for other in others) >= MAX_POLICIES:
                raise TooManyPolicies
            body = PolicyRequest.model_validate(policy.model_dump(include=set(PolicyRequest.model_fields), by_alias=False))
            await transaction.run(
                "policies/create_policy",
                scope,
                id=policy.id,
                body=body.model_dump_json(),
                created_by=policy.created_by,
                created_at=policy.created_at.isoformat(),
            )
            await self._audit.append(transaction, scope, AuditAction.POLICY_CREATED, policy.id, reason=policy.reason)

        await self._database.write("policies/create_policy", work)

    async def revoke(self, scope: AuthorizedScope, policy_id: str, at: datetime, reason: str | None) -> None:
        """End a policy at once.

        Raises:
            NotFound: the tenant has no such policy.
        """

        async def work(transaction: WriteTransaction) -> None:
            await self._changing(transaction, scope)
            if not await transaction.run("policies/revoke_policy", scope, id=policy_id, revoked_at=at.isoformat()):
                raise NotFound
            await self._audit.append(transaction, scope, AuditAction.POLICY_REVOKED, policy_id, reason=reason)

        await self._database.write("policies/revoke_policy", work)

    async def save_team(self, scope: AuthorizedScope, team: Team) -> None:
        """Make a team, or say anew who is in it."""

        async def work(transaction: WriteTransaction) -> None:
            await self._changing(transaction, scope)
            if len({str(row["id"]) for row in await transaction.run("policies/list_teams", scope)} | {team.id}) > MAX_TEAMS:
                raise TooManyPolicies("The tenant has as many teams as it may have.", hint="Remove some.")
            await transaction.run("policies/save_team", scope, id=team.id, agents=sorted(set(team.agents)))
            await self._audit.append(transaction, scope, AuditAction.TEAM_CHANGED, team.id, numbers={"agents": len(set(team.agents))})

        await self._database.write("policies/save_team", work)

    async def remove_team(self, scope: AuthorizedScope, team_id: str) -> None:
        """Take a team away.

        Raises:
            NotFound: the tenant has no such team.
        """

        async def work(transaction: WriteTransaction) -> None:
            await self._changing(transaction, scope)
            removed = await transaction.run("policies/remove_team", scope, id=team_id)
            if not removed or not removed[0]["removed"]:
                raise NotFound
            await self._audit.append(transaction, scope, AuditAction.TEAM_CHANGED, team_id, numbers={"agents": 0})

        await self._database.write("policies/remove_team", work)

    async def _changing(self, transaction: WriteTransaction, scope: AuthorizedScope) -> None:
        """First of every change: the tenant is there and its other writers wait, and replicas will know that what they hold is old."""
        await lock_tenant(transaction, scope)
        await transaction.run("policies/raise_policy_epoch", scope)

    async def record_crossing(self, scope: AuthorizedScope, place: str, units: int) -> None:
        """Write down that a reader was given units of another place than its own (T5)."""

        async def work(transaction: WriteTransaction) -> None:
            await hold_tenant(transaction, scope)
            await self._audit.append(transaction, scope, AuditAction.CROSS_ASSESSMENT_READ, place, numbers={"units": units})

        await self._database.write("audit/create_event", work)


def _policy(row: Row) -> Policy:
    asked = parse(PolicyRequest, str(row["body"]))
    return Policy.model_construct(
        **{name: getattr(asked, name) for name in PolicyRequest.model_fields},
        id=str(row["id"]),
        created_by=str(row["created_by"]),
        created_at=as_datetime(row["created_at"]),
        revoked_at=None if row["revoked_at"] is None else as_datetime(row["revoked_at"]),
    )
