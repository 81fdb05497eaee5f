"""Findings that follow from another one: told in one line under it, and so are those of no concern.

Everything that people read takes them from here; the JSON report has all, whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from adtool.places import short, shortened
from adtool.report import Finding
from engine.classes import dataclass

# What a sentence says of an array beside its name.
_ASIDE = re.compile(r" \(argument `[^`]*`(?: of kernel `[^`]*`)?\)")


@dataclass(frozen=True, slots=True)
class Told:
    """A finding that is told whole, and those that follow from it."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()


def arranged(findings: Iterable[Finding]) -> tuple[list[Told], list[Finding]]:
    """The findings that are told whole, each with what follows from it; and the idle ones.

    Suppressed ones are left out. In the order of the findings.
    """
    open_ = [f for f in findings if not f.suppressed]
    there = {f.fingerprint for f in open_ if f.fingerprint and not f.follows}
    following: dict[str, list[Finding]] = {}
    for f in open_:
        if f.follows in there:
            following.setdefault(f.follows, []).append(f)
    whole = [
        Told(f, tuple(following.get(f.fingerprint, ()))) for f in open_
        if f.follows not in there and not f.idle
    ]  # fmt: skip
    return whole, [f for f in open_ if f.idle and f.follows not in there]


def headline(f: Finding, cause: Finding | None = None) -> str:
    """A finding in one line: where, and what, without why. cause: what it stands under."""
    head = _ASIDE.sub("", shortened(f.message).split("\n")[0].split(": ")[0])
    place = f" {short(f.file)}:{f.line}" if f.file and f.line else ""
    if place and cause is not None and cause.file == f.file:
        place = f" line {f.line}"
    return f"{f.severity}[{f.code}]{place}: {head}"
