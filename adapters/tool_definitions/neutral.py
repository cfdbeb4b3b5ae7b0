"""The neutral form of a tool's definition, and what a translation says about itself."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from adapters.fence import well_formed
from graph.model.base import Model

MOST_NOTES = 200
"""Notes of one translation; a hostile schema could ask for millions. The last then says that there are more."""
_MOST_PLACE = 200


class ToolDefinition(Model):
    """A tool as any model may be told of it. ``parameters`` is a JSON Schema of an object; ``strict`` asks for arguments that surely fit it."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    strict: bool = False


CODES: dict[str, str] = {
    "name_changed": "The name is not one that the vendor takes; another stands for it, and `names` leads back.",
    "description_long": "The description is longer than the vendor is known to take.",
    "too_many_tools": "There are more tools than the vendor is known to take.",
    "root_wrapped": "The vendor takes only an object without a union at the top; the schema stands under the property `value`.",
    "root_typed": "The schema did not say that it is an object; it does now.",
    "strict_off": "Strictness was asked for; the schema holds what the vendor's strict mode refuses, so it is off and the schema is whole.",
    "strict_closed": "Strict mode needs closed objects; `additionalProperties` is false now.",
    "strict_nullable": "Strict mode needs all properties; an optional one is required now and may be null.",
    "strict_unknown": "The vendor has no strict mode for each tool; how strictly it checks is a setting of the request.",
    "strict_beta": "The vendor takes strict tools at its beta address only.",
    "keyword_dropped": "The vendor's form has no such keyword; what it asked for stands in the description.",
    "keyword_ignored": "The vendor takes this keyword and is not known to heed it.",
    "reference_inlined": "The vendor's form has no references; the schema stands in place of one.",
    "reference_cut": "A reference to itself, to nothing or to too much could not be put in place; any value is allowed there.",
    "one_of_as_any_of": "The vendor has only `anyOf`; `oneOf` became that.",
    "all_of_merged": "A single schema in `allOf` was put in its place.",
    "type_list_split": "A list of types became one type, or a union.",
    "null_as_nullable": "The type null became `nullable`.",
    "const_as_enum": "A constant became an enumeration of one.",
    "enum_as_text": "The vendor enumerates texts only; the values stand in the description.",
    "boolean_schema": "A schema that is true or false is not known to the vendor; any value is allowed there.",
    "field_unknown": "A field of the vendor's definition has no place in the neutral form.",
    "tool_of_the_vendor": "A tool that the vendor runs itself has no neutral form.",
    "more": "There is more of this kind; only the first are listed.",
}
"""What each code of a note says to people."""


class Note(Model):
    """What was adapted or could not be said: a code of ``CODES``, and where as a JSON pointer into the tools (``/0/parameters/…``)."""

    code: str
    place: str
    keyword: str = ""


class Notes:
    """The notes of one translation, at most ``MOST_NOTES``."""

    def __init__(self) -> None:
        self.list: list[Note] = []

    def add(self, code: str, place: str, keyword: str = "") -> None:
        """Note it; texts of others are cut and made printable, so that a note can be shown anywhere."""
        if len(self.list) < MOST_NOTES:
            self.list.append(Note(code=code, place=_shown(place), keyword=_shown(keyword)))
        elif len(self.list) == MOST_NOTES:
            self.list.append(Note(code="more", place=""))


def _shown(text: str) -> str:
    printable = "".join(character if character.isprintable() else "\ufffd" for character in well_formed(text[:_MOST_PLACE]))
    return printable + ("…" if len(text) > _MOST_PLACE else "")


@dataclass(frozen=True, slots=True)
class VendorTools:
    """Tools as a vendor takes them; ``names`` leads from each name that was changed back to the neutral one."""

    tools: list[dict[str, Any]]
    notes: list[Note]
    names: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class NeutralTools:
    """Tools read from a vendor's form."""

    tools: list[ToolDefinition]
    notes: list[Note]


class Names:
    """Makes names that a vendor takes, each once: what it refuses becomes ``_``, and a few digits of a hash keep them apart."""

    def __init__(self, taken: Iterable[str], allowed: re.Pattern[str], most: int) -> None:
        """``allowed`` is the pattern of a whole name. A name that is in order keeps itself, so ``taken`` are all neutral names."""
        self._allowed = allowed
        self._most = most
        self._taken = {name for name in taken if allowed.fullmatch(name)}
        self._given: set[str] = set()
        self.back: dict[str, str] = {}

    def of(self, name: str, place: str, notes: Notes) -> str:
        if self._allowed.fullmatch(name) and name not in self._given:
            self._given.add(name)
            return name
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name[: self._most])[: self._most - 9]
        start = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"[: self._most - 9]
        for turn in range(len(digest) - 8):
            made = f"{start}_{digest[turn : turn + 8]}"
            if made not in self._taken and made not in self._given:
                break
        else:
            made = f"{start[: self._most - 16]}_{len(self._given):015d}"
        self._given.add(made)
        self.back[made] = name
        notes.add("name_changed", place)
        return made
