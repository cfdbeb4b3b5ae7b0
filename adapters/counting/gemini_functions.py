"""Function tools as Gemini shows them to its models: to 2.5 as Python functions, to 3 as declarations in the form Gemma's chat templates publish.

Both were found by counting recorded requests (docs/benchmarks.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from adapters.counting.native import Json, as_dict, as_json, as_list, as_text

QUOTE: Final = "\ue000"
"""Stands for the special token around texts; a private character, taken out of all texts that come in."""

_MOST_DEPTH: Final = 60
_UNROLLED: Final = 5
"""How often a type that refers to itself is written inside itself: what came nearest to the one recorded request that has such a type."""
_MOST_STEPS: Final = 5_000
"""Types looked at for one function: references to one another can multiply without end."""
_MOST_CLASSES: Final = 200
"""Classes written out; more are counted as if they were not there, which the bounds of the tools do not hold."""

_PYTHON: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}
_WORD: Final = re.compile(r"[^A-Za-z0-9]+")


def schema_of(definition: Json) -> Json:
    """The parameters of a function in camel case, whichever of the two fields holds them."""
    return as_dict(definition.get("parametersJsonSchema")) or as_dict(definition.get("parameters"))


def without_quote(text: str) -> str:
    return text.replace(QUOTE, "")


def declaration(definition: Json) -> str:
    """One function as Gemini 3 sees it, without the two special tokens around it; ``QUOTE`` stands for the one around texts."""
    described = as_text(definition.get("description"))
    head = f"description:{quoted(described)}," if described else ""
    return f"declaration:{without_quote(as_text(definition.get('name')))}{{{head}parameters:{{{_fields(schema_of(definition), 0)}}}}}"


def quoted(text: str) -> str:
    return f"{QUOTE}{without_quote(text)}{QUOTE}"


def value(given: object, depth: int = 0) -> str:
    """A value of a call or a result as Gemini 3 sees it."""
    if isinstance(given, str):
        return quoted(given)
    if depth >= _MOST_DEPTH:
        return without_quote(as_json(given))
    if isinstance(given, dict):
        named = as_dict(cast("object", given))
        return "{" + ",".join(f"{without_quote(name)}:{value(inner, depth + 1)}" for name, inner in named.items()) + "}"
    if isinstance(given, list):
        return "[" + ",".join(value(inner, depth + 1) for inner in as_list(cast("object", given))) + "]"
    return as_json(given)


def _fields(schema: Json, depth: int) -> str:
    parts: list[str] = []
    if isinstance(schema.get("description"), str):
        parts.append(f"description:{quoted(schema['description'])}")
    if "enum" in schema:
        parts.append(f"enum:{value(schema['enum'])}")
    if depth < _MOST_DEPTH:
        parts += _inside(schema, depth + 1)
    if as_list(schema.get("required")):
        parts.append(f"required:{value(schema['required'])}")
    kind = schema.get("type")
    if isinstance(kind, str):
        parts.append(f"type:{quoted(kind.upper())}")
    elif kind:
        parts.append(f"type:{value(kind)}")
    return ",".join(parts)


def _inside(schema: Json, depth: int) -> Iterator[str]:
    """The schemas that a schema holds: items, those of a union, properties."""
    if as_dict(schema.get("items")):
        yield f"items:{{{_fields(as_dict(schema['items']), depth)}}}"
    for union in ("anyOf", "oneOf"):
        if union in schema:
            yield f"anyOf:[{','.join('{' + _fields(as_dict(item), depth) + '}' for item in as_list(schema[union]))}]"
    properties = as_dict(schema.get("properties"))
    if properties:
        yield f"properties:{{{','.join(f'{without_quote(name)}:{{{_fields(as_dict(item), depth)}}}' for name, item in properties.items())}}}"


@dataclass(slots=True)
class _Classes:
    """The data classes that a function's nested objects become, in the order in which they are written."""

    root: Json
    written: list[str] = field(default_factory=list[str])
    busy: list[str] = field(default_factory=list[str])
    steps: int = 0
    unrolled: bool = False


