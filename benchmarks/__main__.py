"""Measures the engine beside its peers: `python -m benchmarks`.

    python -m benchmarks                        all rows, about ten minutes; writes RESULTS.md
    python -m benchmarks saxpy 'grad*'          some rows; only prints
    python -m benchmarks launch --peers warp    beside some peers; "none" for the engine alone
    python -m benchmarks --list                 the names
    python -m benchmarks --device cuda --and-tests    tests and rows of a GPU; writes CUDA.md

A row or a peer that fails is reported, and the rest goes on. The data are written after each row.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.frameworks import FRAMEWORKS, ON_CPU
from benchmarks.recording import RECORD, Recording
from benchmarks.running import ROWS, Choice, run
from benchmarks.targets import OURS


def _peers(text: str) -> tuple[str, ...]:
    names = [n.strip().replace("cxx", "c++") for n in text.split(",")]
    names = [n for n in names if n not in ("", "none")]
    unknown = [n for n in names if n not in FRAMEWORKS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown)}: the peers are {', '.join(n for n in ON_CPU if n != OURS)}"
        )
    return (OURS, *(n for n in names if n != OURS))


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="names or patterns (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument(
        "--peers", type=_peers, default=None, metavar="A,B",
        help=f"of {', '.join(n for n in ON_CPU if n != OURS)} (default: all)",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, help="turns of each peer (7, on a GPU 5)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a command may take")
    parser.add_argument("--out", type=Path, help="folder for the page, the data and the plots")
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument(
        "--update", action="store_true", help="put the measured rows into what is on record"
    )
    parser.add_argument(
        "--render", action="store_true", help="measure nothing: write page and plots from the data"
    )
    parser.add_argument(
        "--device", default="cpu", choices=("cpu", "cuda", "emulated"),
        help='"cuda" measures the first GPU; "emulated" tries that out without one, with --quick',
    )  # fmt: skip
    parser.add_argument(
        "--and-tests", action="store_true", help="with a GPU: its tests first (needs pytest-xdist)"
    )
    parser.add_argument(
        "--seconds", type=float, default=310.0, help="with a GPU: after which no row begins"
    )
    given = parser.parse_args(arguments)
    if given.device != "cpu":
        return _on_gpu(parser, given)
    if given.list:
        for name, title in ROWS.items():
            print(f"{name:<18} {title}")
        return 0
    choice = Choice.of(
        given.rows, given.peers or ON_CPU, given.rounds or 7, given.limit, given.quick
    )
    if not choice.rows:
        parser.error(f"no row is called {' or '.join(given.rows)}; --list names them")
    whole = not given.rows and not given.quick
    folder = given.out or (RECORD if whole or given.update or given.render else None)
    recording = Recording(folder)
    if given.render:
        recording.reload()
    else:
        run(choice, recording, update=given.update)
    recording.finish()
    return 0


def _on_gpu(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    from benchmarks.gpu import run as gpu

    if given.list:
        for name, title in gpu.ROWS.items():
            print(f"{name:<18} {title}")
        return 0
    if given.update or given.render:
        parser.error("--update and --render are of the CPU's page")
    return gpu.run(
        given.device, given.rows, given.peers, with_tests=given.and_tests, quick=given.quick,
        rounds=given.rounds or 5, seconds=given.seconds, out=given.out,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
