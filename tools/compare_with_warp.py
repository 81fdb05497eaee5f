"""Runs the kernels of a folder of sources on the engine and on Warp, and says who is right.

Usage: python tools/compare_with_warp.py FOLDER --results FILE [--warp-python PYTHON]
           [--skip PATTERN]... [--retry STATE]

Arguments are random, of the types that annotations say; each kernel runs in a process of its own.
What differs, forward or in gradients, is judged by the kernel's float64 form in the interpreter of
the IR. One JSON line for each kernel goes to the results; kernels that have one are not run again.
`tools/make_evidence.py` makes docs/evidence.md of such files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.wild import beside  # noqa: E402


def main() -> int:
    """Runs what is left to be run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path, required=True, metavar="FILE")
    parser.add_argument("--warp-python", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--skip", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--seconds", type=int, default=120, help="for one run of a kernel")
    parser.add_argument("--retry", metavar="STATE", help='only what ended in it: "not planned"')
    args = parser.parse_args()
    pythons = (sys.executable, args.warp_python)
    options = {"skip": args.skip, "seconds": args.seconds, "retry": args.retry}
    with tempfile.TemporaryDirectory() as scratch:
        beside.main_loop(args.folder.resolve(), args.results, Path(scratch), pythons, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
