"""Cursors of pages: the part of an order key behind the caller's own names, in letters that need no escaping."""

from __future__ import annotations

import base64
import re

from graph.model.errors import InvalidField

_TIME_AND_ID = re.compile(r"\d{18} \S{1,128}")


def to_cursor(rest: str) -> str:
    """``rest`` is time and id of the last row of a page."""
    return base64.urlsafe_b64encode(rest.encode()).decode()


def from_cursor(cursor: str, form: re.Pattern[str] = _TIME_AND_ID) -> str:
    """What ``to_cursor`` took, which has this form: time and id, unless it is said.

    Raises:
        InvalidField: the cursor was not made here.
    """
    try:
        rest = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except ValueError:  # of base64 and of UTF-8
        rest = ""
    if not form.fullmatch(rest):
        raise InvalidField("The cursor was not made here.", hint="Start from the first page.").at(field="cursor")
    return rest
