"""The only place where a text becomes a statement.

Each file of ``cypher/`` holds one statement under a header that declares what it takes, what it returns and whose data it may touch.
Everything is read and checked once, at start: an undeclared or unused parameter, an unknown mode or a missing scope stops the service
before it answers anybody. A sibling ``name@dialect.cypher`` replaces ``name.cypher`` on engines that speak otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, LiteralString, cast

from neo4j import Query


class Mode(StrEnum):
    """How a statement is run."""

    READ = "read"
    WRITE = "write"
    AUTOCOMMIT = "autocommit"
    """Outside any explicit transaction, as administration commands demand."""
    SCHEMA = "schema"
    """A migration step; run by ``graph.schema`` only."""


class Dialect(StrEnum):
    """Which variant of a statement an engine takes; found by the server's agent string."""

    NEO4J_5 = "neo4j-5"
    NEO4J_2026 = "neo4j-2026"
    EMBEDDED = "embedded"


class Language(StrEnum):
    """What a statement is written in."""

    CYPHER = "cypher"
    SQL = "sql"
    """Of the embedded engine, for the schema that its Cypher cannot make; sent by HTTP."""


class StatementInvalid(Exception):
    """A statement file breaks a rule of the header. Raised at start; names the file and the rule."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One checked statement."""

    name: str
    """Path below cypher/ without ending and dialect, such as ``units/create_units``."""
    dialect: Dialect | None
    text: str
    mode: Mode
    params: Mapping[str, str]
    returns: Mapping[str, str]
    scope: str
    """``tenant``, or ``exempt: <reason>``."""
    why: str
    language: Language = Language.CYPHER
    one_map: bool = False
    """Whether the text takes all its parameters in one map; see ``in_one_map``."""

    def in_one_map(self) -> Statement:
        """The same statement with ``$name`` as ``$parameters.name``.

        Neo4j plans anew for each bucket of lengths (0, 1, up to 10, up to 100 …) of each text and list among the parameters, 0.6 to 1.3 s for
        a traversal (measured on 5.26.29). Inside a map the lengths are not looked at, so one plan serves every tenant id and seed list.
        """
        return replace(self, text=PARAMETER.sub(lambda match: f"$parameters.{match[1] or match[2]}", self.text), one_map=True)

    def by_range(self) -> Statement:
        """The same statement with the tenant compared where no index serves it, so that a range of an order key is read by its own index.

        The embedded engine's planner takes the equality for cheaper whatever it finds, and looked at every unit of the tenant for the newest
        of a session: over 0.2 s for 20,000 (measured on 26.10.2). Every order key begins with the tenant, so nothing more is read.
        """
        return replace(self, text=ORDER_RANGE.sub(r"(\1:\2)\3toString(\1.tenant_id) = $tenant_id AND \4", self.text))

    def bind(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values as the text takes them, so that the driver's log cannot say them."""
        if self.one_map:
            return {"parameters": _UnsaidMap(values)}
        return {name: _UnsaidList(cast("list[Any]", value)) if isinstance(value, list) else value for name, value in values.items()}

    @property
    def tenant_scoped(self) -> bool:
        """Whether running it needs an AuthorizedScope."""
        return self.scope == "tenant"

    @property
    def literal(self) -> LiteralString:
        """The text as the driver's types want it: it comes from our own files and is never built from input."""
        return cast("LiteralString", self.text)

    def as_query(self, timeout_s: float | None) -> Query:
        """The driver's query; its metadata names the statement in SHOW TRANSACTIONS and the query log."""
        return Query(self.literal, metadata={"statement": self.name}, timeout=timeout_s)


class _UnsaidMap(dict[str, Any]):
    """A map that does not say what it holds. The driver makes the text of all parameters for its log, also while nobody reads that: for a
    batch of units that took longer than packing them.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "{…}"


class _UnsaidList(list[Any]):
    """The same for a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[…]"


HEADER_LINE = re.compile(r"^// ?(?:(mode|params|returns|scope|language): ?(.*)|(.*))$")
PARAMETER = re.compile(r"\$(?:`([^`]+)`|([A-Za-z_]\w*))")
SQL_PARAMETER = re.compile(r"(?<=\s):(?:`([^`]+)`|([A-Za-z_]\w*))")
DECLARATION = re.compile(r"^([A-Za-z_]\w*): (.+)$")
VISIBLE = re.compile(r"\bVISIBLE\((\w+)\)")
ORDER_RANGE = re.compile(r"\((\w+):(\w+) \{tenant_id: \$tenant_id\}\)(\n *WHERE )(\1\.\w+_(?:order|age) >= )")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def parse_statement(name: str, dialect: Dialect | None, source: str) -> Statement:
    """One file as a statement.

    Raises:
        StatementInvalid: the header is incomplete, or parameters and header differ.
    """
    header, why, body = _split(source)
    where = f"cypher/{name}.cypher"
    for field in ("mode", "params", "returns", "scope"):
        if field not in header:
            raise StatementInvalid(f"{where}: the header lacks `// {field}:`")
    if not why:
        raise StatementInvalid(f"{where}: the header lacks the sentence that says why it exists")
    if not body:
        raise StatementInvalid(f"{where}: there is no statement below the header")
    try:
        mode = Mode(header["mode"])
    except ValueError:
        raise StatementInvalid(f"{where}: mode must be one of {', '.join(Mode)}") from None
    language = Language(header.get("language", Language.CYPHER))
    if language is Language.SQL and (dialect is not Dialect.EMBEDDED or mode not in {Mode.SCHEMA, Mode.AUTOCOMMIT}):
        raise StatementInvalid(f"{where}: SQL is for the schema of the embedded engine")
    params = _declarations(header["params"], where)
    scope = header["scope"]
    if scope != "tenant" and not (scope.startswith("exempt: ") and len(scope) > len("exempt: ")):
        raise StatementInvalid(f"{where}: scope must be `tenant` or `exempt: <reason>`")
    body = VISIBLE.sub(lambda match: _visible(match[1]), body)
    pattern = SQL_PARAMETER if language is Language.SQL else PARAMETER
    used = {quoted or plain for quoted, plain in pattern.findall(COMMENT.sub("", body))}
    if undeclared := used - params.keys():
        raise StatementInvalid(f"{where}: uses undeclared parameters {sorted(undeclared)}")
    if unused := params.keys() - used:
        raise StatementInvalid(f"{where}: declares unused parameters {sorted(unused)}")
    # A constant comment reaches the embedded engine's list of running queries, where metadata does not; see Watchdog.
    text = f"/* lastro:{name} */ {body}" if mode in {Mode.READ, Mode.WRITE} else body
    return Statement(name, dialect, text, mode, params, _declarations(header["returns"], where), scope, " ".join(why), language)


@cache
def _predicate() -> str:
    source = files("cypher").joinpath("visible.predicate").read_text("utf-8")
    return " ".join(COMMENT.sub("", source).split())


def _visible(variable: str) -> str:
    """The condition that the caller may see the unit ``variable``. It stands in one file, so that no statement has a version of its own."""
    return re.sub(r"\bu\.", f"{variable}.", _predicate())


def _split(source: str) -> tuple[dict[str, str], list[str], str]:
    """The declarations of a header, its sentences, and the statement below it."""
    header: dict[str, str] = {}
    why: list[str] = []
    lines = source.splitlines()
    body_from = len(lines)
    for number, line in enumerate(lines):
        match = HEADER_LINE.match(line)
        if match is None:
            body_from = number
            break
        if match[1] is not None:
            header[match[1]] = match[2].strip()
        elif match[3]:
            why.append(match[3])
    return header, why, "\n".join(lines[body_from:]).strip().rstrip(";")


def _declarations(text: str, where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in re.split(r",\s*(?=[A-Za-z_]\w*: )", text))):
        match = DECLARATION.match(part)
        if match is None:
            raise StatementInvalid(f"{where}: `{part}` is not `name: type`")
        found[match[1]] = match[2]
    return found


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            if not entry.name.startswith("__") and entry.name != "browser":
                yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".cypher"):
            yield prefix + entry.name.removesuffix(".cypher"), entry.read_text("utf-8")


