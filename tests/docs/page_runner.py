"""Runs the blocks of a Markdown page: files are written, changes made, commands run and compared.

```python title="NAME"   a file; ```diff title="NAME"   lines of a file that take others' place
```console               `$ adtool ...`, `$ python ...` or `$ pytest ...`, and what is printed
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?")
_PROGRAMS = {"adtool": ["-m", "adtool"], "python": [], "pytest": ["-m", "pytest"]}


@dataclass(frozen=True)
class Step:
    """A command, what the page shows of it, and what was printed. status: its exit code."""

    command: str
    shown: str
    printed: str
    status: int


def run(page: str, folder: Path) -> list[Step]:
    """Does what the page says in a folder, from its top to its end."""
    steps = []
    for kind, title, text in _BLOCK.findall(page):
        if kind == "python" and title:
            (folder / title).write_text(text, encoding="utf-8")
        elif kind == "diff" and title:
            _change(folder / title, text)
        elif kind == "console":
            for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE)[1:]:
                command, _, shown = part[2:].partition("\n")
                steps.append(_ran(command, shown, folder))
    return steps


def differences(shown: str, printed: str) -> list[str]:
    """What the page shows and the command did not print, and the other way round.

    A line `...` of the page stands for any lines. Spaces count for nothing, nor do numbers that
    differ by machine: durations, sizes of files, and in rows of a table that pass what is only
    rounding. Rows that fail may come in another order.
    """
    lines = _comparable(printed)
    pieces = [list(p) for dots, p in groupby(_comparable(shown), lambda x: x == "...") if not dots]
    starts, ends = not _first(shown) == "...", not _last(shown) == "..."
    at = 0
    for number, piece in enumerate(pieces):
        size = len(piece)
        places = range(at, len(lines) - size + 1)
        if number == 0 and starts:
            places = range(1)
        elif number == len(pieces) - 1 and ends:
            places = range(max(at, len(lines) - size), len(lines) - size + 1)
        found = next((p for p in places if lines[p : p + size] == piece), None)
        if found is None or (len(pieces) == 1 and starts and ends and size != len(lines)):
            return [*(f"shown:   {x}" for x in piece), *(f"printed: {x}" for x in lines[at:])]
        at = found + size
    return []


def _first(text: str) -> str:
    return text.strip().split("\n")[0].strip()


def _last(text: str) -> str:
    return text.strip().split("\n")[-1].strip()


def _comparable(text: str) -> list[str]:
    lines = [_words(line) for line in text.strip().split("\n")]
    ordered: list[str] = []
    for fails, group in groupby(lines, lambda x: x.endswith(" fail")):
        rows = list(group)
        ordered += sorted(rows) if fails else rows
    return ordered


def _words(line: str) -> str:
    words = line.split()
    if words and words[-1] == "pass":  # the row of a table
        words = [w if not _NUMBER.fullmatch(w) else "#" for w in words]
    joined = re.sub(r"\b[\d.]+ ?(s|ms|us|B|KiB)\b", r"# \1", " ".join(words))
    joined = re.sub(r"relative error \S*e-\d+", "relative error #", joined)
    return re.sub(r"={4,}|-{4,}|─{4,}", "──", re.sub(r" +(?=\[100%\])", " ", joined))


def _change(path: Path, text: str) -> None:
    old = "".join(f"{x[1:]}\n" for x in text.splitlines() if x.startswith("-"))
    new = "".join(f"{x[1:]}\n" for x in text.splitlines() if x.startswith("+"))
    before = path.read_text(encoding="utf-8")
    assert before.count(old) == 1, f"{path.name} has not exactly once: {old}"
    path.write_text(before.replace(old, new), encoding="utf-8")


def _ran(command: str, shown: str, folder: Path) -> Step:
    program, *arguments = command.split()
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PYTEST_", "GITHUB_", "ENGINE_VERIFY"))
    }
    env |= {"COLUMNS": "88" if program == "adtool" else "80", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, *_PROGRAMS[program], *arguments], cwd=folder, env=env,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return Step(command, shown, done.stdout + done.stderr, done.returncode)
