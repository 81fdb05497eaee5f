"""Reports made by hand, for tests of what is written of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from adtool.report import (
    SCHEMA,
    EndToEnd,
    Finding,
    Launch,
    Pair,
    Report,
    Worst,
    exit_code,
)

HOSTILE = (
    "<script>alert(1)</script>", "]]>", "::error::x", "a\nb", "\x00\x1b[31mred\x7f\ufffe\r",
    "a|b\\|c", "🎉𝑦", "\udc80\ud800", "``` `` `",
    "@everyone #1", "{0} {{", "%0A%25", "-->", "&amp;", "$x$",
)  # fmt: skip


def pair(verdict: Any = "pass", **given: Any) -> Pair:
    """A pair; by default one that passes."""
    error = 0.5 if verdict == "fail" else 1e-9
    values: dict[str, Any] = {
        "input": "x", "output": "y", "verdict": verdict,
        "checked": 0 if verdict == "skipped" else 9,
        "max_abs_error": error, "max_rel_error": error,
        "worst": Worst(0, 0, 1.0 + error, 1.0, rel_error=error, allowed=1e-5),
    }  # fmt: skip
    return Pair(**(values | given))


def launch(index: int, *pairs: Pair, **given: Any) -> Launch:
    """A launch of the kernel `springs`."""
    values: dict[str, Any] = {
        "tape": 0, "index": index, "kernel": "springs", "file": "/w/springs.py", "line": 3,
        "dim": (3,), "pairs": pairs,
    }  # fmt: skip
    return Launch(**(values | given))


def finding(code: str = "G001", **given: Any) -> Finding:
    """A finding in the first launch of `springs`."""
    values: dict[str, Any] = {
        "code": code, "name": "wrong-gradient", "severity": "error", "message": "it is `wrong`",
        "help": "mend it", "kernel": "springs", "tape": 0, "launch": 0, "file": "/w/springs.py",
        "line": 3, "column": 5, "end_line": 3, "end_column": 9, "fingerprint": "0123456789abcdef",
        "source": ("    𝑦[i] = x[i]",),
    }  # fmt: skip
    return Finding(**(values | given))


def report(**given: Any) -> Report:
    """A report whose exit code is that of its findings."""
    values: dict[str, Any] = {
        "schema": SCHEMA, "tool": "adtool 1.2.3", "script": "springs.py", "device": "cpu",
        "ok": True, "exit_code": 0, "launches": (launch(0, pair()),), "findings": (),
        "end_to_end": (EndToEnd(0, "pass", 1e-9),), "tapes": 1, "seconds": 1.25,
    }  # fmt: skip
    made = Report(**(values | given))
    code = int(exit_code(made.findings, made.gate, made.error is not None))
    return replace(made, ok=code == 0, exit_code=code)


def hostile(names: Iterable[str]) -> tuple[Finding, ...]:
    """A finding about each name, which stands in everything that is the user's."""
    return tuple(
        finding(
            message=f"wrong gradient of kernel `{n}`: {n}", help=f"look at {n}", kernel=n,
            notes=(n,), arrays=(n,), file=f"/w/{n}.py", source=(f"    {n}",), launch=i,
            end_column=5 + len(n), near=((f"/w/{n}.py", 7),), fingerprint=f"{i:016x}",
        )
        for i, n in enumerate(names)
    )  # fmt: skip
