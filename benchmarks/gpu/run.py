"""The tests and the rows of a GPU, one after the other, in a given time."""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.frameworks import ON_GPU
from benchmarks.gpu.cases import GPU_CASES
from benchmarks.gpu.page import markdown
from benchmarks.gpu.testing import run as run_tests
from benchmarks.limits import cores
from benchmarks.machine import describe
from benchmarks.measuring import Plan, measure
from benchmarks.page import line
from benchmarks.peers import Failure, Peer
from benchmarks.place import VARIABLE
from benchmarks.processes import STATES, Starts, process_passes, process_row
from benchmarks.running import load_all
from benchmarks.targets import OURS
from benchmarks.verdicts import judge_all

HERE = Path(__file__).resolve().parents[1]
RECORD = HERE / "results"
DATA = "cuda.json"
PAGE = "CUDA.md"
ROWS = {**{c.name: c.title for c in GPU_CASES}, "starts": "cold and warm starts"}


class Record:
    """What was found so far: written after each row, since the machine may be gone soon."""

    def __init__(self, data: Path | None, page: Path | None) -> None:
        self.data, self.page = data, page
        self.start = time.monotonic()
        self.result: dict[str, Any] = {"schema": 1, "rows": []}

    def say(self, text: str) -> None:
        """A line about how far it is."""
        print(f"{time.monotonic() - self.start:6.0f} s  {text}", file=sys.stderr, flush=True)

    def write(self) -> None:
        """Data and page."""
        targets = {
            (c.name, p): t for c in GPU_CASES for p, t in zip(c.passes, c.targets, strict=True) if t
        }
        judge_all(self.result, targets)
        data = json.dumps(self.result, indent=1) + "\n"
        for path, text in ((self.data, data), (self.page, markdown(self.result))):
            if path is not None:
                path.write_text(text, encoding="utf-8")

    def add(self, row: dict[str, Any]) -> None:
        """One more row."""
        self.result["rows"].append(row)
        self.write()
        for one in row["passes"]:
            print(line(row, one), flush=True)
        for name, why in row["failed"].items():
            print(f"{row['name']:<16} {name} failed: {why}", flush=True)


