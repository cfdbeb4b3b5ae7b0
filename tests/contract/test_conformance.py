"""A6: the conformance kit passes for every adapter that there is, and finds what is broken in those that were broken on purpose."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from contract.broken_adapters import broken
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from adapters.base import Adapter, Toolbox
from adapters.conformance import Case, Report, State, Subject, assert_conforms, assert_fenced, attacks, cases, run, vendor_types
from adapters.conformance.cases import case_of, unit
from adapters.conformance.places import places
from adapters.conformance.strategies import conformance_cases
from adapters.conformance.ties import tied, ties_of
from adapters.profile import Api, Family, Profile, built_in_families
from adapters.registry import AdapterRegistry
from adapters.tokenizers import Tokenizers
from app.cli.main import app
from graph.model.answer import CountMethod
from graph.model.errors import CommandRefused, SettingsInvalid, UnknownModel

TOKENIZERS = Tokenizers(ctok=False)
FAMILIES = built_in_families()
APIS = [(family, api) for family in FAMILIES for api in (family.main_api, *family.apis)]
NUMBERS = {"name", "patterns", "window"}
"""What of a profile changes no payload: two that differ in these alone are one to the kit, which takes seconds for each."""
PROFILES = list(
    {
        (api.api, profile.model_dump_json(exclude=NUMBERS | {"framing", "attention"}), str(profile.attention.instructions_at_both_ends)): (
            family,
            api,
            profile,
        )
        for family, api in APIS
        for profile in (*family.profiles, family.default)
    }.values()
)
MODEL = "gpt-4o"


def subject_of(api: Api, profile: Profile, model: str = "some-model") -> Subject:
    module, _, name = api.builder.partition(":")
    builder = getattr(importlib.import_module(module), name)
    return Subject(lambda: builder(profile, Toolbox(TOKENIZERS, b"k" * 32)), model, TOKENIZERS)


def subject_for(model: str, wrap: Callable[[Adapter], Adapter] = lambda inner: inner) -> Subject:
    return Subject(lambda: wrap(AdapterRegistry(b"k" * 32, tokenizers=TOKENIZERS, plugins=[]).for_model(model)), model, TOKENIZERS)


def failed(report: Report) -> set[str]:
    return {row.check for row in report.rows if row.state is State.FAILED}


@pytest.mark.parametrize(("api", "profile"), [pytest.param(*each[1:], id=f"{each[1].api}: {each[2].name}") for each in PROFILES])
def test_every_adapter_conforms(api: Api, profile: Profile) -> None:
    report = run(subject_of(api, profile))
    assert report.failures == ()
    assert report.conforms
    # With the SDKs of the dev group, nothing is left unchecked.
    assert report.complete
    assert all(row.cases for row in report.rows)


@pytest.mark.parametrize(("name", "rule", "wrap"), [pytest.param(*each, id=each[0]) for each in broken()])
def test_what_is_broken_on_purpose_is_found(name: str, rule: str, wrap: Callable[[Adapter], Adapter]) -> None:
    report = run(subject_for(MODEL, wrap))
    assert not report.conforms
    assert rule in failed(report), f"{name}: only {failed(report)}"
    found = [failure for failure in report.failures if failure.check == rule]
    assert found
    assert all(failure.case and failure.what for failure in found)


def test_broken_ones_are_found_by_the_rule_that_they_break_and_few_others() -> None:
    """What each rule finds alone, so that none of them could be left out."""
    alone = {rule: set[str]() for _, rule, _ in broken()}
    for name, rule, wrap in broken():
        if failed(run(subject_for(MODEL, wrap))) == {rule}:
            alone[rule].add(name)
    assert {rule for rule, names in alone.items() if names} >= {
        "order is told",
        "priority order",
        "vendor types",
        "cost foretold",
        "fence",
        "sendable",
    }


@given(data=st.data(), chosen=st.sampled_from(APIS))
@settings(max_examples=60, deadline=None, database=None)
def test_cases_by_chance_conform(data: st.DataObject, chosen: tuple[Family, Api]) -> None:
    family, api = chosen
    profile = data.draw(st.sampled_from([*family.profiles, family.default]), label="profile")
    assert_conforms(subject_of(api, profile), data.draw(conformance_cases("some-model")))


@pytest.mark.parametrize(("family", "api"), [pytest.param(*each, id=each[1].api) for each in APIS])
def test_native_calls_are_looked_at_wherever_a_vendor_has_them(family: Family, api: Api) -> None:
    """Or the kit would pass what it does not see: the same calls and results are found in every vendor's form."""
    subject = subject_of(api, family.default)
    case = next(case for case in cases("some-model") if case.name == "native tool calls")
    ties = ties_of(subject.make().render(case.request).rendered.payload)
    assert (len(ties) > 0) is (family.default.pairs is not None)
    assert sum(tie.is_call for tie in ties) * 2 == len(ties)


