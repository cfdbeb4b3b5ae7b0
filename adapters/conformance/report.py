"""Runs the kit and says what came of it: a row for each rule, and each failure with the case it was seen in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from adapters.conformance.cases import Case, cases
from adapters.conformance.checks import CHECKS, Answer
from adapters.conformance.fences import attacks, fenced
from adapters.conformance.subject import Subject
from adapters.conformance.vendor_types import NotChecked, check_types
from graph.model.errors import LastroError

VENDOR_TYPES = "vendor types"
FENCE = "fence"
RENDERS = "renders"
MOST_FAILURES = 200
"""Failures that a report keeps; the rows count all of them."""

RAISED = (LastroError, ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What an adapter of somebody else may raise: a defect of it is a line of the report, and does not hide what the other cases show."""


class State(StrEnum):
    """What came of a rule."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"
    """Nothing to check by, such as an SDK that is not installed. It is not a pass."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that is wrong: the rule, the case it was seen in, and what. Holds none of a case's text but ids."""

    check: str
    case: str
    what: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A rule: in how many cases it was looked at, how many failures there were, and why it was not checked."""

    check: str
    state: State
    cases: int
    failures: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run."""

    model: str
    profile: str
    api: str
    rows: tuple[CheckRow, ...]
    failures: tuple[Failure, ...]

    @property
    def conforms(self) -> bool:
        """Whether nothing failed. What was not checked is not held against the adapter; ``complete`` tells."""
        return not any(row.state is State.FAILED for row in self.rows)

    @property
    def complete(self) -> bool:
        """Whether every rule could be checked."""
        return not any(row.state is State.NOT_CHECKED for row in self.rows)


def run(subject: Subject, extra: Iterable[Case] = ()) -> Report:
    """All rules over all cases of the kit, and ``extra`` ones. Takes seconds to a minute: some cases are as long as a window."""
    adapter = subject.make()
    names = [RENDERS, *CHECKS, VENDOR_TYPES, FENCE]
    looked = dict.fromkeys(names, 0)
    failures: list[Failure] = []
    why: dict[str, str] = {}
    api = ""
    for case in [*cases(subject.model, adapter.profile), *extra]:
        looked[RENDERS] += 1
        try:
            answer = Answer(subject, adapter, case, adapter.render(case.request))
        except RAISED as failure:
            failures.append(Failure(RENDERS, case.name, f"render raised {type(failure).__name__}"))
            continue
        api = answer.result.rendered.api
        for name, check in CHECKS.items():
            looked[name] += 1
            failures += [Failure(name, case.name, what) for what in check(answer)]
        try:
            failures += [Failure(VENDOR_TYPES, case.name, what) for what in check_types(answer.result.rendered)]
            looked[VENDOR_TYPES] += 1
        except NotChecked as reason:
            why[VENDOR_TYPES] = str(reason)
    try:
        looked[FENCE] = len(attacks(subject, adapter))
        failures += [Failure(FENCE, case, what) for case, what in fenced(subject)]
    except RAISED as failure:
        failures.append(Failure(RENDERS, "an attack", f"render raised {type(failure).__name__}"))
    counts = {name: sum(failure.check == name for failure in failures) for name in names}
    rows = tuple(
        CheckRow(
            name,
            State.FAILED if counts[name] else State.NOT_CHECKED if name in why or not looked[name] else State.PASSED,
            looked[name],
            counts[name],
            why.get(name, ""),
        )
        for name in names
    )
    return Report(subject.model, adapter.profile.name, api, rows, tuple(failures[:MOST_FAILURES]))


def assert_conforms(subject: Subject, case: Case, *, types: bool = True) -> None:
    """For pytest: all rules over one case.

    Raises:
        AssertionError: what is wrong, a line each.
        NotChecked: there are no vendor's types to check by; ``types=False`` leaves them out.
    """
    adapter = subject.make()
    answer = Answer(subject, adapter, case, adapter.render(case.request))
    _none(f"{name}: {what}" for name, check in CHECKS.items() for what in check(answer))
    if types:
        _none(f"{VENDOR_TYPES}: {what}" for what in check_types(answer.result.rendered))


def assert_fenced(subject: Subject) -> None:
    """For pytest: no attack gets through the fence.

    Raises:
        AssertionError: what got through, a line each.
    """
    _none(f"{FENCE}: {case}: {what}" for case, what in fenced(subject))


def _none(wrong: Iterator[str]) -> None:
    listed = list(wrong)
    if listed:
        raise AssertionError("\n".join(listed))
