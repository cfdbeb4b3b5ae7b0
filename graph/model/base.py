"""What every model of the neutral format shares: strictness, ids, times and text that a database can hold."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Strict, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError, from_json

from graph.model import errors

MAX_ID_CHARACTERS = 128
BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that Unicode calls letters or symbols and that show nothing."""
MAX_SHORT_TEXT_CHARACTERS = 512
MAX_FIELD_NAME = 64
CONTROLS = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""C0 and C1 controls and DEL, but NUL (its own code), tab, line feed and carriage return."""
MOST_FAILURES = 1_000


class Model(BaseModel):
    """Base of all wire models: unknown fields are refused, types are not coerced, instances do not change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def check_text(text: str) -> str:
    """The text itself when any store can hold it; raises for NUL and lone surrogates."""
    if "\x00" in text:
        raise PydanticCustomError("nul_in_text", "holds NUL")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise PydanticCustomError("lone_surrogate", "holds a lone surrogate") from None
    return text


def check_id(text: str) -> str:
    """The id itself when it is 1 to 128 visible characters."""
    if text.isascii() and text.isprintable() and " " not in text and 1 <= len(text) <= MAX_ID_CHARACTERS:
        return text
    check_text(text)
    # The one blank that counts as printable is the plain one.
    if not 1 <= len(text) <= MAX_ID_CHARACTERS or not text.isprintable() or " " in text or not BLANK.isdisjoint(text):
        raise PydanticCustomError("invalid_id", "not an id")
    return text


def check_short_text(text: str) -> str:
    check_text(text)
    if CONTROLS.search(text):
        raise PydanticCustomError("content_is_binary", "holds control characters")
    if len(text) > MAX_SHORT_TEXT_CHARACTERS:
        raise PydanticCustomError("too_large", "over the limit of a short text")
    return text


Id = Annotated[str, AfterValidator(check_id), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 128, "pattern": r"^[^\s]+$"})]
"""1 to 128 visible characters, no spaces."""

Text = Annotated[str, AfterValidator(check_text)]
ShortText = Annotated[str, AfterValidator(check_short_text), WithJsonSchema({"type": "string", "maxLength": MAX_SHORT_TEXT_CHARACTERS})]
"""At most 512 characters."""

_DATE_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_WIDEST_OFFSET = timedelta(hours=18)


def _check_form(value: object) -> object:
    """A date and a time, as text on the wire; pydantic alone would take ``"1772612767"`` for seconds since 1970."""
    if not isinstance(value, datetime) and not (isinstance(value, str) and _DATE_AND_TIME.match(value)):
        raise PydanticCustomError("invalid_field", "not a date and time")
    return value


def _check_place(at: datetime) -> datetime:
    """Databases take offsets up to 18 hours, and order keys need the years 1 to 9999 in UTC as well."""
    try:
        at.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("invalid_field", "outside of the years 1 to 9999") from None
    if abs(at.utcoffset() or timedelta()) > _WIDEST_OFFSET:
        raise PydanticCustomError("invalid_field", "an offset over 18 hours")
    return at


