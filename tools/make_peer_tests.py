"""Writes docs/warp-tests.md: which of Warp's own tests fail on the engine, and why.

Usage: python tools/make_peer_tests.py [FOLDER [NAME=VERSION ...]] | --check

FOLDER: of each file of tests FILE.log, what unittest printed; what it says is kept in
docs/warp-tests.json. NAME=VERSION: of what was run. With --check nothing is written; the exit
code is 1 where the page is out of date.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.wild import made, peer_tests  # noqa: E402

DATA, PAGE = ROOT / "docs" / "warp-tests.json", ROOT / "docs" / "warp-tests.md"


def main() -> int:
    """Takes in what is given, and writes or compares the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("versions", nargs="*", metavar="NAME=VERSION")
    args = parser.parse_args()
    if args.folder is not None:
        if not args.folder.is_dir():
            parser.error(f"{args.folder} is no folder")
        data = {
            "versions": dict(v.split("=", 1) for v in args.versions),
            "files": peer_tests.measured(args.folder),
        }
    else:
        data = json.loads(DATA.read_text(encoding="utf-8"))
    return made.settle(PAGE, peer_tests.page(data), DATA, data, args.check)


if __name__ == "__main__":
    sys.exit(main())
