"""Every command stands in a table with what it needs, and is tried with every role; a new one without a row fails (R1, T6)."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from api.wire import stored
from conftest import Service, unit
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from app.cli.main import app, run
from app.cli.permissions import NEEDS, Without, declare
from app.registry.permissions import ALLOWED, Action
from graph.model.scope import Role

VERBS: dict[tuple[str, ...], Action] = {
    ("import", "{file}"): Action.WRITE_UNITS,
    ("attachments", "put", "{file}"): Action.WRITE_UNITS,
    ("attachments", "get", "{digest}", "--out", "{out}"): Action.READ_UNITS,
    ("context", "--unit", "{unit}", "--deadline-ms", "20000"): Action.READ_CONTEXT,
    ("migrate-check", "gpt-5.2", "claude-opus-4-8", "--unit", "{unit}"): Action.READ_CONTEXT,
    ("units", "list"): Action.READ_UNITS,
    ("units", "show", "{unit}"): Action.READ_UNITS,
    ("units", "lineage", "{unit}"): Action.READ_UNITS,
    ("keys", "create", "--agent", "worker"): Action.MANAGE_KEYS,
    ("keys", "list"): Action.MANAGE_KEYS,
    ("keys", "rotate", "{key}"): Action.MANAGE_KEYS,
    ("keys", "revoke", "{key}"): Action.MANAGE_KEYS,
    ("policy", "create", "--template", "shared-decisions"): Action.MANAGE_POLICIES,
    ("policy", "list"): Action.MANAGE_POLICIES,
    ("policy", "explain", "{unit}", "--agent", "reader"): Action.MANAGE_POLICIES,
    ("policy", "revoke", "{policy}"): Action.MANAGE_POLICIES,
    ("team", "set", "blue", "--agent", "worker"): Action.MANAGE_POLICIES,
    ("team", "list"): Action.MANAGE_POLICIES,
    ("team", "remove", "red"): Action.MANAGE_POLICIES,
    ("quotas", "list"): Action.MANAGE_QUOTAS,
    ("quotas", "set", "agent", "worker", "--units", "5"): Action.MANAGE_QUOTAS,
    ("quotas", "remove", "team", "red"): Action.MANAGE_QUOTAS,
    ("usage",): Action.READ_USAGE,
    ("usage", "--own"): Action.READ_OWN_USAGE,
    ("ledger",): Action.READ_LEDGER,
    ("audit",): Action.READ_AUDIT,
    ("audit", "--export", "{trail}"): Action.READ_AUDIT,
    ("retention", "show"): Action.MANAGE_RETENTION,
    ("retention", "set", "event", "--days", "400"): Action.MANAGE_RETENTION,
    ("retention", "run", "--dry-run"): Action.MANAGE_RETENTION,
    ("erase", "{unit}"): Action.ERASE_UNITS,
    # The last: nothing is left for another command.
    ("erase", "--tenant", "{tenant}", "--yes"): Action.ERASE_TENANT,
}
LOCAL = {
    "demo": Without.NOTHING,
    "conformance": Without.NOTHING,
    "policy templates": Without.NOTHING,
    "tokens": Without.NOTHING,
    "serve": Without.OPERATOR,
    "reembed": Without.OPERATOR,
    "doctor": Without.OPERATOR,
}
"""Commands that speak to no service; `--version` is none, and needs nothing."""
MARK = "quicksilver"
"""Stands in all that a tenant has, and in no command."""


def commands(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, TyperCommand]]:
    """Every command of a group, by its full name."""
    for name, found in group.commands.items():
        if isinstance(found, TyperGroup):
            yield from commands(found, (*path, name))
        else:
            assert isinstance(found, TyperCommand)
            yield " ".join((*path, name)), found


GROUP = get_command(app)
assert isinstance(GROUP, TyperGroup)
COMMANDS = dict(commands(GROUP))


def command_of(verb: tuple[str, ...]) -> str:
    return next(name for name in (" ".join(verb[:2]), verb[0]) if name in COMMANDS)


@dataclass
class Tenant:
    """A tenant with something for each command, and what its people say."""

    service: Service
    name: str
    folder: Path
    words: dict[str, str]

    def key(self, role: Role) -> str:
        return self.service.key(self.name, MARK, role)

    def called(self, verb: tuple[str, ...], key: str) -> tuple[int, str, str]:
        """Exit code, code of the error, and all that was printed. In this process: starting one for each call would take a second."""
        out, err, code = io.StringIO(), io.StringIO(), 0
        environment = {"LASTRO_URL": self.service.url, "LASTRO_KEY": key, "LASTRO_DATA": str(self.folder)}
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for name in [name for name in os.environ if name.startswith("LASTRO_")]:
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["lastro", *(word.format_map(self.words) for word in verb), "--json"])
            try:
                run()
            except SystemExit as ended:
                code = int(ended.code or 0)
        told = out.getvalue()
        return code, json.loads(told)["error"]["code"] if code else "", told + err.getvalue()


def made(service: Service, name: str, folder: Path) -> Tenant:
    with service.client(service.key(name, MARK)) as writer, service.client(service.key(name, "boss", Role.ADMIN)) as boss:
        digest = hashlib.sha256(MARK.encode()).hexdigest()
        assert writer.put(f"/v1/attachments/{digest}", content=MARK.encode()).status_code == 201
        named = [{"uri": "file:///scan.png", "media_type": "image/png", "sha256": digest}]
        stored(writer, unit("u-1", f"The {MARK} is low.", attachments=named))
        policy = boss.post("/v1/policies", json={"kinds": ["decision"], "from": {"agents": [MARK]}}).json()["id"]
        key = boss.post("/v1/keys", json={"agent_id": MARK}).json()["id"]
        assert boss.put("/v1/teams", json={"id": "red", "agents": [MARK]}).status_code == 200
        assert boss.put("/v1/quotas/team/red?reason=" + MARK, json={"units": 9}).status_code == 200
    file, trail = folder / "units.ndjson", folder / "trail.ndjson"
    file.write_text(json.dumps(unit("u-2")) + "\n")
    return Tenant(
        service,
        name,
        folder,
        {
            "unit": "u-1",
            "policy": policy,
            "key": key,
            "tenant": name,
            "file": str(file),
            "trail": str(trail),
            "digest": digest,
            "out": str(folder / "original"),
        },
    )


@pytest.fixture
def ours(service: Service, tenant: str, tmp_path: Path) -> Tenant:
    return made(service, tenant, tmp_path)


def test_every_command_has_a_rule_and_every_rule_a_command() -> None:
    needed: dict[str, set[Action]] = {}
    for verb, action in VERBS.items():
        needed.setdefault(command_of(verb), set()).add(action)
    assert set(needed) | set(LOCAL) == set(COMMANDS)
    assert {name: set(need) for name, need in NEEDS.items() if not isinstance(need, Without)} == needed
    assert {name: need for name, need in NEEDS.items() if isinstance(need, Without)} == LOCAL


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_speaks_to_a_service_if_it_needs_an_action(name: str) -> None:
    command, options = COMMANDS[name], {parameter.name for parameter in COMMANDS[name].params}
    assert options & {"url", "key"} == ({"url", "key"} if name not in LOCAL else set())
    # Without a service it is the operator who works, on a store.
    assert ({"engine", "data"} <= options) is (LOCAL.get(name) is not Without.NOTHING)
    need = NEEDS[name]
    told = need.value if isinstance(need, Without) else " or ".join(need)
    assert all(word in (command.epilog or "") for word in told.split())


def test_a_command_without_a_rule_is_refused() -> None:
    """At any depth, as soon as it is put together."""
    new, nested = typer.Typer(), typer.Typer()
    new.add_typer(nested, name="units")

    @nested.command()
    def publish() -> None: ...

    with pytest.raises(LookupError, match="lastro units publish"):
        declare(new)


@pytest.mark.parametrize("role", [Role.AGENT, Role.ANALYST])
def test_a_role_may_call_its_commands_and_no_other(ours: Tenant, role: Role) -> None:
    """Two that may little, and not the same; what each role may is tried on every door elsewhere."""
    key = ours.key(role)
    for verb, action in VERBS.items():
        code, error, told = ours.called(verb, key)
        assert (code, error) == ((0, "") if action in ALLOWED[role] else (1, "forbidden")), (verb, told)


def test_a_command_needs_its_action_and_nothing_else(ours: Tenant) -> None:
    """Roles alone would not tell two actions apart that the same roles have."""
    key = ours.key(Role.ADMIN)
    for verb, action in VERBS.items():
        for allowed, expected in ((frozenset(Action) - {action}, (1, "forbidden")), (frozenset({action}), (0, ""))):
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(ALLOWED, Role.ADMIN, allowed)
                code, error, told = ours.called(verb, key)
            assert (code, error) == expected, (verb, sorted(allowed), told)


def test_a_command_tells_an_admin_of_another_tenant_nothing(service: Service, ours: Tenant, other_tenant: str) -> None:
    key = service.key(other_tenant, "boss", Role.ADMIN)
    for verb in VERBS:
        _, error, told = ours.called(verb, key)
        assert MARK not in told, verb
        assert (error in {"not_found", "invalid_field"}) is any(
            word in {"{unit}", "{digest}", "{key}", "{policy}", "{tenant}", "red"} for word in verb
        )
    assert ours.called(("units", "show", "{unit}"), ours.key(Role.ADMIN))[0] == 0, "it is still there"


def test_what_every_role_may_takes_a_key(ours: Tenant) -> None:
    open_to_all = [verb for verb, action in VERBS.items() if all(action in allowed for allowed in ALLOWED.values())]
    assert len(open_to_all) >= 5
    for verb in open_to_all:
        code, error, told = ours.called(verb, "lastro_0123456789abcdef_" + "x" * 43)
        assert (code, error) == (1, "unauthenticated"), (verb, told)


def test_who_names_the_tenant_and_may_not_ask_for_it_is_told_so(ours: Tenant) -> None:
    """And not that the command is forbidden, which it is not."""
    key = ours.key(Role.AGENT)
    code, error, told = ours.called(("erase", "{unit}", "--tenant", "{tenant}"), key)
    assert (code, error) == (2, "command_refused")
    assert "Leave it out" in told
    assert ours.called(("units", "show", "{unit}"), key)[0] == 0
