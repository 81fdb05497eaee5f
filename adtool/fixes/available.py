"""Lists the findings that a fix exists for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from adtool.fixes.files import refusal
from adtool.places import short
from adtool.report import Edit, Finding, Fix

# The fixes that a run has not shown or made itself: all, those that --unsafe-fixes adds, or none.
Offers = Literal["all", "unsafe", "none"]


def offered(findings: Sequence[Finding], offers: Offers = "all") -> str:
    """A line with the options that make or show the fixes; empty if there are none to offer."""
    safe, unsafe = fixable(findings)
    safe = safe if offers == "all" else 0
    unsafe = 0 if offers == "none" else unsafe
    words = [f"{safe} with --fix"] if safe else []
    if unsafe:
        words.append(f"{unsafe}{' more' * bool(safe)} with --fix --unsafe-fixes")
    if not words:
        return ""
    show = "--diff --unsafe-fixes" if unsafe else "--diff"
    what = "it" if safe + unsafe == 1 else "them"
    return f"fixes to try: {', '.join(words)}; {show} shows {what}"


def fixable(findings: Sequence[Finding]) -> tuple[int, int]:
    """How many different safe fixes there are, and how many others.

    Several findings may ask for one and the same change.
    """
    fixes = [f.fix for f in findings if f.fix is not None and not f.suppressed]
    safe: dict[tuple[Edit, ...], bool] = {}
    for fix in fixes:
        if not why_not(fix):
            safe[fix.edits] = fix.safe or safe.get(fix.edits, False)
    return sum(safe.values()), len(safe) - sum(safe.values())


def why_not(fix: Fix) -> str:
    """Why a fix cannot be made, whatever it does."""
    for file in dict.fromkeys(e.file for e in fix.edits):
        if reason := refusal(file):
            return f"`{short(file)}` cannot be changed: {reason}"
    return ""