@pytest.mark.parametrize("case", cases(MODEL), ids=str)
def test_a_third_party_can_use_it_in_pytest(case: Case) -> None:
    assert_conforms(subject_for(MODEL), case)


def test_a_third_party_sees_what_is_wrong() -> None:
    wraps = {name: wrap for name, _, wrap in broken()}
    subject = subject_for(MODEL, wraps["drops the last unit"])
    with pytest.raises(AssertionError, match='represented once: the text of unit "u-1" stands in the payload 0 times'):
        assert_conforms(subject, next(case for case in cases(MODEL) if case.name == "one unit"))
    assert_fenced(subject_for(MODEL))
    with pytest.raises(AssertionError, match="fence: attack by text"):
        assert_fenced(subject_for(MODEL, wraps["escapes nothing"]))


def test_an_adapter_that_raises_fails_and_the_other_cases_are_still_seen() -> None:
    def wrap(inner: Adapter) -> Adapter:
        class Refuses:
            profile = inner.profile
            base_tokens = staticmethod(inner.base_tokens)
            unit_tokens = staticmethod(inner.unit_tokens)

            @staticmethod
            def render(request: object) -> object:
                if not request.items:  # type: ignore[attr-defined]
                    raise KeyError("nothing")
                return inner.render(request)  # type: ignore[arg-type]

        return Refuses()  # type: ignore[return-value]

    report = run(subject_for(MODEL, wrap))
    assert [failure.what for failure in report.failures if failure.check == "renders"] == ["render raised KeyError"] * 2
    assert failed(report) == {"renders"}


def test_without_the_sdk_it_says_that_nobody_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor_types.validator.cache_clear()
    real = importlib.import_module

    def missing(name: str, package: str | None = None) -> object:
        if name.split(".", maxsplit=1)[0] in {"openai", "anthropic"}:
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
    report = run(subject_for(MODEL))
    monkeypatch.undo()
    vendor_types.validator.cache_clear()
    row = next(row for row in report.rows if row.check == "vendor types")
    assert (row.state, row.cases, row.why) == (State.NOT_CHECKED, 0, "the package openai is not installed")
    assert report.conforms
    assert not report.complete


def test_without_ranks_the_bounds_are_still_checked() -> None:
    blind = Tokenizers(sources=[], ctok=False)

    def make() -> Adapter:
        return AdapterRegistry(b"k" * 32, tokenizers=blind, plugins=[]).for_model(MODEL)

    # Counted again by one that has its ranks: the estimate's bounds hold for it, but for long runs of one character, as it says itself.
    report = run(Subject(make, MODEL, TOKENIZERS))
    assert {failure.case for failure in report.failures if failure.check == "count within bounds"} == {"a very long blank"}
    assert make().render(cases(MODEL)[2].request).tokens.method is CountMethod.ESTIMATE


def test_the_cases_are_the_same_each_time_and_each_mark_is_its_own() -> None:
    first, again = (json.dumps([repr(case.request) for case in cases(MODEL)]) for _ in range(2))
    assert first == again
    for case in [*cases(MODEL), *attacks(subject_for(MODEL))]:
        assert len(set(case.marks.values())) == len(case.marks) == len(case.request.items)


def test_texts_of_authority_come_first_and_every_text_is_read() -> None:
    payload = {
        "model": "m",
        "contents": [{"role": "user", "parts": [{"text": "evidence"}, {"functionResponse": {"response": {"out": ["deep"]}}}]}],
        "config": {"system_instruction": {"parts": [{"text": "policy"}]}},
        "tools": [{"name": "t", "description": "what it does"}],
    }
    read = [(place.text, place.authority, place.role, place.turn) for place in places(payload) if not place.is_name]
    assert read == [
        ("policy", True, "", -1),
        ("t", True, "", 0),
        ("what it does", True, "", 0),
        ("evidence", False, "user", 0),
        ("deep", False, "user", 0),
    ]
    chat = {"messages": [{"content": "late role", "role": "system"}, {"role": "user", "content": "x"}]}
    assert [(place.text, place.authority, place.turn) for place in places(chat) if not place.is_name] == [
        ("late role", True, 0),
        ("x", False, 1),
    ]


def test_a_very_deep_payload_is_read_without_recursion() -> None:
    deep: object = "bottom"
    for _ in range(100_000):
        deep = [deep]
    assert [place.text for place in places({"messages": deep})] == ["bottom"]


