"""The conformance kit (A6): does an adapter, ours or a third party's, keep the rules that the rest of Lastro counts on?

On the command line ``lastro conformance MODEL`` or ``lastro conformance --adapter package.module:builder``. In pytest::

    from adapters.conformance import Subject, assert_conforms, cases

    @pytest.mark.parametrize("case", cases("my-model"), ids=str)
    def test_my_adapter(case):
        assert_conforms(Subject(make_my_adapter, "my-model"), case)

    def test_nothing_breaks_its_fence():
        assert_fenced(Subject(make_my_adapter, "my-model"))

``adapters.conformance.strategies`` has the same as hypothesis strategies; it needs hypothesis, and nothing else here does.
"""

from __future__ import annotations

from adapters.conformance.cases import Case, cases
from adapters.conformance.fences import attacks
from adapters.conformance.report import CheckRow, Failure, Report, State, assert_conforms, assert_fenced, run
from adapters.conformance.subject import Subject

__all__ = ["Case", "CheckRow", "Failure", "Report", "State", "Subject", "assert_conforms", "assert_fenced", "attacks", "cases", "run"]
