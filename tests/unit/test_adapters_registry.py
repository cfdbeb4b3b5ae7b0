"""A1: a model id finds its family and profile, and another package can add a family."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from importlib.resources import files
from pathlib import Path

import pytest

from adapters.base import Adapter, RenderRequest, Toolbox
from adapters.profile import Family, Profile, built_in_families
from adapters.registry import GROUP, AdapterRegistry
from adapters.tokenizers import Tokenizers
from graph.model import errors
from graph.model.answer import CountMethod

KEY = b"k" * 32


@pytest.fixture(scope="module")
def registry() -> AdapterRegistry:
    return AdapterRegistry(KEY, plugins=[])


@pytest.mark.parametrize(
    ("model", "profile"),
    [
        ("gpt-3.5-turbo-0125", "GPT-3.5"),
        ("gpt-4", "GPT-4"),
        ("gpt-4-0613", "GPT-4"),
        ("gpt-4-32k", "GPT-4 32K"),
        ("gpt-4-1106-preview", "GPT-4 Turbo"),
        ("gpt-4-turbo-2024-04-09", "GPT-4 Turbo"),
        ("gpt-4o-mini", "GPT-4o, GPT-4.5"),
        ("chatgpt-4o-latest", "GPT-4o, GPT-4.5"),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "GPT-4o, GPT-4.5"),
        ("GPT-4.1-nano", "GPT-4.1"),
        ("openai/gpt-4.1:free", "GPT-4.1"),
        ("gpt-5", "GPT-5 to 5.4"),
        ("gpt-5-mini", "GPT-5 to 5.4"),
        ("gpt-5.2", "GPT-5 to 5.4"),
        ("gpt-5.4-pro", "GPT-5 to 5.4"),
        ("gpt-5-chat-latest", "GPT-5 chat"),
        ("gpt-5.5", "GPT-5.5"),
        ("openrouter/openai/gpt-5.5-mini", "GPT-5.5"),
        ("o1", "o-series"),
        ("o3-mini", "o-series"),
        ("o4-mini-2025-04-16", "o-series"),
        ("gpt-6", "GPT, model not listed"),
        ("gpt-oss-120b", "GPT, model not listed"),
        ("claude-instant-1.2", "Claude up to 2.0"),
        ("claude-2.0", "Claude up to 2.0"),
        ("claude-2.1", "Claude 3 to 4.6"),
        ("claude-3-5-sonnet-20241022", "Claude 3 to 4.6"),
        ("claude-opus-4-20250514", "Claude 3 to 4.6"),
        ("claude-opus-4@20250514", "Claude 3 to 4.6"),
        ("claude-4-sonnet", "Claude 3 to 4.6"),
        ("anthropic/claude-sonnet-4.5", "Claude 3 to 4.6"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "Claude 3 to 4.6"),
        ("claude-opus-4-6", "Claude Opus 4.6, Sonnet 4.6"),
        ("claude-opus-4-7", "Claude 4.7"),
        ("anthropic.claude-opus-4-8-v1:0", "Claude 4.8"),
        ("claude-opus-5", "Claude Opus 5, Fable 5, Mythos 5"),
        ("claude-opus-5-5", "Claude Opus 5, Fable 5, Mythos 5"),
        ("claude-sonnet-5-20260630", "Claude Sonnet 5"),
        ("claude-haiku-6", "Claude, model not listed"),
        ("gemini-1.5-pro", "Gemini 1.5, 2.0"),
        ("models/gemini-2.5-flash", "Gemini 2.5"),
        ("google/gemini-3.6-pro", "Gemini 3"),
        ("gemini-3-pro-preview", "Gemini 3"),
        ("gemini-30", "Gemini, model not listed"),
        ("deepseek-chat", "DeepSeek V4"),
        ("deepseek-ai/DeepSeek-V3.1", "DeepSeek V3, R1"),
        ("deepseek-v4-flash", "DeepSeek V4"),
        ("deepseek-v5", "DeepSeek, model not listed"),
        ("openai-compatible/llama-3.3-70b", "OpenAI-compatible, model not listed"),
        ("OpenAI-compatible/gpt-5.2", "OpenAI-compatible, model not listed"),
        ("responses/gpt-5.2", "GPT-5 to 5.4"),
    ],
)
def test_a_model_id_finds_its_profile(registry: AdapterRegistry, model: str, profile: str) -> None:
    assert registry.for_model(model).profile.name == profile


@pytest.mark.parametrize(
    "model",
    [
        "",
        " ",
        "gpt",
        "gemini",
        "deepseek",
        "o",
        "o10x",
        "my-gpt-4",
        "claude",
        "text-embedding-3-small",
        "llama-3",
        "openai-compatible/",
        "openai-compatible",
    ],
)
def test_other_models_are_unknown(registry: AdapterRegistry, model: str) -> None:
    with pytest.raises(errors.UnknownModel):
        registry.for_model(model)


def test_encodings_roles_and_factors_follow_the_model(registry: AdapterRegistry) -> None:
    def rule(model: str) -> tuple[str, float]:
        tokenizer = registry.for_model(model).profile.tokenizer
        return tokenizer.encoding, tokenizer.factor

    assert rule("gpt-3.5-turbo") == rule("gpt-4") == ("cl100k_base", 1.0)
    assert rule("gpt-4o") == rule("gpt-5.5") == rule("o3") == ("o200k_base", 1.0)
    assert rule("claude-opus-4-6") == rule("claude-3-haiku-20240307") == ("o200k_base", 1.21)
    assert rule("claude-opus-4-7") == rule("claude-sonnet-5") == rule("claude-opus-9") == ("o200k_base", 1.46)
    assert registry.for_model("gpt-4o").profile.instruction_role == "system"
    assert registry.for_model("o1").profile.instruction_role == "developer"
    assert registry.for_model("gpt-4").profile.window_tokens == 8192
    error = registry.for_model("claude-opus-4-6").profile.tokenizer.error
    assert (error(1), error(20), error(500)) == (0.11, pytest.approx(0.032), pytest.approx(0.032))


def test_adapters_are_made_once(registry: AdapterRegistry) -> None:
    assert registry.for_model("gpt-5.2") is registry.for_model("openai/gpt-5.2-mini")


def test_finding_an_adapter_loads_nothing_heavy() -> None:
    program = (
        "import sys; from adapters.registry import AdapterRegistry; r = AdapterRegistry(bytes(16));"
        " [r.for_model(m) for m in ('gpt-5.2', 'responses/o3', 'claude-opus-5', 'gemini-3', 'deepseek-v4', 'openai-compatible/m')];"
        " print(sorted({'openai', 'anthropic', 'google.genai', 'splintr', 'tiktoken', 'quicktok', 'numpy', 'neo4j', 'app', 'adapters.importers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout.strip() == "[]"


def test_doctor_sees_every_profile_and_where_tokens_come_from(registry: AdapterRegistry) -> None:
    rows = registry.families()
    assert {row.family for row in rows} == {"gpt", "claude", "gemini", "deepseek", "openai-compatible"}
    assert all(row.patterns and row.api and row.window_tokens > 0 and not row.problem for row in rows)
    assert {row.method for row in rows if row.family == "gpt"} == {CountMethod.EXACT}
    assert {row.method for row in rows if row.family == "claude"} == {CountMethod.CALIBRATED}
    assert {row.method for row in rows if row.family == "openai-compatible"} == {CountMethod.ESTIMATE}
    blind = AdapterRegistry(KEY, tokenizers=Tokenizers(sources=[]), plugins=[]).families()
    assert {row.method for row in blind if row.family in {"gpt", "claude"}} == {CountMethod.ESTIMATE}


def test_a_short_fence_key_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        AdapterRegistry(b"short")


def test_damaged_profiles_are_refused_with_a_reason() -> None:
    raw = tomllib.loads((files("adapters") / "profiles" / "gpt.toml").read_text("utf-8"))
    assert Family.model_validate(raw) == next(family for family in built_in_families() if family.family == "gpt")
    raw["default"]["window"]["nominal"] = 0
    with pytest.raises(ValueError, match="nominal"):
        Family.model_validate(raw)


@pytest.mark.parametrize(
    ("model", "api", "chosen"),
    [
        ("gpt-5.2", None, "openai.chat.completions"),
        ("gpt-5.2", "responses", "openai.responses"),
        ("gpt-5.2", "openai.responses", "openai.responses"),
        ("gpt-5.2", " Chat.Completions ", "openai.chat.completions"),
        ("openai/responses/gpt-5.2", None, "openai.responses"),
        ("responses/gpt-5.2", "completions", "openai.chat.completions"),
        ("gpt-5-pro", None, "openai.responses"),
        ("gpt-5.1-codex-mini", None, "openai.responses"),
        ("o3-pro", None, "openai.responses"),
        ("o3", None, "openai.chat.completions"),
        ("gpt-5-pro", "chat.completions", "openai.chat.completions"),
        ("claude-opus-5", "messages", "anthropic.messages"),
        ("gemini-3-pro", "generate_content", "google.generate_content"),
        ("deepseek-v4", None, "deepseek.chat.completions"),
        ("openai-compatible/responses/m", None, "openai.chat.completions"),
    ],
)
def test_the_api_is_the_callers_then_the_prefixs_then_the_models_then_the_familys(
    registry: AdapterRegistry, model: str, api: str | None, chosen: str
) -> None:
    adapter = registry.for_model(model, api)
    assert adapter.render(RenderRequest(model, [], None, "t", None, None)).rendered.api == chosen


@pytest.mark.parametrize(("model", "api"), [("gpt-5.2", "messages"), ("claude-opus-5", "responses"), ("gpt-5.2", "esponses"), ("o3", "")])
def test_an_api_that_a_family_does_not_have_is_refused_with_those_it_has(registry: AdapterRegistry, model: str, api: str) -> None:
    with pytest.raises(errors.ApiNotOffered) as refused:
        registry.for_model(model, api)
    assert ("openai.chat.completions, openai.responses" in refused.value.hint) is not model.startswith("claude")


def test_what_a_family_says_once_holds_for_all_of_its_profiles() -> None:
    for family in built_in_families():
        for profile in (*family.profiles, family.default):
            assert profile.pairs is not None
            assert profile.pairs.source
            assert profile.places.source
            assert profile.cache.marks != "none"
    raw = tomllib.loads((files("adapters") / "profiles" / "deepseek.toml").read_text("utf-8"))
    assert raw["pairs"]["reasoning"] is True
    assert [profile.pairs.reasoning for profile in Family.model_validate(raw).profiles if profile.pairs] == [True, False]
    raw["places"]["untrusted"] = ["developer"]
    with pytest.raises(ValueError, match="untrusted"):
        Family.model_validate(raw)


# --- a family of another package, which this module plays -----------------------------------------------------------------------


def other_family() -> Family:
    model = next(family for family in built_in_families() if family.family == "claude").default
    return Family(family="other", api="other.api", builder=f"{__name__}:build_other", recognise="other-.+", profiles=[], default=model)


def build_other(profile: Profile, tools: Toolbox) -> Adapter:
    from adapters.gpt_chat import GptChat

    return GptChat(profile, tools)


def not_a_family() -> str:
    return "no"


def test_another_package_adds_a_family_and_a_broken_one_is_reported() -> None:
    plugins = [
        EntryPoint("other", f"{__name__}:other_family", GROUP),
        EntryPoint("gone", "no_such_module:family", GROUP),
        EntryPoint("odd", f"{__name__}:not_a_family", GROUP),
    ]
    registry = AdapterRegistry(KEY, plugins=plugins)
    assert registry.for_model("other-1").profile.name == other_family().default.name
    assert registry.for_model("gpt-5.2").profile.name == "GPT-5 to 5.4"
    problems = {row.family: row.problem for row in registry.families() if row.problem}
    assert set(problems) == {"gone", "odd"}
    assert "no_such_module" in problems["gone"]
