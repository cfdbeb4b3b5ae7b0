"""What the tests need on this machine, said plainly before they start. Exits 1 when something is missing."""

from __future__ import annotations

import os
import shutil
import sys

from conftest import docker_answers

from graph.engines.local_server import LocalNeo4j, missing_for  # type: ignore[attr-defined]