def load_all() -> list[Statement]:
    """Every statement of every dialect, checked.

    Raises:
        StatementInvalid: any file breaks a rule.
    """
    found: list[Statement] = []
    for path, source in _walk(files("cypher")):
        name, at, dialect = path.partition("@")
        if at and dialect not in set(Dialect):
            raise StatementInvalid(f"cypher/{path}.cypher: unknown dialect `{dialect}`")
        found.append(parse_statement(name, Dialect(dialect) if at else None, source))
    return found


class Statements:
    """The statements of one dialect, by name."""

    def __init__(self, dialect: Dialect, every: list[Statement] | None = None) -> None:
        self.dialect = dialect
        self._by_name: dict[str, Statement] = {}
        for statement in sorted(every if every is not None else load_all(), key=lambda item: item.dialect is not None):
            if statement.dialect in {None, dialect}:
                if statement.mode in {Mode.READ, Mode.WRITE}:
                    statement = statement.by_range() if dialect is Dialect.EMBEDDED else statement.in_one_map()  # noqa: PLW2901
                self._by_name[statement.name] = statement

    def __getitem__(self, name: str) -> Statement:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Statement]:
        return iter(self._by_name.values())

    def of_mode(self, mode: Mode) -> list[Statement]:
        """All of one mode, in the order of their names."""
        return sorted((item for item in self if item.mode is mode), key=lambda item: item.name)


def dialect_of(agent: str) -> Dialect:
    """Dialect by the agent string that a server sends, such as ``Neo4j/5.26.29`` (reference: each engine was asked)."""
    if "ArcadeDB" in agent:
        return Dialect.EMBEDDED
    version = agent.removeprefix("Neo4j/").split(".")[0]
    return Dialect.NEO4J_5 if version == "5" else Dialect.NEO4J_2026


Row = dict[str, Any]
"""One record as a dict. Rows become models in the stores and nowhere else."""