class PythonFunction(NamedTuple):
    """The text of a function with its classes; ``unrolled`` when a type refers to itself or too many to others, so that it is not exact."""

    text: str
    unrolled: bool


def python_function(definition: Json) -> PythonFunction:
    """One function as Gemini 2.5 sees it."""
    name, schema = as_text(definition.get("name")), schema_of(definition)
    classes = _Classes(schema)
    arguments: list[str] = []
    described: list[str] = []
    required = as_list(schema.get("required"))
    for each, given in as_dict(schema.get("properties")).items():
        inner = as_dict(given)
        kind = _python_type(inner, f"{name}_{each}", classes, 0)
        arguments.append(f"    {each}: {kind}{'' if each in required else ' | None = None'},\n")
        described.append(f"    {each}: {as_text(inner.get('description'))}\n")
    head = f"def {name}(\n{''.join(arguments)}) -> dict:\n"
    tail = f'  """{as_text(definition.get("description"))}\n\n  Args:\n{"".join(described)}  """\n\n'
    return PythonFunction("".join(classes.written) + head + tail, classes.unrolled)


def _python_type(schema: Json, path: str, classes: _Classes, depth: int) -> str:  # noqa: PLR0911 (one for each form of a type)
    classes.steps += 1
    if classes.steps > _MOST_STEPS or depth >= _MOST_DEPTH:
        classes.unrolled = True
        return "Any"
    if isinstance(schema.get("$ref"), str):
        return _referred(schema["$ref"], path, classes, depth)
    if "enum" in schema:
        return f"Literal[{', '.join(repr(item) for item in as_list(schema['enum']))}]"
    union = as_list(schema.get("anyOf", schema.get("oneOf")))
    if union:
        return " | ".join(_python_type(as_dict(item), path, classes, depth + 1) for item in union)
    if as_dict(schema.get("properties")) and len(classes.written) < _MOST_CLASSES:
        return _class(schema, path, classes, depth)
    kind = schema.get("type")
    kinds = as_list(cast("object", kind)) if isinstance(kind, list) else [kind]
    if [as_text(each).lower() for each in kinds] == ["array"]:
        return f"list[{_python_type(as_dict(schema.get('items')), path, classes, depth + 1)}]"
    return " | ".join(_PYTHON.get(as_text(each).lower(), "Any") for each in kinds)


def _referred(reference: str, path: str, classes: _Classes, depth: int) -> str:
    if classes.busy.count(reference) >= _UNROLLED:
        classes.unrolled = True
        return "dict"
    classes.busy.append(reference)
    kind = _python_type(_resolved(reference, classes.root), path, classes, depth + 1)
    classes.busy.pop()
    return kind


def _class(schema: Json, path: str, classes: _Classes, depth: int) -> str:
    name = _class_name(path)
    required = as_list(schema.get("required"))
    attributes: list[str] = []
    fields: list[str] = []
    for each, given in as_dict(schema.get("properties")).items():
        inner = as_dict(given)
        kind = _python_type(inner, f"{path}_{each}", classes, depth + 1)
        attributes.append(f"    {each}: {as_text(inner.get('description'))}\n")
        fields.append(f"  {each}: {kind}{'' if each in required else ' | None = None'}\n")
    head = f'@dataclasses.dataclass(kw_only=True)\nclass {name}:\n  """{as_text(schema.get("description"))}\n\n'
    classes.written.append(f'{head}  Attributes:\n{"".join(attributes)}  """\n{"".join(fields)}\n\n')
    return name


def _class_name(path: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in _WORD.split(path))


def _resolved(reference: str, root: Json) -> Json:
    """What a local reference points to; nothing for any other."""
    found: object = root
    if not reference.startswith("#/"):
        return {}
    for name in reference[2:].split("/"):
        found = as_dict(found).get(name.replace("~1", "/").replace("~0", "~"))
    return as_dict(found)
