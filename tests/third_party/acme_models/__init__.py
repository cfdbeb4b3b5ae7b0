"""A package of another vendor, as one would publish it: it brings a family of models and the adapter that speaks to them."""

from __future__ import annotations

from importlib.resources import files

from adapters.profile import Family, load_family


def family() -> Family:
    """What the entry point names."""
    return load_family(files("acme_models") / "acme.toml")
