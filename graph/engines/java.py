"""Which Java of this machine runs a program; only tests need one, as the embedded engine brings its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from graph.model.errors import EngineNotInstalled

SYSTEM_FOLDERS = (Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines"))


def find_java(program: str, majors: tuple[int, ...]) -> Path:
    """The ``java`` of the first of ``majors`` that this machine has. Raises ``EngineNotInstalled``, naming ``program``, when it has none."""
    found = {major: java for java in reversed(list(java_candidates())) if (major := java_major(java)) is not None}
    for major in majors:
        if major in found:
            return found[major]
    wanted = " or ".join(str(major) for major in sorted(majors))
    has = ", ".join(str(major) for major in sorted(found)) or "none"
    raise EngineNotInstalled(f"{program} needs Java {wanted}; found: {has}.", hint="Install one, or point JAVA_HOME to it.")


def java_candidates() -> Iterator[Path]:
    """Every ``java`` of this machine: JAVA_HOME's, the path's, the system's folders'."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for folder in SYSTEM_FOLDERS:
        for found in sorted(folder.iterdir()) if folder.is_dir() else ():
            yield found / "bin" / "java"
            yield found / "Contents" / "Home" / "bin" / "java"


def java_major(java: Path) -> int | None:
    """Major version that ``java`` says; None when it does not run."""
    if not os.access(java, os.X_OK):
        return None
    try:
        said = subprocess.run([str(java), "-version"], capture_output=True, check=False, timeout=30)  # noqa: S603 - found by the rules above
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(\d+)', said.stderr.decode("utf-8", "replace"))
    return int(version[1]) if version else None
