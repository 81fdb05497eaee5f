"""Launches that a tape keeps as rows instead of objects.

Compiled code puts what a record would have into one list of all, one thing after another (see
`compile/cpu/native/launches.h`), and runs adjoints from there. Records are made where somebody
looks at them. A record is two objects that Python's collector looks at again and again; the list
is one.

First in it is whether more may come there: not after somebody has got the list of records, which
has to grow from then on. Records of other things stand between the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.runtime import quick

# How many parts rows are made records in at most, and of how many objects one is at least.
_PARTS, _LEAST = 16, 1 << 16


def begun(grows: bool = True) -> list[Any]:
    """A list without rows. grows: whether there may come some."""
    return [grows]


def ended(rows: list[Any]) -> None:
    """Has compiled code make records from now on: no more rows come."""
    rows[0] = False


def are_rows(listed: list[Any]) -> bool:
    """Whether a list is one of rows, not of records."""
    first = next(iter(listed), None)  # other threads may forget what it has at any time
    return first.__class__ is bool


def has_any(rows: list[Any]) -> bool:
    return len(rows) > 1


def make(rows: list[Any], records: list[Any]) -> None:
    """Puts the records of the rows that there are behind others, in their place.

    By parts, between which other threads run, and handlers of signals.
    """
    functions = quick.made()
    assert functions is not None  # they have made the rows
    left = len(rows) - 1
    most = max(left // _PARTS, _LEAST)
    while left > 0 and has_any(rows):
        left -= functions.made(rows, records, most)


def arrays(listed: list[Any], made: Callable[[], list[Any]]) -> list[Any]:
    """The arrays of launches, some of them twice. For the arguments see `run_ready`."""
    functions = quick.functions()
    found = None if functions is None else functions.arrays(listed)
    return [a for r in made() for a in r.arrays] if found is None else found


def run_ready(listed: list[Any], made: Callable[[], list[Any]]) -> bool:
    """Runs all launches backward, in few calls of compiled code; False where nothing has run.

    It has where all of them are as `is_ready` says. listed: their records, or rows that stand for
    these. made: gives the records.
    """
    functions = quick.functions()
    if functions is None:
        return False
    records = None if are_rows(listed) else listed[:]  # other threads may forget them
    came = functions.back_all(listed if records is None else records)
    if came is None or came is True:
        return came is True
    if records is None:
        records = made()[:]
    number = 0
    while came is not True:
        if came is not None:
            number = came if isinstance(came, int) else int.from_bytes(came[:8], "little")
        if number >= len(records):
            break  # they are forgotten
        r = records[number]
        if came is None:
            r.reverse()
        elif isinstance(came, int):
            r.run_ready()
        else:
            adjoint = r.selection.adjoint
            assert adjoint is not None
            outcome = adjoint.left(r.dim, r.values, r.blob, came[8:])
            r.stack_bytes = adjoint.finish(outcome, r.dim).stack_bytes
        number -= 1
        came = functions.back_all(records, number) if number >= 0 else True
    return True
