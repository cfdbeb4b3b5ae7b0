"""Every setting, with its default and its meaning. Each is also an environment variable: LASTRO_ and the name in capitals."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from graph.model.errors import SettingsInvalid


class EngineName(StrEnum):
    """Where the database comes from."""

    EMBEDDED = "embedded"
    NEO4J = "neo4j"


def default_data_folder() -> Path:
    """The user's data folder for Lastro."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "lastro"


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
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR.")


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