Timestamp = Annotated[
    AwareDatetime,
    Strict(strict=False),  # a text reaches the inner validator as Python's own after our check of its form
    BeforeValidator(_check_form),
    AfterValidator(_check_place),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""RFC 3339 with an offset of at most 18 hours, years 1 to 9999 in UTC; naive times are refused."""

AnyModel = TypeVar("AnyModel", bound=BaseModel)

# What pydantic calls a failure -> the domain error. Custom error types carry our own code as their type.
_BY_TYPE: dict[str, type[errors.LastroError]] = {
    "timezone_aware": errors.NaiveTimestamp,
    "json_invalid": errors.InvalidJson,
    "string_unicode": errors.LoneSurrogate,
    "recursion_loop": errors.InvalidJson,
}
_ENUM_FIELDS: dict[str, type[errors.LastroError]] = {
    "kind": errors.UnknownKind,
    "kinds": errors.UnknownKind,
    "edge_type": errors.UnknownEdgeType,
    "budget_tokens": errors.InvalidBudget,
}


def errors_by_code() -> dict[str, type[errors.LastroError]]:
    """Every error class of the tree by its stable code."""
    found: dict[str, type[errors.LastroError]] = {}
    pending: list[type[errors.LastroError]] = [errors.LastroError]
    while pending:
        cls = pending.pop()
        found[cls.code] = cls
        pending.extend(cls.__subclasses__())
    return found


def as_domain_error(failure: ValidationError, batch_field: str | None = None) -> errors.LastroError:
    """The first failure of a validation as an error of the tree: names the place, never the value.

    ``batch_field`` is the list whose index is the item's (``units`` for a batch).
    """
    first: Any = failure.errors(include_url=False, include_context=False, include_input=False)[0]
    path = [part for part in first["loc"] if not (isinstance(part, str) and part.startswith(("function-", "json-")))]
    kind = str(first["type"])
    index: int | None = None
    if batch_field is not None and path[:1] == [batch_field] and len(path) > 1 and isinstance(path[1], int):
        index = path[1]
        path = path[2:]
    named = [part for part in path if isinstance(part, str)]
    known = errors_by_code()
    if kind in known:
        cls = known[kind]
    elif kind in _BY_TYPE:
        cls = _BY_TYPE[kind]
    elif kind == "too_long" and path == [batch_field]:
        cls = errors.BatchTooLarge
    elif kind in {"enum", "literal_error", "greater_than", "greater_than_equal", "less_than_equal", "int_type"}:
        cls = _ENUM_FIELDS.get(named[-1] if named else "", errors.InvalidField)
    else:
        cls = errors.InvalidField
    error = cls()
    if cls is errors.InvalidField:
        # An unknown field's name is the caller's own text; it is named only when it is short and plain.
        error = errors.InvalidField(f"A field is not as it should be: {_REASONS.get(kind, 'wrong type or value')}.")
    safe = ".".join(str(part) for part in path if isinstance(part, int) or (part.isidentifier() and len(part) <= MAX_FIELD_NAME))
    return error.at(index=index, field=safe or None)


_REASONS = {"missing": "it is required and missing", "extra_forbidden": "it is not known here"}


def parse(model: type[AnyModel], raw: bytes | str, *, batch_field: str | None = None) -> AnyModel:
    """One JSON document as a model; raises an error of the tree that says where and repeats no value."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as failure:
        # Told apart by number first: what is said of a million failures would take seconds to collect.
        if failure.error_count() > MOST_FAILURES:
            raise errors.InvalidField("Very many fields are not as they should be.") from None
        error = as_domain_error(failure, batch_field)
        if isinstance(error, errors.InvalidJson):
            raise _why_not_json(raw, batch_field) from None
        if batch_field is not None and error.where is not None and error.where.index is not None:
            error = error.at(id=_id_in(from_json(raw)[batch_field][error.where.index]))
        raise error from None


def _id_in(item: object) -> str | None:
    """The id of an item that was refused, when it has one that can be said."""
    found = cast("dict[str, object]", item).get("id") if isinstance(item, dict) else None
    try:
        return check_id(found) if isinstance(found, str) else None
    except ValueError:
        return None


def _why_not_json(raw: bytes | str, batch_field: str | None) -> errors.LastroError:
    """A lone surrogate is legal for a lenient parser, so it is told apart from broken JSON, with the item that holds it."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return errors.InvalidJson()
    if not _has_lone_surrogate(document):
        return errors.InvalidJson()
    items = cast("dict[str, object]", document).get(batch_field or "") if isinstance(document, dict) else None
    for index, item in enumerate(cast("list[object]", items) if isinstance(items, list) else []):
        if _has_lone_surrogate(item):
            return errors.LoneSurrogate().at(index=index, id=_id_in(item))
    return errors.LoneSurrogate()


def _has_lone_surrogate(value: object) -> bool:
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            if any("\ud800" <= character <= "\udfff" for character in part):
                return True
        elif isinstance(part, dict):
            for key, inner in cast("dict[str, object]", part).items():
                pending += (key, inner)
        elif isinstance(part, list):
            pending.extend(cast("list[object]", part))
    return False
