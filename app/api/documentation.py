"""JSON Schema and OpenAPI, generated from the models."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from graph.model.answer import ContextAnswer, Lineage
from graph.model.query import ContextQuery
from graph.model.units import ContextUnit, Described, EdgeType, EpistemicStatus, Kind, Tier, Trust, UnitBatch, WriteResult

ENUMERATIONS: tuple[type[Described], ...] = (Kind, EdgeType, EpistemicStatus, Tier, Trust)


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """OpenAPI's description of a JSON body; the door parses the bytes itself, since strict parsing needs them."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema_of(model)}}}}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model as it can stand anywhere in OpenAPI's document."""
    return _inlined(model.model_json_schema(ref_template=f"#/components/schemas/{model.__name__}/$defs/{{model}}"))


@cache
def schema_document() -> bytes:
    """The schema of a unit, with those of batch, query and answer among its definitions."""
    models: list[type[BaseModel]] = [ContextUnit, UnitBatch, ContextQuery, ContextAnswer, WriteResult, Lineage]
    _, document = models_json_schema([(model, "validation") for model in models], ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = document["$defs"]
    for enumeration in ENUMERATIONS:
        definitions[enumeration.__name__] |= {"oneOf": [{"const": member.value, "description": member.use} for member in enumeration]}
    return orjson.dumps(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:lastro:schema:v1",
            "title": "Lastro neutral format",
            "$ref": "#/$defs/ContextUnit",
            "$defs": definitions,
        },
        option=orjson.OPT_INDENT_2,
    )


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references of its own: definitions are put where they are used, as OpenAPI 3.1 has another root."""
    definitions: dict[str, Any] = schema.pop("$defs", {})

    def resolve(part: Any) -> Any:
        if isinstance(part, dict):
            reference = part.get("$ref")  # type: ignore[reportUnknownMemberType]
            if isinstance(reference, str):
                return resolve(definitions[reference.rsplit("/", 1)[-1]])
            return {key: resolve(value) for key, value in part.items()}  # type: ignore[reportUnknownVariableType]
        if isinstance(part, list):
            return [resolve(item) for item in part]  # type: ignore[reportUnknownVariableType]
        return part

    return resolve(schema)
