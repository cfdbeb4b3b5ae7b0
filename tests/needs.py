"""What the tests need on this machine, said plainly before they start. Exits 1 when something is missing."""

from __future__ import annotations

import os
import sys

from graph.engines.local_server import missing_for
from tests.conftest import docker_answers


def main() -> int:
    if os.environ.get("NEO4J_URI"):
        sys.stderr.write("tests run on the embedded engine and on the Neo4j that NEO4J_URI names\n")
        return 0
    if docker_answers():
        sys.stderr.write("tests run on the embedded engine and on a Neo4j container\n")
        return 0
    lacking = list(dict.fromkeys([*missing_for("5.26"), *missing_for("newest")]))
    if not lacking:
        sys.stderr.write("tests run on the embedded engine and on local Neo4j servers, 5.26 and the newest line\n")
        return 0
    sys.stderr.write("the tests need a real Neo4j and cannot have one here. Missing:\n")
    sys.stderr.writelines(f"  - {item}\n" for item in lacking)
    sys.stderr.write("Install these, or start a Docker engine, or set NEO4J_URI, NEO4J_USER and NEO4J_PASSWORD to a Neo4j for tests.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
