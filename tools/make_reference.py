"""Writes the reference of the kernel language, docs/language/*.md, the tables of docs/from-warp.md,
and the stubs of builtins, engine/builtins/names.pyi, from the registry.

Usage: python tools/make_reference.py [--check]. The examples are run, and what they print is
shown. With --check nothing is written; the exit code is 1 where a page is out of date.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from engine.builtins.families import FAMILIES  # noqa: E402
from tools.reference import from_warp  # noqa: E402
from tools.reference.pages import EXAMPLES, index, page  # noqa: E402
from tools.reference.stubs import stubs  # noqa: E402

LANGUAGE = "docs/language"
STUBS = "engine/builtins/names.pyi"


def run(path: Path) -> str:
    """What an example prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(path), run_name="__main__")
    return out.getvalue()


def files() -> dict[str, str]:
    """The text of every file, by its path in the project."""
    made = {f"{LANGUAGE}/index.md": index(), STUBS: stubs(), from_warp.PAGE: from_warp.page(ROOT)}
    for family in FAMILIES:
        output = run(ROOT / LANGUAGE / EXAMPLES / f"{family.name}.py")
        made[f"{LANGUAGE}/{family.name}.md"] = page(family, output)
    return made


def stale(made: dict[str, str]) -> list[str]:
    """Paths that are not as they should be: changed, missing, or left from before."""
    there = {p.relative_to(ROOT).as_posix() for p in (ROOT / LANGUAGE).glob("*.md")}
    now = {n: (ROOT / n).read_text(encoding="utf-8") for n in made if (ROOT / n).exists()}
    changed = {n for n, text in made.items() if now.get(n) != text}
    return sorted(changed | there - set(made))


def main(arguments: list[str]) -> int:
    """Writes the files, or says which are out of date."""
    made = files()
    old = stale(made)
    if "--check" in arguments:
        for name in old:
            print(f"out of date: {name}; run python tools/make_reference.py")
        return 1 if old else 0
    for name, text in made.items():
        (ROOT / name).write_text(text, encoding="utf-8")
    print(f"{len(made)} files written, {len(old)} of them changed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
