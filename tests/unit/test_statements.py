"""The statement files, without a database: headers, parameters, tenant scope, and that code and files match."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from graph.statements import Dialect, Mode, Statement, StatementInvalid, Statements, dialect_of, load_all, parse_statement

ROOT = Path(__file__).parents[2]
LABELLED = re.compile(r"\((\w*):(\w+)([^)]*)\)")
HEADER = "// mode: read\n// params: {params}\n// returns: n: int\n// scope: {scope}\n// Why it exists.\n"
CODE = [path for package in ("app", "graph", "adapters") for path in sorted((ROOT / package).rglob("*.py"))]
CYPHER_WORDS = re.compile(r"\b(MATCH|MERGE|UNWIND|DETACH|OPTIONAL MATCH|CREATE) *\(|\bRETURN [a-z]\w*(\.|\()|\bON CREATE SET\b")


def every_statement() -> list[Statement]:
    return load_all()


@pytest.mark.parametrize("statement", every_statement(), ids=lambda item: f"{item.name}{'@' + item.dialect if item.dialect else ''}")
def test_each_labelled_pattern_of_a_scoped_statement_binds_the_tenant(statement: Statement) -> None:
    if not statement.tenant_scoped:
        assert len(statement.scope) > len("exempt: ") + 10, "an exemption says why"
        return
    assert "tenant_id" in statement.params
    unbound = unbound_patterns(statement.text)
    assert not unbound, f"{statement.name}: {unbound} do not bind $tenant_id"


def unbound_patterns(text: str) -> list[str]:
    """Labelled node patterns that neither carry the tenant in their own map nor have their variable compared with it."""
    compared = set(re.findall(r"\b(\w+)\.tenant_id = \$tenant_id", text))
    return [match[0] for match in LABELLED.finditer(text) if "tenant_id: $tenant_id" not in match[3] and match[1] not in compared]


@pytest.mark.parametrize(
    "broken",
    [
        "MATCH (u:ContextUnit) RETURN count(u) AS n",
        "MATCH (u:ContextUnit {tenant_id: $tenant_id})-[:CAUSATION]->(v:ContextUnit) RETURN count(v) AS n",
        "MATCH (u:ContextUnit) WHERE u.tenant_id = 'other' RETURN count(u) AS n",
    ],
)
def test_the_scope_check_finds_a_pattern_without_tenant(broken: str) -> None:
    assert unbound_patterns(broken)


ASKED_BY_NO_CALLER = {
    "read_lists_naming_units",
    "read_other_superseders",
    "read_other_results",
    "list_spreading",
    "find_due_units",
    "count_due_units",
    "list_agents_over_limit",
    "list_least_active",
    "count_namers",
    "find_originals_of_units",
}
"""Parts of an erasure, of retention, of the job of the tiers or of the store of originals: what they find is changed, whoever may see it, and told to nobody but as a number."""


def unseen_patterns(source: str) -> list[str]:
    """Variables of units that a read binds without asking whether the caller may see them."""
    asked = set(re.findall(r"\bVISIBLE\((\w+)\)", source))
    return [name for name in re.findall(r"\((\w*):ContextUnit\b", source) if name not in asked]


def test_each_unit_that_a_read_touches_is_one_that_the_caller_may_see() -> None:
    """Writes ask in `units/read_stored_keys`, in their own transaction, before they touch anything."""
    for path in sorted((ROOT / "cypher").rglob("*.cypher")):
        source = path.read_text("utf-8")
        if "// mode: read" in source and "// scope: tenant" in source and path.stem not in ASKED_BY_NO_CALLER:
            assert not unseen_patterns(source), path.name


@pytest.mark.parametrize(
    "broken",
    [
        "MATCH (u:ContextUnit {tenant_id: $tenant_id}) RETURN u.id AS id",
        "MATCH (u:ContextUnit {tenant_id: $tenant_id})-[:CAUSATION]->(v:ContextUnit) WHERE VISIBLE(u) RETURN v.id AS id",
    ],
)
def test_the_check_finds_a_unit_that_nobody_asked_about(broken: str) -> None:
    assert unseen_patterns(broken)


def test_code_and_files_match_both_ways() -> None:
    called: set[str] = set()
    inside: set[str] = set()
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values]
                called.add("".join(parts))
                inside.update(part for part in parts if part != "*")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                called.add(node.value)
    called -= inside
    patterns = [re.compile(re.escape(name).replace(r"\*", r"\w+") + "$") for name in called if "/" in name]
    for statement in every_statement():
        if statement.mode is not Mode.SCHEMA:
            assert any(pattern.match(statement.name) for pattern in patterns), f"nothing calls {statement.name}"
    names = {statement.name for statement in every_statement()}
    areas = {name.split("/")[0] for name in names}
    for name in called:
        if re.fullmatch(rf"({'|'.join(areas)})/[a-z_]+", name) and "write_batch" not in name:
            assert name in names, f"{name} is called and has no file"


def test_there_is_no_cypher_in_python() -> None:
    for path in CODE:
        tree = ast.parse(path.read_text("utf-8"))
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
                assert not CYPHER_WORDS.search(node.value), f"{path.relative_to(ROOT)}:{node.lineno}"


def test_variants_stay_few() -> None:
    """Each is a place where engines differ."""
    variants = [f"{item.name}@{item.dialect}" for item in every_statement() if item.dialect is not None]
    assert sorted(variants) == [
        "schema/0025_search_text@embedded",
        "schema/0026_access@embedded",
        "schema/0028_embedding@embedded",
        "schema/0036_unit_text@embedded",
        "service/list_indexes@embedded",
        "service/list_transactions@embedded",
        "service/terminate_transaction@embedded",
        "vectors/create_index@embedded",
        "vectors/create_index@neo4j-2026",
        "vectors/drop_index@embedded",
        "vectors/find_nearest_among@embedded",
        "vectors/find_nearest_by_index@embedded",
        "vectors/find_nearest_in_tenant@neo4j-2026",
        "vectors/list_due_units@embedded",
        "vectors/list_units_to_mark@embedded",
    ]


@pytest.mark.parametrize(
    ("params", "scope", "body", "complaint"),
    [
        ("", "exempt: a test", "RETURN $n AS n", "undeclared"),
        ("n: int", "exempt: a test", "RETURN 1 AS n", "unused"),
        ("n int", "exempt: a test", "RETURN $n AS n", "not `name: type`"),
        ("", "all", "RETURN 1 AS n", "scope must be"),
        ("", "exempt: ", "RETURN 1 AS n", "scope must be"),
        ("", "exempt: a test", "", "no statement"),
    ],
)
def test_a_wrong_header_stops_the_start(params: str, scope: str, body: str, complaint: str) -> None:
    with pytest.raises(StatementInvalid, match=complaint):
        parse_statement("tests/wrong", None, HEADER.format(params=params, scope=scope) + body)


def test_a_header_without_a_reason_is_refused() -> None:
    with pytest.raises(StatementInvalid, match="why it exists"):
        parse_statement("tests/wrong", None, "// mode: read\n// params:\n// returns: n: int\n// scope: exempt: a test\nRETURN 1 AS n")


def test_a_dialect_replaces_the_common_text() -> None:
    common = parse_statement("tests/one", None, HEADER.format(params="", scope="exempt: a test") + "RETURN 1 AS n")
    own = parse_statement("tests/one", Dialect.EMBEDDED, HEADER.format(params="", scope="exempt: a test") + "RETURN 2 AS n")
    assert "RETURN 2" in Statements(Dialect.EMBEDDED, [own, common])["tests/one"].text
    assert "RETURN 1" in Statements(Dialect.NEO4J_5, [own, common])["tests/one"].text


def test_parameters_go_in_one_map_on_neo4j_and_as_they_are_elsewhere() -> None:
    statement = parse_statement("tests/one", None, HEADER.format(params="a: int", scope="exempt: a test") + "RETURN $a AS n")
    neo4j, embedded = (Statements(dialect, [statement])["tests/one"] for dialect in (Dialect.NEO4J_5, Dialect.EMBEDDED))
    assert "$parameters.a" in neo4j.text
    assert neo4j.bind({"a": 1}) == {"parameters": {"a": 1}}
    assert "RETURN $a" in embedded.text
    assert embedded.bind({"a": 1}) == {"a": 1}


def test_the_engine_is_known_by_its_agent_string() -> None:
    assert dialect_of("Neo4j/5.26.29") is Dialect.NEO4J_5
    assert dialect_of("Neo4j/2026.08.1") is Dialect.NEO4J_2026
    assert dialect_of("Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)") is Dialect.EMBEDDED


def test_what_runs_by_itself_writes_nothing() -> None:
    """The embedded engine commits a lone statement clause by clause: killed in between, half of it stays. Writes need a transaction."""
    writes = re.compile(r"\b(CREATE(?! VECTOR INDEX| INDEX)|MERGE|SET|DELETE|REMOVE)\b")
    for statement in every_statement():
        if statement.mode in {Mode.READ, Mode.AUTOCOMMIT}:
            assert not writes.search(re.sub(r"//.*", "", statement.text)), statement.name


def test_on_the_embedded_engine_ranges_are_read_by_their_own_index() -> None:
    """The tenant is compared all the same, in a form that no index serves; ranges of other keys stay as they are."""
    embedded, neo4j = Statements(Dialect.EMBEDDED), Statements(Dialect.NEO4J_5)
    changed = {item.name for item in embedded if "toString(u.tenant_id) = $tenant_id AND u." in item.text}
    assert {"context/read_recent_by_session_order", "units/list_units_by_tenant", "tiers/read_units_by_tier_order"} <= changed
    for name in changed:
        assert "{tenant_id: $tenant_id})\nWHERE u." not in embedded[name].text
        assert "toString(u.tenant_id)" not in neo4j[name].text
