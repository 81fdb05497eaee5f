"""Writes docs/evidence.md of docs/evidence.json, and that of what was measured, where it is given.

Usage: python tools/make_evidence.py [--check] [--results FILE...] [--lowered FILE...]
           [--programs FILE] [--warp-python PYTHON]

--results: files of `compare_with_warp.py`, each called as its package. --lowered: files of
`measure_sources.py --json`. --programs: a file of
`compare_programs.py`. --warp-python: an interpreter with Warp, which runs the reported programs and
whose versions are noted. With --check nothing is written; the exit code is 1 where the page is out
of date.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.wild import beside, evidence, made  # noqa: E402

DATA, PAGE = ROOT / "docs" / "evidence.json", ROOT / "docs" / "evidence.md"
PROGRAMS = sorted((ROOT / "tests" / "programs" / "reported").glob("*.py"))
TOOLS = ("numpy", "python", "warp-lang")


def main() -> int:
    """Takes in what is given, and writes or compares the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--lowered", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--programs", type=Path, metavar="FILE")
    parser.add_argument("--warp-python", metavar="PYTHON")
    args = parser.parse_args()
    data: dict[str, Any] = {"versions": {}, "packages": [], "lowered": [], "reported": {}}
    if DATA.exists():
        data = json.loads(DATA.read_text())
    installed = beside.versions(args.warp_python) if args.warp_python else {}
    names = {n.lower().replace("-", "_"): v for n, v in installed.items()}
    if installed:
        data["versions"] = {n: installed[n] for n in TOOLS}
        said = {p.stem: evidence.there(p, args.warp_python) for p in PROGRAMS}
        data["reported"] = {"version": installed["warp-lang"], "programs": said}
    if args.results:
        data["packages"] = [evidence.summary(p, names) for p in args.results]
    if args.lowered:
        data["lowered"] = [evidence.lowered(p) for p in args.lowered]
    if args.programs:
        data["programs"] = evidence.program_rows(args.programs)
    return made.settle(PAGE, evidence.page(data, PROGRAMS), DATA, data, args.check)


if __name__ == "__main__":
    sys.exit(main())
