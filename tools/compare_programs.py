"""Runs whole programs on the engine, under the alias, and on Warp, and compares what they leave.

Usage: python tools/compare_programs.py LIST... --results FILE [--warp-python PYTHON]
           [--seconds N]

A list has a line for each program: a module, as `python -m` takes it, and its arguments; with
`module:call()` the call is run instead of the module as a program, and after ` ## ` is what to say
where it runs on neither side. tools/programs.txt is one.
Each runs in processes of its own. The arrays and numbers that its globals lead to at the end, and
the numbers that it prints, are compared; where they differ by more than rounding, the same program
runs again with float64 everywhere, and says which of the two is nearer. One JSON line for each goes
to the results; programs that have one are not run again. `tools/make_evidence.py` makes a table
of such a file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.wild import programs  # noqa: E402


def main() -> int:
    """Runs what is left to be run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lists", type=Path, nargs="+", metavar="LIST")
    parser.add_argument("--results", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--warp-python", default=sys.executable, metavar="PYTHON", help="runs both sides"
    )
    parser.add_argument("--seconds", type=int, default=300, help="for one run of a program")
    args = parser.parse_args()
    found = [p for file in args.lists for p in programs.listed(file)]
    with tempfile.TemporaryDirectory() as scratch:
        programs.main_loop(found, args.results, Path(scratch), args.warp_python, args.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
