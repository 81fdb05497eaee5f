"""Fails where the spine of the engine grows: ways to run, listeners, switches on classes, packers.

Each row counts places of the source that match a pattern. `most` is what there may be: what there
is today, where that is more than the `goal`. It is lowered when a place goes, and never raised.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """Places that match a pattern in files of some folders, but for some of them.

    by_file: whether files count, not places. by_text: whether different texts count.
    """

    name: str
    pattern: str
    most: int
    goal: int
    folders: Sequence[str] = ("engine",)
    without: str = "$^"
    by_file: bool = False
    by_text: bool = False

    def places(self, root: Path) -> list[str]:
        """Where it matches: `file:line`, or files."""
        found = []
        for path in _files(root, self.folders):
            name = path.relative_to(root).as_posix()
            if re.match(self.without, name):
                continue
            text = path.read_text(encoding="utf-8")
            for match in re.finditer(self.pattern, text, re.MULTILINE):
                line = text.count("\n", 0, match.start()) + 1
                place = name if self.by_file else f"{name}:{line}"
                found.append(match[0] if self.by_text else place)
        return sorted(set(found)) if self.by_file or self.by_text else found


def _files(root: Path, folders: Iterable[str]) -> list[Path]:
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


ROWS = (
    # The driver's method has a name of its own, so that all that runs a form is counted.
    Row("plain ways to run a kernel, in any form", r"\.execute([(,)]|$)", 1, 1,
        folders=("engine", "adtool"), without=r"engine/runtime/execute\.py"),
    Row("native ways to run one", r"\baccelerator\.try_(?!reverse|zeros)\w+", 1, 1, by_text=True),
    Row("native ways to run a captured graph", r"\baccelerator\.\w*graph\w*", 2, 2, by_text=True),
    Row("plain ways through a tape backward", r"record\.reverse\(run\.", 1, 1),
    Row("native ways through a tape backward", r"\baccelerator\.try_reverse\b", 1, 1,
        without=r"engine/accel/"),
    Row("imports of what makes launches fast", r"(from|import) engine\.accel\b|import accel\b",
        0, 0, without=r"engine/accel/"),
    Row("lists and variables of observers",
        r"^\w+: (list\[(Observer|Callable|Watcher|Capture)|ContextVar\[(Here|Recorder|Callable))",
        2, 2, folders=("engine/runtime", "engine/tape", "engine/autograd/watch")),
    Row("switches on a record's class outside of its package",
        r"isinstance\([^)\n]*(Record\b|Captured[A-SU-Z]\w*|Barred)"
        r"|__class__ is (not )?\w*Record\b", 0, 0, folders=("engine", "adtool"),
        without=r"engine/tape/records/"),
    Row("packers of arguments", r"\b_packer\(value\)|^\s*def pack_arguments?\(", 1, 1,
        folders=("engine", "adtool")),
    Row("files that name bfloat16", r"\bbfloat16\b", 26, 8, folders=("engine", "adtool"),
        by_file=True),
    Row("files that name IndexedArrayType", r"\bIndexedArrayType\b", 14, 6,
        folders=("engine", "adtool"), by_file=True),
)  # fmt: skip


def main(root: Path, words: Sequence[str]) -> int:
    """Prints the counts; with `--places` where they are, too. Returns 1 where there are more."""
    failed = False
    for row in ROWS:
        places = row.places(root)
        verdict = "ok" if len(places) <= row.goal else f"goal {row.goal}"
        if len(places) > row.most:
            failed, verdict = True, f"error: at most {row.most}"
        elif len(places) < row.most:
            verdict += f", lower `most` from {row.most}"
        print(f"{row.name}: {len(places)} ({verdict})")
        if "--places" in words or len(places) > row.most:
            print(*(f"    {place}" for place in places), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1], sys.argv[1:]))
