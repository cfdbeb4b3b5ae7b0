"""`lastro conformance`: whether an adapter keeps the rules, ours or a third party's (A6)."""

from __future__ import annotations

import contextlib
import importlib
import secrets
import sys
from collections.abc import Callable
from typing import Annotated, Any, cast

import typer

from adapters.base import Adapter, Builder, Toolbox
from adapters.conformance import Report, State, Subject, run
from adapters.profile import Attention, Family, Framing, Profile, TokenizerRule, Window
from adapters.registry import AdapterRegistry
from adapters.tokenizers import Tokenizers
from app.cli import options, output
from app.settings import load_settings
from graph.model.errors import CommandRefused, UnknownModel

EXAMPLES = "Examples:  lastro conformance gpt-5.2   |   lastro conformance --adapter my_package.my_model:builder   |   lastro conformance my-model --adapter my_package:family --json"

ANY_MODEL = "any-model"
_JUDGEMENT = "made up for the conformance kit"
PLAIN = Profile(
    name="any model",
    window=Window(nominal=128_000, effective=64_000, confidence="judgement", source=_JUDGEMENT),
    attention=Attention(head=0.5, tail=0.5, amplitude=0.1, confidence="judgement", source=_JUDGEMENT),
    tokenizer=TokenizerRule(encoding="o200k_base", confidence="judgement", source=_JUDGEMENT),
    framing=Framing(request=3, message=3, name=1, confidence="judgement", source=_JUDGEMENT),
)
"""What a builder gets that is tested without a model: no vendor's numbers."""


def conformance(
    model: Annotated[str | None, typer.Argument(help="Model id, as callers write it.", show_default=False)] = None,
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGE.MODULE:NAME",
            help="Test this instead of what is installed: a builder (profile, toolbox) -> Adapter, or a function () -> Family. Runs its code.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Run an adapter through the conformance kit.

    Every unit once, order by attention, pairs whole, the vendor's own types, count within bounds, no authority for what is not trusted,
    the same bytes each time, and fences that hold. Exit code 1 when a rule is broken; what could not be checked is said.
    """
    if model is None and adapter is None:
        raise CommandRefused(
            "Say which model, or which adapter.", hint="`lastro conformance gpt-5.2`, or --adapter package.module:builder."
        )
    tokenizers = Tokenizers()
    made = _registered(cast("str", model), tokenizers) if adapter is None else _given(adapter, model, tokenizers)
    report = run(made)
    _show(report, as_json=as_json)
    if not report.conforms:
        sys.exit(output.EXIT_REFUSED)


def _registered(model: str, tokenizers: Tokenizers) -> Subject:
    """The adapter that the service would use; each time from a registry of its own, with the same key."""
    key = secrets.token_bytes(32)
    # The operator's own profiles too, and refused where the service would not start with them.
    profiles = load_settings().profiles

    def made() -> Adapter:
        return AdapterRegistry(key, tokenizers=tokenizers, profiles=profiles).for_model(model)

    made()
    return Subject(made, model, tokenizers)


def _given(name: str, model: str | None, tokenizers: Tokenizers) -> Subject:
    """What a third party names.

    Raises:
        CommandRefused: there is no such thing, or it is neither a builder nor a family's function.
        UnknownModel: its family does not recognise the model.
    """
    target = _imported(name)
    tools = Toolbox(tokenizers, secrets.token_bytes(32))
    if isinstance(target, Family):
        family = target
    else:
        parameters = _positional(target)
        if parameters == 2:  # noqa: PLR2004 (profile and toolbox)
            profile = PLAIN
            if model is not None:
                # A builder may be of a family that is not installed; it is then tested with no vendor's numbers.
                with contextlib.suppress(UnknownModel):
                    profile = (
                        AdapterRegistry(tools.fence_key, tokenizers=tokenizers, profiles=load_settings().profiles).for_model(model).profile
                    )
            return Subject(lambda: cast("Builder", target)(profile, tools), model or ANY_MODEL, tokenizers)
        family = target() if parameters == 0 else None
        if not isinstance(family, Family):
            raise CommandRefused("--adapter names neither a builder nor a function that returns a Family.")
    profile, builder = family.default, family.builder
    if model is not None:
        match = family.match(model)
        if match is None:
            raise UnknownModel
        profile, builder = match.profile, match.api.builder
    make = cast("Builder", _imported(builder))
    return Subject(lambda: _adapter(make, profile, tools), model or ANY_MODEL, tokenizers)


def _adapter(make: Builder, profile: Profile, tools: Toolbox) -> Adapter:
    return make(profile, tools)


def _imported(name: str) -> Any:
    """What a name of the form package.module:name stands for.

    Raises:
        CommandRefused: it has another form, or the module cannot be imported, or has no such name.
    """
    module, _, attribute = name.partition(":")
    if not attribute or not all(part.isidentifier() for part in module.split(".")):
        raise CommandRefused(
            "--adapter has another form than package.module:name.", hint="For example: --adapter my_package.my_model:builder"
        )
    try:
        found = importlib.import_module(module)
    except ImportError as failure:
        # The module that is missing may be one that the named one needs.
        missing = f": there is no module {failure.name}" if isinstance(failure, ModuleNotFoundError) and failure.name else ""
        raise CommandRefused(
            f"The module of --adapter cannot be imported{missing}.", hint="Install its package, or put its folder on PYTHONPATH."
        ) from None
    try:
        return getattr(found, attribute)
    except AttributeError:
        raise CommandRefused(
            "The module of --adapter has nothing of that name.", hint="After the colon stands a builder, a Family, or a function of one."
        ) from None


def _positional(target: Callable[..., object]) -> int | None:
    """How many arguments a callable has to be given; None for what cannot be called or does not say."""
    import inspect  # noqa: PLC0415 (0.02 s that no other command need pay)

    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return None
    return sum(each.default is each.empty and each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD} for each in parameters)


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        output.print_json(
            {
                "model": report.model,
                "profile": report.profile,
                "api": report.api,
                "conforms": report.conforms,
                "complete": report.complete,
                "rules": [
                    {"rule": row.check, "state": row.state, "cases": row.cases, "failures": row.failures, "why": row.why}
                    for row in report.rows
                ],
                "failures": [{"rule": failure.check, "case": failure.case, "what": failure.what} for failure in report.failures],
            }
        )
        return
    rows = [(row.check, row.state.value, row.cases, row.failures or "", row.why) for row in report.rows]
    output.table(
        ["rule", "state", "cases", "failures", ""],
        rows,
        title=f"{report.model}: {report.profile}, {report.api}",
        right=(2, 3),
        wrap_last=True,
    )
    if report.failures:
        output.out.print()
        output.table(["rule", "case", "what failed"], [(each.check, each.case, each.what) for each in report.failures], wrap_last=True)
    unchecked = sum(row.state is State.NOT_CHECKED for row in report.rows)
    said = "conforms" if report.conforms else "does not conform"
    if unchecked:
        said += f"; {unchecked} of its rules could not be checked"
    output.out.print(f"\n{output.printable(report.model)} {said}.", markup=False)
