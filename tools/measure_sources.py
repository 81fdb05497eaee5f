"""Says how much of a folder of Python sources, written for Warp, the engine takes as it is.

Usage: python tools/measure_sources.py FOLDER [--skip PATTERN]... [--json FILE] [--log FILE]

Every module is imported with the name `warp` standing for the engine, every kernel is lowered and
its adjoint made; nothing is compiled or launched. It prints what was imported, what was lowered,
and what was not, by cause. Kernels with tiles, volumes and textures are counted apart.
Modules that are not installed are stood in for, and named. With --log, what was measured before is
kept and the rest is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.wild import measure  # noqa: E402


def main() -> int:
    """Measures, prints, and writes the data where that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--skip", action="append", default=[], metavar="PATTERN",
                        help="modules that are left out, as `newton.tests.*`")  # fmt: skip
    parser.add_argument("--alias", default="warp")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--log", type=Path, metavar="FILE")
    parser.add_argument("--seconds", type=int, default=60, help="for a module, and for a kernel")
    args = parser.parse_args()
    if not args.folder.is_dir():
        parser.error(f"{args.folder} is no folder")
    with tempfile.TemporaryDirectory() as scratch:
        log = (args.log or Path(scratch) / "log.jsonl").resolve()
        measure.measure(args.folder.resolve(), log, args.alias, args.skip, args.seconds)
        found = measure.report(args.folder.resolve(), log, args.skip)
    print(measure.text(found), end="")
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
