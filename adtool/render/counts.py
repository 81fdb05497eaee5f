"""The number of checked tapes, launches and pairs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adtool.report import Report


def plural(number: int, word: str, many: str = "") -> str:
    """`1 tape`, `2 tapes`."""
    return f"{number} {word if number == 1 else many or word + 's'}"


def counted(report: Report) -> list[str]:
    """Tapes and launches, calls of functions of other frameworks, and pairs of them."""
    calls = [x for x in report.launches if x.framework]
    tapes = report.tapes - len({x.tape for x in calls})
    launches = len(report.launches) - len(calls)
    parts = []
    if tapes or launches or not calls:
        parts += [plural(tapes, "tape"), plural(launches, "launch", "launches")]
    if calls:
        parts.append(plural(len(calls), "call") + " of functions")
    return [*parts, plural(report.decided, "pair") + " checked"]