def gpu() -> dict[str, str]:
    """The GPU, asked in a process that ends: this one needs none."""
    program = (
        "import engine as wp, cupy, json; from engine.compile.cuda import nvrtc, gpu;"
        "d = wp.get_device('cuda:0'); v = gpu.version();"
        "print(json.dumps({'gpu': d.name, 'architecture': f'sm_{d.arch}',"
        "'multiprocessors': str(d.sm_count),"
        "'memory of the GPU': f'{d.total_memory / 2**30:.0f} GiB',"
        "'cupy': cupy.__version__, 'driver': f'CUDA {v[0] // 1000}.{v[0] % 1000 // 10}',"
        "'nvrtc': '.'.join(map(str, nvrtc.version()))}))"
    )
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        cwd=HERE.parent, env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no word"]
        raise Failure(f"there is no GPU that the engine can use: {said[-1]}")
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def computing_on(device: str) -> Iterator[None]:
    """Workers that are started compute there."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = device
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def run(
    device: str,
    rows: Sequence[str],
    peers: Sequence[str] | None,
    *,
    with_tests: bool = False,
    quick: bool = False,
    rounds: int = 5,
    seconds: float = 310.0,
    out: Path | None = None,
) -> int:
    """Everything. Returns 1 where a test failed, or nothing could be measured.

    Args:
        device: "cuda", or "emulated", where only `engine` is measured.
        rows: names or patterns; none: all.
        peers: who is measured; None: all.
        with_tests: the tests that are marked `gpu` come first.
        quick: small sizes, few rounds.
        rounds: turns of each peer.
        seconds: after which no row begins; tests have half of it.
        out: the folder for data and page; None: a whole run writes what is on record.
    """
    chosen = [n for n in ROWS if not rows or any(fnmatch.fnmatchcase(n, p) for p in rows)]
    if device == "emulated":
        chosen = [n for n in chosen if n not in ("graph", "starts")]  # of real ones
    names = [OURS] if device == "emulated" else [n for n in ON_GPU if peers is None or n in peers]
    whole = not (rows or quick or device == "emulated")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        record = Record(out / DATA, out / PAGE)
    else:
        record = Record(RECORD / DATA, HERE / PAGE) if whole else Record(None, None)
    end = record.start + seconds
    plan = Plan(rounds=rounds, seconds=0.05, most=1.0, row=20.0, copier="cupy")
    if quick:
        plan = Plan(rounds=2, seconds=0.01, most=0.5, least=1, copier="cupy")
    with tempfile.TemporaryDirectory() as own, ExitStack() as stack:
        try:
            found = {"gpu": "emulated"} if device == "emulated" else gpu()
        except Failure as e:
            record.say(str(e))
            return 1
        record.result["quick"] = quick
        record.result["machine"] = found | describe()
        if with_tests:
            record.say("tests")
            log = (out or Path(own)) / "tests.txt"
            record.result["tests"] = run_tests(0.5 * seconds, min(12, cores()), log)
            record.write()
            record.say(f"{ {k: v for k, v in record.result['tests'].items() if k != 'failed'} }")
            for failure in record.result["tests"]["failed"]:
                record.say(f"FAILED {failure['test']}: {failure['why']}")
        stack.enter_context(computing_on(device))
        workers = {n: stack.enter_context(Peer(n, quiet=n != OURS)) for n in names}
        versions, missing = load_all(workers, plan.limit)
        workers = {n: w for n, w in workers.items() if n in versions}
        record.result["machine"] |= {n: v for n, v in versions.items() if v}
        record.result["missing"] = missing
        for name, why in missing.items():
            record.say(f"{name} is not measured: {why}")
        _rows(record, chosen, workers, plan, end, quick)
    record.write()
    if record.page is None:
        print("\n" + markdown(record.result))
    tests = record.result.get("tests")
    good = tests is None or (tests["ended"] and not tests["failed"] and tests["passed"])
    return 0 if good and record.result["rows"] else 1


def _rows(
    record: Record, chosen: list[str], workers: dict[str, Peer], plan: Plan, end: float, quick: bool
) -> None:
    steps: dict[str, Callable[[], dict[str, Any]]] = {}
    for case in GPU_CASES:
        size = case.quick if quick else case.size
        steps[case.name] = lambda c=case, s=size: measure(c, s, workers, plan)  # type: ignore[misc]
    for name in chosen:
        if time.monotonic() > end:
            record.result.setdefault("failures", {})[name] = "not measured: no time was left"
            record.write()
            continue
        record.say(ROWS[name])
        try:
            if name == "starts":
                for row in starts(list(workers), plan):
                    record.add(row)
            else:
                record.add(steps[name]())
        except (Failure, RuntimeError, OSError) as e:
            record.say(f"{name} failed: {e}")
            record.result.setdefault("failures", {})[name] = f"{type(e).__name__}: {e}"


def starts(names: list[str], plan: Plan) -> list[dict[str, Any]]:
    """Scripts of one kernel and its gradient in fresh processes; those of all peers at once."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        able = [n for n in names if n in ("engine", "warp", "jax", "torch")]
        measured = {n: Starts([n], plan, Path(folder)) for n in able}
        found = list(pool.map(lambda s: s.run(s.commands(True), 2), measured.values()))
    failed = {n: s.failed[n] for n, s in measured.items() if n in s.failed}
    rows = []
    for what, title in (("whole", "from start to end"), ("first", "its first launch")):
        times = {(s, what): {n: t for f in found for n, t in f[s, what].items()} for s in STATES}
        note = f"{title}: processes of the frameworks ran side by side, on {cores()} cores"
        rows.append(process_row(what, f"a script of one kernel, with a gradient: {title}", note))
        rows[-1] |= {"failed": failed, "passes": process_passes(times, what)}
    return rows
