"""Which adapter speaks to a model. Families are data: TOML files of ours, and those that other packages name as entry points.

A package adds a family by an entry point in the group ``lastro.adapters`` that is a callable without arguments returning a ``Family``,
usually ``load_family`` on a TOML file of its own. It is asked before ours, and one of the same name takes the place of ours.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import cast

from adapters.base import Adapter, Builder, Toolbox
from adapters.operator_profiles import with_profiles
from adapters.profile import Family, Match, built_in_families
from adapters.tokenizers import Tokenizers
from graph.model.answer import CountMethod
from graph.model.errors import ApiNotOffered, UnknownModel

GROUP = "lastro.adapters"


@dataclass(frozen=True, slots=True)
class FamilyStatus:
    """One row for ``lastro doctor``: a profile of a family, and how its tokens are counted. ``problem`` is set when it cannot be used."""

    family: str
    profile: str
    patterns: tuple[str, ...]
    api: str
    tokenizer: str
    tokenizer_source: str
    method: CountMethod | None
    window_tokens: int
    problem: str = ""


class AdapterRegistry:
    """Finds, makes and keeps adapters. Safe for threads; vendor code and tokenizers are loaded when first needed."""

    def __init__(
        self,
        fence_key: bytes,
        *,
        tokenizers: Tokenizers | None = None,
        plugins: Iterable[EntryPoint] | None = None,
        profiles: Path | None = None,
    ) -> None:
        """``fence_key`` is a secret of this installation, 16 bytes or more. ``plugins`` replaces the installed entry points.

        ``profiles`` is a folder of the operator's own TOML files: families, which come before all others, and profiles for families that
        are there (``extends``).

        Raises:
            ValueError: a key that is too short, or a damaged file of ours.
            SettingsInvalid: a file of the operator's that cannot be used; names the file and the field.
        """
        if len(fence_key) < 16:  # noqa: PLR2004 as said above
            raise ValueError("A fence key has 16 bytes or more.")
        self.tokenizers = tokenizers or Tokenizers()
        self._fence_key = fence_key
        self._lock = threading.Lock()
        self._adapters: dict[tuple[str, str, str], Adapter] = {}
        self._problems: list[FamilyStatus] = []
        found = self._plugin_families(entry_points(group=GROUP) if plugins is None else plugins)
        taken = {family.family for family in found}
        installed = [*found, *(family for family in built_in_families() if family.family not in taken)]
        families = with_profiles(installed, profiles) if profiles is not None else installed
        # A family that is named by a word of its own is meant by it, whatever else would know the rest of the id.
        self._families: Sequence[Family] = sorted(families, key=lambda family: family.prefix is None)

    def for_model(self, model: str, api: str | None = None) -> Adapter:
        """The adapter for a model id, provider prefixes allowed. A new model of a known family gets the family's defaults, and each of its
        answers a note that says so.

        ``api`` is the name of one of the model's APIs or the last part of it; without it a prefix of the id decides, then the model, then
        the family.

        Raises:
            UnknownModel: no family recognises the id.
            ApiNotOffered: the model's family has no API of that name.
        """
        for family in self._families:
            match = family.match(model)
            if match is None:
                continue
            if api is not None:
                named = family.api_named(api)
                if named is None:
                    offered = ", ".join(each.api for each in (family.main_api, *family.apis))
                    raise ApiNotOffered(hint=f"For this model it is one of: {offered}.")
                match = match.model_copy(update={"api": named})
            return self._adapter(family, match)
        raise UnknownModel

    def families(self) -> list[FamilyStatus]:
        """Every profile of every family, and the plugins that could not be loaded. Loads the tokenizers to say where they come from."""
        rows = list(self._problems)
        for family in self._families:
            for profile in (*family.profiles, family.default):
                rule = profile.tokenizer
                status = self.tokenizers.status(rule.encoding)[0]
                worst = status.method
                if rule.estimate:
                    worst = CountMethod.ESTIMATE
                elif worst is CountMethod.EXACT and (rule.error_one > 0 or profile.framing.uncertain > 0):
                    worst = CountMethod.CALIBRATED
                rows.append(
                    FamilyStatus(
                        family=family.family,
                        profile=profile.name,
                        patterns=tuple(profile.patterns) or (f"{family.prefix}/…" if family.prefix is not None else family.recognise,),
                        api=", ".join(each.api for each in (family.main_api, *family.apis)),
                        tokenizer=rule.told,
                        tokenizer_source=status.source,
                        method=worst,
                        window_tokens=profile.window_tokens,
                    )
                )
        return rows

    def _adapter(self, family: Family, match: Match) -> Adapter:
        key = (family.family, match.profile.name, match.api.api)
        with self._lock:
            adapter = self._adapters.get(key)
            if adapter is None:
                module, _, name = match.api.builder.partition(":")
                builder = cast("Builder", getattr(importlib.import_module(module), name))
                notes = () if match.known else (f"No profile lists this model; the defaults of the {family.family} family were used.",)
                profile = match.profile
                if match.api.framing is not None:
                    profile = profile.model_copy(update={"framing": match.api.framing})
                adapter = builder(profile, Toolbox(self.tokenizers, self._fence_key, notes, family.prefixes))
                self._adapters[key] = adapter
        return adapter

    def _plugin_families(self, plugins: Iterable[EntryPoint]) -> list[Family]:
        """Families of other packages, by name. One that cannot be loaded is reported, and does not stop the service."""
        found: list[Family] = []
        for plugin in sorted(plugins, key=lambda each: each.name):
            try:
                family = plugin.load()()
            except (ImportError, AttributeError, TypeError, ValueError, OSError) as failure:
                self._report(plugin, f"{type(failure).__name__} while loading {plugin.value}")
                continue
            if isinstance(family, Family):
                found.append(family)
            else:
                self._report(plugin, f"{plugin.value} does not return a Family")
        return found

    def _report(self, plugin: EntryPoint, problem: str) -> None:
        self._problems.append(FamilyStatus(plugin.name, "", (), "", "", "", None, 0, problem))
