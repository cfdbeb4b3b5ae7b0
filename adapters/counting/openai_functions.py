"""Function tools as OpenAI shows them to its models: a TypeScript namespace, in the form of the published harmony format.

That models before GPT-5 are shown about the same was found by counting (docs/benchmarks.md).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from adapters.counting.native import Json, as_dict, as_list, as_text

_MOST_DEPTH: Final = 100
"""Deeper types are shown as ``any``; OpenAI itself refuses more than ten levels of a strict schema."""

_TYPES: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null", "object": "object"}


@dataclass(slots=True)
class Rendering:
    """The text of the definitions, and how often what costs tokens of its own stands in it."""

    text: str = ""
    tools: int = 0
    comments: int = 0
    with_properties: int = 0


def rendered(definitions: Sequence[Json], *, comment_each_line: bool) -> Rendering:
    """The namespace of these functions (``name``, ``description``, ``parameters``); an empty rendering for none."""
    found = Rendering()
    if not definitions:
        return found
    lines = ["# Tools", "", "## functions", "", "namespace functions {", ""]
    for definition in definitions:
        found.tools += 1
        parameters = as_dict(definition.get("parameters"))
        name = as_text(definition.get("name"))
        _comment(as_text(definition.get("description")), lines, found, each_line=comment_each_line)
        if as_dict(parameters.get("properties")):
            found.with_properties += 1
            if parameters.get("description"):
                _comment(as_text(parameters.get("description")), lines, found, each_line=comment_each_line)
            lines.append(f"type {name} = (_: {{")
            _properties(parameters, lines, found, 0, each_line=comment_each_line)
            lines += ["}) => any;", ""]
        else:
            lines += [f"type {name} = () => any;", ""]
    lines.append("} // namespace functions")
    found.text = "\n".join(lines)
    return found


def _comment(text: str, lines: list[str], found: Rendering, *, each_line: bool) -> None:
    if not text:
        return
    found.comments += 1
    lines.append("// " + (text.replace("\n", "\n// ") if each_line else text))


def _properties(schema: Json, lines: list[str], found: Rendering, depth: int, *, each_line: bool) -> None:
    required = {name for name in as_list(schema.get("required")) if isinstance(name, str)}
    for name, given in as_dict(schema.get("properties")).items():
        inner = as_dict(given)
        _comment(as_text(inner.get("description")), lines, found, each_line=each_line)
        default = f" // default: {_compact(inner['default'])}" if "default" in inner else ""
        head = f"{name}{'' if name in required else '?'}: "
        if _is_object(inner) and depth < _MOST_DEPTH:
            lines.append(head + "{")
            _properties(inner, lines, found, depth + 1, each_line=each_line)
            lines.append("}," + default)
        else:
            lines.append(f"{head}{_type(inner, lines, found, depth, each_line=each_line)},{default}")


def _is_object(schema: Json) -> bool:
    return bool(as_dict(schema.get("properties"))) and "anyOf" not in schema


def _type(schema: Json, lines: list[str], found: Rendering, depth: int, *, each_line: bool) -> str:  # noqa: PLR0911 (one for each form of a type)
    """A type as text; an object inside it is written in place, over several lines."""
    if depth >= _MOST_DEPTH:
        return "any"
    if "enum" in schema or "const" in schema:
        return " | ".join(_compact(item) for item in as_list(schema.get("enum", [schema.get("const")])))
    union = as_list(schema.get("anyOf", schema.get("oneOf")))
    if union:
        return " | ".join(_type(as_dict(item), lines, found, depth + 1, each_line=each_line) for item in union)
    if isinstance(schema.get("$ref"), str):
        return schema["$ref"].rsplit("/", 1)[-1]
    if _is_object(schema):
        inside: list[str] = ["{"]
        _properties(schema, inside, found, depth + 1, each_line=each_line)
        return "\n".join([*inside, "}"])
    kind = schema.get("type")
    kinds = as_list(cast("object", kind)) if isinstance(kind, list) else [kind]
    if kinds == ["array"]:
        return _type(as_dict(schema.get("items")), lines, found, depth + 1, each_line=each_line) + "[]"
    return " | ".join(_TYPES.get(as_text(each), "any") for each in kinds)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
