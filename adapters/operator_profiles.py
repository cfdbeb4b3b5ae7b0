"""Profiles that an operator adds as data: a folder of TOML files.

A file is either a whole family, as ours are, or names one in ``extends`` and lists profiles for it. Such profiles are asked before the family's
own. What a profile does not say is that family's default, so that a name, a pattern and what differs are enough::

    extends = "openai-compatible"

    [[profiles]]
    name = "Our own model"
    patterns = ['our-model-.*']
    instruction_role = "user"
    window = { nominal = 32_000, effective = 16_000, confidence = "vendor", source = "the server's settings" }
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from adapters.counting.rules import text_rule
from adapters.profile import Family, Profile
from graph.model.base import Model
from graph.model.errors import SettingsInvalid, UnknownModel

MOST_BYTES = 1_000_000
"""Of a file; the largest of ours has some 15 kB."""


class _Extension(Model):
    """A file that extends a family. Profiles are completed before they are checked."""

    extends: str
    profiles: list[dict[str, Any]] = Field(min_length=1)


def with_profiles(families: Sequence[Family], folder: Path) -> list[Family]:
    """The families with those of a folder's files, by file name. A family takes the place of one with the same name.

    Raises:
        SettingsInvalid: the folder or a file cannot be read or used; the message names the file and the field, and no value.
    """
    known = {family.family: family for family in families}
    added: dict[str, Family] = {}
    for path, raw in _files(folder):
        try:
            if "extends" in raw:
                extension = _Extension.model_validate(raw)
                target = known.get(extension.extends)
                if target is None:
                    raise SettingsInvalid(f"The profiles file {path.name} extends a family that there is not.")
                profiles = [_completed(profile, target) for profile in extension.profiles]
                family = target.model_copy(update={"profiles": [*profiles, *target.profiles]})
                _compile(family)
                known[family.family] = family
            else:
                family = Family.model_validate(raw)
                _compile(family)
                known.pop(family.family, None)
                added[family.family] = family
        except ValidationError as failure:
            where = sorted({".".join(str(part) for part in error["loc"]) for error in failure.errors(include_input=False)})
            raise SettingsInvalid(f"The profiles file {path.name} has fields that cannot be used: {', '.join(where)}.") from None
        except UnknownModel:
            raise SettingsInvalid(f"The profiles file {path.name} counts as a model that no rule knows.") from None
        except re.error:
            raise SettingsInvalid(f"The profiles file {path.name} has a pattern that is no regular expression.") from None
    return [*added.values(), *known.values()]


def _files(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except OSError as failure:
        raise SettingsInvalid(f"The folder of profiles cannot be read: {type(failure).__name__}.") from None
    for path in paths:
        try:
            if path.stat().st_size > MOST_BYTES:
                raise SettingsInvalid(f"The profiles file {path.name} is larger than {MOST_BYTES} bytes.")
            yield path, tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
            raise SettingsInvalid(f"The profiles file {path.name} cannot be read: {type(failure).__name__}.") from None


def _completed(raw: dict[str, Any], family: Family) -> Profile:
    """The profile with the family's default where it says nothing; a role of its own needs no more than its line."""
    default = family.default.model_dump(exclude={"name", "patterns"})
    return Profile.model_validate(default | raw)


def _compile(family: Family) -> None:
    """Raises ``re.error`` when one of the family's patterns is none, ``UnknownModel`` when it counts as a model that no rule knows."""
    ours = [pattern for profile in family.profiles for pattern in profile.patterns]
    rules = [profile.pairs.name_pattern for profile in (*family.profiles, family.default) if profile.pairs is not None]
    for pattern in (family.recognise, family.strip or "", *(each for api in family.apis for each in api.only), *ours, *rules):
        re.compile(pattern, re.ASCII)
    for profile in (*family.profiles, family.default):
        if profile.tokenizer.count_as is not None:
            text_rule(profile.tokenizer.count_as)
