"""Walking over a JSON Schema without recursion and within bounds, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from graph.model import errors

Schema = dict[str, Any]

MOST_DEPTH: Final = 100
"""Schemas in one another; the vendors take 5 to 10."""
_MOST_PLACE: Final = 400
MOST_SCHEMAS: Final = 20_000
"""Schemas in one tool, after references were put in place."""

ONE: Final = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
)
MANY: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
NAMED: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
"""Keywords that hold one schema, a list of them, and schemas by name."""


@dataclass(frozen=True, slots=True)
class At:
    """A schema and where it stands."""

    schema: object
    place: str
    depth: int
    trail: tuple[str, ...] = ()
    """References followed to come here."""

    @property
    def fields(self) -> Schema | None:
        """The schema when it is an object; None when it is true, false or nonsense."""
        held = self.schema
        return cast("Schema", held) if isinstance(held, dict) else None

    def inner(self, schema: object, *names: object) -> At:
        """A schema in this one, under these names. A place stops growing at ``_MOST_PLACE`` characters: a hostile one could take all memory."""
        place = self.place if len(self.place) > _MOST_PLACE else "/".join((self.place, *map(pointer, names)))
        return At(schema, place, self.depth + 1, self.trail)


def pointer(name: object) -> str:
    """A name as a part of a JSON pointer, cut."""
    return str(name)[:100].replace("~", "~0").replace("/", "~1")


def inside(at: At) -> Iterator[tuple[At, Any, Any]]:
    """The schemas directly in one, each with the container and the key that hold it; ``items`` may be a list, as older drafts have it."""
    schema = at.fields
    if schema is None:
        return
    for keyword in ONE:
        if isinstance(schema.get(keyword), dict):
            yield at.inner(schema[keyword], keyword), schema, keyword
    for keyword in (*MANY, *ONE):
        held = schema.get(keyword)
        if isinstance(held, list):
            items = cast("list[object]", held)
            for number, item in enumerate(items):
                yield at.inner(item, keyword, number), items, number
    for keyword in NAMED:
        held = schema.get(keyword)
        if isinstance(held, dict):
            named = cast("Schema", held)
            for name, item in named.items():
                yield at.inner(item, keyword, name), named, name


def schemas(schema: Schema, place: str) -> Iterator[At]:
    """Every schema in one, itself first, those outside before those inside.

    Raises:
        TooLarge: there are too many, or they nest too deeply.
    """
    pending = [At(schema, place, 0)]
    seen = 0
    while pending:
        at = pending.pop()
        seen += 1
        if seen > MOST_SCHEMAS or at.depth > MOST_DEPTH:
            raise too_large(place)
        yield at
        pending.extend(inner for inner, _, _ in inside(at))


def check(parameters: object, place: str) -> Schema:
    """The schema itself when it is one that can be walked.

    Raises:
        InvalidField: it is no object.
        TooLarge: it holds too much, as schemas or as plain JSON.
    """
    if not isinstance(parameters, dict):
        raise errors.InvalidField(
            "The parameters of a tool are no JSON Schema.", hint='Send an object such as {"type": "object", "properties": {}}.'
        ).at(field=place)
    level: list[object] = [cast("object", parameters)]
    seen = depth = 0
    while level:
        deeper: list[object] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(cast("Schema", item).values())
            elif isinstance(item, list):
                deeper.extend(cast("list[object]", item))
        level = deeper
        seen += len(level)
        depth += 1
        # Two containers for each schema in another: {"properties": {"a": …}}.
        if seen > 20 * MOST_SCHEMAS or depth > 2 * MOST_DEPTH:
            raise too_large(place)
    return cast("Schema", parameters)


def too_large(place: str) -> errors.LastroError:
    return errors.TooLarge(
        f"A tool's JSON Schema holds more than {MOST_SCHEMAS} schemas or nests deeper than {MOST_DEPTH}.",
        hint="Flatten it; no vendor takes one like that.",
    ).at(field=place)


Change = Callable[[At, Schema], tuple[object, tuple[str, ...]]]
"""Gets a schema as a shallow copy that it may alter; gives what stands in its place, and the references followed to it.

What is true or false instead of an object comes as ``At.schema`` with an empty copy.
"""


def copied(schema: Schema, place: str, change: Change) -> object:
    """A copy in which every schema went through ``change``, those outside first; then the schemas in what it gave. Nothing given is altered.

    Raises:
        TooLarge: there are too many, or they nest too deeply.
    """
    holder: dict[str, object] = {}
    pending: list[tuple[At, Any, Any]] = [(At(schema, place, 0), holder, "whole")]
    seen = 0
    while pending:
        at, into, key = pending.pop()
        seen += 1
        if seen > MOST_SCHEMAS or at.depth > MOST_DEPTH:
            raise too_large(place)
        made, trail = change(at, dict(at.fields or {}))
        into[key] = made
        if isinstance(made, dict):
            _copy_containers(cast("Schema", made))
            pending.extend(inside(At(cast("object", made), at.place, at.depth, trail)))
    return holder["whole"]


def _copy_containers(schema: Schema) -> None:
    """Give a copied schema lists and maps of its own, so that what is put into them changes nothing that was given."""
    for keyword in (*ONE, *MANY, *NAMED):
        held = schema.get(keyword)
        if isinstance(held, list):
            schema[keyword] = list(cast("list[object]", held))
        elif isinstance(held, dict) and keyword in NAMED:
            schema[keyword] = dict(cast("Schema", held))


def resolved(reference: str, root: Schema) -> Schema | None:
    """What a local reference (``#/…``) points to; None for any other, and for one that leads nowhere."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    found: Schema | None = root
    for name in reference[2:].split("/")[:MOST_DEPTH]:
        if found is None:
            return None
        found = At(found.get(name.replace("~1", "/").replace("~0", "~")), "", 0).fields
    return found


def refers_to_itself(root: Schema) -> bool:
    """Whether following references can lead back to where one already was. True as well when that would take too long to find out."""
    leads: dict[str, set[str]] = {}
    pending: list[str] = ["#"]
    steps = 0
    while pending:
        name = pending.pop()
        if name in leads:
            continue
        found = leads.setdefault(name, set())
        held = resolved(name, root)
        for at in schemas(held, "") if held is not None else ():
            steps += 1
            if steps > 2 * MOST_SCHEMAS:
                return True
            reference = (at.fields or {}).get("$ref")
            if isinstance(reference, str) and not (name == "#" and at.place.startswith(("/$defs", "/definitions"))):
                found.add(reference)
        pending += found
    # What leads nowhere is taken away, again and again; what stays leads round. Each turn takes one at least, and chains are short.
    for _ in range(MOST_DEPTH):
        ends = {name for name, found in leads.items() if not found & leads.keys()}
        if not ends:
            break
        for name in ends:
            del leads[name]
    return bool(leads)
