"""Launches that a tape keeps without objects of their own.

Compiled code puts what a record would have into one list of all, one thing after another (see
`compile/cpu/native/launches.h`), and runs adjoints from there. Records are made where somebody
looks at them. A record is two objects that Python's collector looks at again and again; the list
is one.

First in it is whether more may come there: not after somebody has got the list of records, which
has to grow from then on. Records of other things stand between the rows.
"""

from __future__ import annotations

from typing import Any

from engine.runtime import quick


def begun() -> list[Any]:
    """A list without rows."""
    return [True]


def ended(rows: list[Any]) -> None:
    """Has compiled code make records from now on."""
    rows[0] = False


def are_rows(listed: list[Any]) -> bool:
    """Whether a list is one of rows, not of records."""
    return bool(listed) and listed[0].__class__ is bool


def has_any(rows: list[Any]) -> bool:
    return len(rows) > 1


def make(rows: list[Any], records: list[Any]) -> None:
    """Puts the records of rows behind others; no rows are left."""
    functions = quick.functions()
    assert functions is not None  # they have made the rows
    functions.made(rows, records)
