"""Compares the output that a document shows with the real one, up to the listed differences."""

from __future__ import annotations

import re
from itertools import groupby

DOTS = "..."  # a line that stands for any lines

_TIME = re.compile(r"\b\d+(\.\d+)?(e-\d+)? ?(ns|us|ms|s|min)\b")
_SIZE = re.compile(r"\b\d+(\.\d+)? ?(B|KiB|MiB)(?!\w)")
# Less than a millionth: what rounding leaves, which differs by machine.
_ROUNDING = re.compile(r"(?<![\w.])-?\d(\.\d+)?e-(0[6-9]|[1-9]\d)\b")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?")


def same(shown: str, printed: str) -> bool:
    """Whether what is shown is what was printed.

    Not compared are: durations and sizes; numbers below 1e-6; the numbers of a table's row that
    passes, as rounding decides which entry is the worst; the order of rows that fail; spaces.
    """
    wanted, found = _lines(shown), _lines(printed)
    if DOTS not in wanted:
        return _ordered(wanted) == _ordered(found)
    head, tail = _around(wanted)
    return (
        len(found) >= len(head) + len(tail)
        and _ordered(found[: len(head)]) == _ordered(head)
        and _ordered(found[len(found) - len(tail) :]) == _ordered(tail)
    )


def renewed(shown: str, printed: str) -> str:
    """What to show in place of it: as many lines before and after `...` as before.

    Lines that differ in durations and sizes alone stay: those of a busy machine tell nothing.
    """
    known = {_timeless(line): line for line in shown.split("\n")}
    lines = [line.rstrip() for line in printed.strip("\n").split("\n")]
    lines = [known.get(_timeless(line), line) for line in lines]
    if DOTS in shown.split("\n"):
        head, tail = _around(shown.strip("\n").split("\n"))
        if len(lines) > len(head) + len(tail):
            lines = [*lines[: len(head)], DOTS, *lines[len(lines) - len(tail) :]]
    return "\n".join(lines)


def _around(lines: list[str]) -> tuple[list[str], list[str]]:
    at = lines.index(DOTS)
    return lines[:at], lines[at + 1 :]


def _lines(text: str) -> list[str]:
    return [_normal(line) for line in text.strip("\n").split("\n")]


def _normal(line: str) -> str:
    words = line.split()
    if words and words[-1] == "pass":
        words = [w if k == 0 or not _NUMBER.fullmatch(w) else "#" for k, w in enumerate(words)]
    text = _ROUNDING.sub("#", _timeless(" ".join(words)))
    return re.sub(r"([=─-])\1{3,}", r"\1\1\1\1", text)


def _timeless(line: str) -> str:
    return _SIZE.sub(r"# \2", _TIME.sub(r"# \3", line))


def _ordered(lines: list[str]) -> list[str]:
    found: list[str] = []
    for fails, group in groupby(lines, lambda x: x.endswith(" fail")):
        rows = list(group)
        found += sorted(rows) if fails else rows
    return found
