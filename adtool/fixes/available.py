"""Lists the findings that a fix exists for."""

from __future__ import annotations

from collections.abc import Sequence

from adtool.fixes.files import refusal
from adtool.places import short
from adtool.report import Finding, Fix


def fixable(findings: Sequence[Finding]) -> tuple[int, int]:
    """For how many findings: by safe fixes, and by others."""
    fixes = [f.fix for f in findings if f.fix is not None and not f.suppressed]
    safe = [f.safe for f in fixes if not why_not(f)]
    return sum(safe), len(safe) - sum(safe)


def why_not(fix: Fix) -> str:
    """Why a fix cannot be made, whatever it does."""
    for file in dict.fromkeys(e.file for e in fix.edits):
        if reason := refusal(file):
            return f"`{short(file)}` cannot be changed: {reason}"
    return ""
