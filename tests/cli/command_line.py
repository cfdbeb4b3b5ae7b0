"""Commands as people type them: on the store by a process of their own, through a service in this one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.main import run

LASTRO = Path(sys.executable).with_name("lastro")


def lastro(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command. Through a service it runs in this process, since starting one takes longer than the command."""
    given = {"COLUMNS": "80", "LASTRO_EMBEDDER": "none"} | environment
    if "LASTRO_URL" in environment:
        return _here(arguments, given)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LASTRO_")}
    return subprocess.run([LASTRO, *arguments], env=kept | given, capture_output=True, text=True, timeout=120, check=False)


def _here(arguments: tuple[str, ...], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for name in [name for name in os.environ if name.startswith("LASTRO_")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["lastro", *arguments])
        try:
            run()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(["lastro", *arguments], code, out.getvalue(), err.getvalue())