def test_a_lower_priority_in_a_better_place_is_named() -> None:
    case = case_of("three", MODEL, [[unit(f"u-{n}", "Text.")] for n in range(3)])
    turned = replace(case.request, items=case.request.items[::-1])
    worst = replace(case, request=turned)
    assert_conforms(subject_for(MODEL), worst)
    wraps = {name: wrap for name, _, wrap in broken()}
    with pytest.raises(AssertionError, match="priority order: the block of priority"):
        assert_conforms(subject_for(MODEL, wraps["puts the worst first"]), case)


CALL = {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]}
RESULTS = [{"role": "tool", "tool_call_id": "b"}, {"role": "tool", "tool_call_id": "a"}]


@pytest.mark.parametrize(
    ("turns", "wrong"),
    [
        ([CALL, *RESULTS], []),
        ([*RESULTS, CALL], ["a result answers no call that stands before it"] * 2 + ["2 calls have no result"]),
        ([CALL, RESULTS[0]], ["1 calls have no result"]),
        ([CALL, RESULTS[0], {"role": "user", "content": "x"}, RESULTS[1]], ["a turn of another kind stands between a call and its result"]),
        ([CALL, *RESULTS, RESULTS[0]], ["a result answers a call that was answered before"]),
        ([CALL, CALL, *RESULTS], ["two calls that are not answered have the same id"] * 2),
        (
            [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]},
                {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "a"}]},
            ],
            ["something else stands before a result in its turn"],
        ),
        ([{"type": "function_call", "call_id": "a"}, {"type": "function_call_output", "call_id": "a"}], []),
        (
            [
                {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "g"}}]},
            ],
            ["a result answers no call that stands before it", "1 calls have no result"],
        ),
    ],
)
def test_results_answer_calls_as_vendors_demand(turns: list[dict[str, object]], wrong: list[str]) -> None:
    assert list(tied({"messages": turns})) == wrong


@pytest.mark.parametrize(
    ("words", "code", "model"),
    [
        (["gpt-4o"], 0, "gpt-4o"),
        (["--adapter", "adapters.gpt_chat:GptChat"], 0, "any-model"),
        (["gpt-4o", "--adapter", "contract.broken_adapters:counts_half_builder"], 1, "gpt-4o"),
    ],
)
def test_the_command_says_what_failed_where(words: list[str], code: int, model: str) -> None:
    done = CliRunner().invoke(app, ["conformance", *words, "--json"])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["conforms"], told["complete"], told["model"]) == (code, code == 0, True, model)
    states = {row["rule"]: row["state"] for row in told["rules"]}
    assert set(states.values()) == ({"passed"} if code == 0 else {"passed", "failed"})
    assert (states["count within bounds"] == "failed") is (code == 1)
    assert all(failure["rule"] == "count within bounds" and failure["case"] and failure["what"] for failure in told["failures"])
    shown = CliRunner().invoke(app, ["conformance", *words], env={"COLUMNS": "120"})
    assert shown.exit_code == code
    assert ("does not conform" in shown.stdout) is (code == 1)


@pytest.mark.parametrize(
    "words",
    [[], ["no-such-model"], ["--adapter", "no.such:thing"], ["--adapter", "os:getcwd"], ["--adapter", "os"], ["--adapter", "json:loads"]],
    ids=" ".join,
)
def test_what_is_no_adapter_is_refused(words: list[str]) -> None:
    done = CliRunner().invoke(app, ["conformance", *words])
    assert isinstance(done.exception, CommandRefused | UnknownModel), done.exception


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nocolon", "another form"),
        ("os:", "another form"),
        ("..os:path", "another form"),
        ("nopkg.mod:x", "there is no module nopkg"),
        ("json:nothing", "nothing of that name"),
    ],
)
def test_what_is_wrong_with_a_name_is_told_apart(named: str, said: str) -> None:
    done = CliRunner().invoke(app, ["conformance", "--adapter", named])
    assert isinstance(done.exception, CommandRefused)
    assert said in done.exception.message


def test_the_command_knows_the_operators_profiles(tmp_path: Path) -> None:
    profile = """
        extends = "openai-compatible"
        [[profiles]]
        name = "Our own model"
        patterns = ['our-model-.*']
    """
    (tmp_path / "ours.toml").write_text(profile)
    environment = {"LASTRO_PROFILES": str(tmp_path)}
    for words in (["openai-compatible/our-model-7"], ["openai-compatible/our-model-7", "--adapter", "adapters.gpt_chat:GptChat"]):
        done = CliRunner().invoke(app, ["conformance", *words, "--json"], env=environment)
        assert json.loads(done.stdout)["profile"] == "Our own model"
    (tmp_path / "ours.toml").write_text(profile.replace("patterns", "paterns"))
    refused = CliRunner().invoke(app, ["conformance", "gpt-4o", "--json"], env=environment)
    assert isinstance(refused.exception, SettingsInvalid), "as the service that would not start with it"
