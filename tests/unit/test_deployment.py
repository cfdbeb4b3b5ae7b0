"""docker-compose.yml and the Dockerfile against the compose format and the settings that the service knows. No Docker engine is needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICE_FIELDS = {"image", "build", "restart", "environment", "volumes", "expose", "ports", "healthcheck", "depends_on", "command"}
DURATION = re.compile(r"^\d+(ms|s|m|h)$")


def test_it_is_a_compose_file() -> None:
    assert set(COMPOSE) <= {"services", "volumes", "networks", "name"}
    for name, service in COMPOSE["services"].items():
        assert set(service) <= SERVICE_FIELDS, name
        assert ("image" in service) != ("build" in service), name
        check = service["healthcheck"]
        assert check["test"][0] in {"CMD", "CMD-SHELL"}
        assert all(DURATION.match(check[field]) for field in ("interval", "timeout", "start_period"))
        assert isinstance(check["retries"], int)
        assert all(isinstance(value, str) for value in service["environment"].values()), "compose wants texts"


def test_the_database_is_a_fixed_line_with_a_volume_and_not_published() -> None:
    neo4j = COMPOSE["services"]["neo4j"]
    assert neo4j["image"].startswith("neo4j:5.26")
    assert neo4j["volumes"] == ["neo4j-data:/data"]
    assert "neo4j-data" in COMPOSE["volumes"]
    assert "ports" not in neo4j
    assert [name for name, service in COMPOSE["services"].items() if "ports" in service] == ["lastro"]


def test_the_service_waits_for_a_healthy_database() -> None:
    assert COMPOSE["services"]["lastro"]["depends_on"]["neo4j"]["condition"] == "service_healthy"


def test_secrets_come_from_the_environment_and_have_no_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    for reference in re.findall(r"\$\{(\w*PASSWORD\w*)([^}]*)\}", text):
        assert reference[1].startswith(":?"), f"{reference[0]} must be given"
    assert COMPOSE["services"]["lastro"]["environment"]["LASTRO_NEO4J_PASSWORD"].startswith("${LASTRO_NEO4J_PASSWORD:?")


def test_every_variable_of_the_service_is_a_setting_with_a_value_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = COMPOSE["services"]["lastro"]["environment"]
    known = {f"LASTRO_{name.upper()}" for name in Settings.model_fields}
    assert set(given) <= known
    for name, value in given.items():
        default = re.fullmatch(r"\$\{\w+(?::-(.*)|:\?.*)\}", value)
        monkeypatch.setenv(name, value if default is None else (default[1] or "a-password"))
    settings = Settings()
    assert settings.engine == "neo4j"
    assert settings.host == "0.0.0.0"  # noqa: S104 (inside the container)


def test_the_published_port_is_the_services() -> None:
    service = COMPOSE["services"]["lastro"]
    port = service["environment"]["LASTRO_PORT"]
    [published] = service["ports"]
    assert published.endswith(f":{port}")
    assert published.startswith("${LASTRO_PUBLISH:-127.0.0.1:")
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert f"EXPOSE {port}" in dockerfile


def test_the_image_holds_what_the_package_holds() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    packages = re.search(r"packages = \[(.*)\]", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert packages is not None
    for package in re.findall(r'"(\w+)"', packages[1]):
        assert f"COPY {package} {package}" in dockerfile
    assert "--require-hashes" in dockerfile
    assert re.search(r"^USER (?!root)", dockerfile, re.MULTILINE), "the service does not run as root"


def test_lock_files_carry_hashes_and_no_address() -> None:
    for name in ("requirements.lock.txt", "requirements-dev.lock.txt"):
        text = (ROOT / name).read_text("utf-8")
        assert "://" not in text
        pinned = re.findall(r"^[a-z][\w.\[\]-]*==", text, re.MULTILINE)
        assert len(pinned) > 30
        assert text.count("--hash=sha256:") >= len(pinned)
