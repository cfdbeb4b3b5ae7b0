"""Reading a native request that anybody may have written: every access is checked, nothing recurses over it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from graph.model import errors

MOST_DEPTH = 200
"""Containers in one another. The vendors refuse far less deep ones; writing JSON recurses, and Python allows about a thousand."""

Json = dict[str, Any]

_HUMP = re.compile(r"_([a-z])")


def check_depth(value: object) -> None:
    """Raises InvalidJson when containers nest deeper than ``MOST_DEPTH``. Walks level by level, without recursion."""
    level: list[object] = [value]
    for _ in range(MOST_DEPTH + 1):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(cast("Json", item).values())
            elif isinstance(item, list):
                inner.extend(cast("list[object]", item))
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return
    raise errors.InvalidJson(f"The request nests deeper than {MOST_DEPTH} levels.")


def as_dict(value: object) -> Json:
    """The value when it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value when it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value when it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def blocks(value: object) -> list[Json]:
    """Content as its blocks: a text is one block of text; what is not a block is left out."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    found: list[Json] = []
    for item in as_list(value):
        if isinstance(item, str):
            found.append({"type": "text", "text": item})
        elif isinstance(item, dict):
            found.append(cast("Json", item))
    return found


def as_json(value: object) -> str:
    """JSON as the vendors' own Python clients write it: a space after each comma and colon, all of Unicode as it is."""
    return json.dumps(value, ensure_ascii=False)


def camel_keys(value: Mapping[str, Any]) -> Json:
    """The keys as Google's JSON has them, whichever of its two spellings was used."""
    return {_HUMP.sub(lambda match: match[1].upper(), key): item for key, item in value.items()}


def leaves(value: object) -> Iterator[str]:
    """The keys and values of a JSON value as texts, level by level."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            for key, inner in as_dict(cast("object", part)).items():
                yield key
                pending.append(inner)
        elif isinstance(part, list):
            pending.extend(as_list(cast("object", part)))
        else:
            yield part if isinstance(part, str) else as_json(part)
