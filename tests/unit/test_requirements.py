"""tests/requirements.py names tests that exist, and every test proves something that was promised."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from requirements import HOUSE, KEPT

TESTS = Path(__file__).parents[1]


def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_id_names_tests_that_exist() -> None:
    for name, proofs in {**KEPT, **HOUSE}.items():
        assert proofs, f"{name} names no test"
        for proof in proofs:
            module, _, function = proof.partition("::")
            path = TESTS / module
            assert path.is_file(), f"{name}: there is no {module}"
            if function:
                assert function in functions_of(path), f"{name}: {module} has no {function}"


def test_every_test_is_named_by_an_id() -> None:
    named = {proof for proofs in {**KEPT, **HOUSE}.values() for proof in proofs}
    for path in sorted(TESTS.rglob("test_*.py")):
        module = path.relative_to(TESTS).as_posix()
        if module in named:
            continue
        for function in functions_of(path):
            if function.startswith("test_"):
                assert f"{module}::{function}" in named, f"no requirement names {module}::{function}"


def test_ids_have_the_form_of_requirements() -> None:
    assert all(re.fullmatch(r"[URSTACMO]\d{1,2}", name) for name in KEPT)
