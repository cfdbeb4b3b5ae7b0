"""Documents that must not drift from the code."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from app.cli.main import app
from app.settings import Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def settings_rows() -> list[str]:
    """The table that docs/settings.md must hold, from the code."""
    rows: list[str] = []
    for name, field in Settings.model_fields.items():
        default = "the user's data folder" if field.default_factory is not None else field.default
        if isinstance(default, SecretStr):
            default = ""
        shown = default.value if isinstance(default, Enum) else default
        rows.append(
            f"| `LASTRO_{name.upper()}` | {'' if shown is None or shown == '' else f'`{shown}`' if name != 'data' else shown} | {field.description} |"
        )
    return rows


def test_every_setting_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "settings.md").read_text("utf-8")
    missing = [row for row in settings_rows() if row not in text]
    assert not missing, "docs/settings.md lacks:\n" + "\n".join(missing)
    assert set(re.findall(r"`(LASTRO_[A-Z0-9_]+)` \|", text)) == {f"LASTRO_{name.upper()}" for name in Settings.model_fields}


def test_the_readme_opens_with_the_two_commands() -> None:
    demo, test = README.index("make demo"), README.index("make test")
    assert demo < test < 2_500
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert {"demo", "test", "install", "lint", "bench"} <= set(targets)
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text("utf-8")):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_commands_that_documents_show_exist() -> None:
    known = {"demo", "serve", "import", "units", "context", "keys", "doctor", "migrate"}  # the words, not what follows a dash
    known |= {
        "policy",
        "team",
        "quotas",
        "usage",
        "ledger",
        "audit",
        "erase",
        "retention",
        "reembed",
        "tokens",
        "conformance",
        "attachments",
    }
    shown = {
        found
        for path in DOCUMENTS
        for found in re.findall(r"^\s*(?:\$ )?(?:\.venv/bin/)?lastro ([a-z]+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert shown <= known


@pytest.mark.parametrize(
    "command",
    [
        ["demo"],
        ["serve"],
        ["import"],
        ["units", "list"],
        ["units", "show"],
        ["units", "lineage"],
        ["attachments", "put"],
        ["attachments", "get"],
        ["conformance"],
        ["context"],
        ["migrate-check"],
        ["keys", "create"],
        ["keys", "list"],
        ["keys", "rotate"],
        ["keys", "revoke"],
        ["policy", "create"],
        ["policy", "list"],
        ["policy", "revoke"],
        ["policy", "explain"],
        ["policy", "templates"],
        ["team", "set"],
        ["team", "list"],
        ["team", "remove"],
        ["quotas", "list"],
        ["quotas", "set"],
        ["quotas", "remove"],
        ["usage"],
        ["ledger"],
        ["audit"],
        ["erase"],
        ["retention", "show"],
        ["retention", "set"],
        ["retention", "run"],
        ["reembed"],
        ["doctor"],
        ["tokens"],
    ],
    ids=" ".join,
)
def test_every_command_has_help_with_an_example_and_json(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "Examples:" in result.output
    if command != ["serve"]:
        assert "--json" in result.output
