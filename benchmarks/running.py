"""A run: which rows, which peers, one after the other."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.case import Case
from benchmarks.cases import CASES
from benchmarks.limits import cores
from benchmarks.machine import describe
from benchmarks.measuring import Plan, measure
from benchmarks.peers import Failure, Peer
from benchmarks.processes import RECORDED, memory, starts
from benchmarks.recording import Recording
from benchmarks.scaling import curves
from benchmarks.startup import startup_times
from benchmarks.targets import HAND, OURS

ROWS = {
    **{c.name: c.title for c in CASES},
    "memory": "memory of a recorded launch",
    "starts": "cold and warm starts of scripts with one kernel, and of a module of three",
    "scaling": "cost by the number of elements and of launches",
    "startup": "times of imports and of `adtool --help`",
}
SLOW = 20.0  # seconds between a word about a row and the next


@dataclass(frozen=True)
class Choice:
    """What a run measures."""

    rows: tuple[str, ...]
    peers: tuple[str, ...]
    plan: Plan
    quick: bool

    @staticmethod
    def of(
        patterns: Sequence[str], peers: tuple[str, ...], rounds: int, limit: float, quick: bool
    ) -> Choice:
        """Rows by names or patterns; none: all."""
        rows = tuple(
            n for n in ROWS if not patterns or any(fnmatch.fnmatchcase(n, p) for p in patterns)
        )
        plan = Plan(rounds=max(1, rounds), limit=limit)
        if quick:
            plan = Plan(rounds=2, seconds=0.01, most=0.5, least=1, limit=limit)
        return Choice(rows, peers, plan, quick)


def load_all(peers: dict[str, Peer], limit: float) -> tuple[dict[str, str], dict[str, str]]:
    """Versions of the peers that are there, and why others are not."""

    def one(name: str) -> tuple[str, str, str]:
        try:
            return name, peers[name].ask({"load": True}, limit)["version"], ""
        except Failure as e:
            return name, "", str(e)

    with ThreadPoolExecutor(max_workers=cores()) as pool:
        found = list(pool.map(one, peers))
    return {n: v for n, v, why in found if not why}, {n: why for n, _, why in found if why}


def measure_alone(case: Case, size: int, plan: Plan) -> dict[str, Any]:
    """Seconds and peak memory of a case that only `engine` runs, in a fresh process."""
    with Peer(OURS) as peer:
        peer.ask({"make": case.name, "size": size}, plan.limit)
        times = peer.ask({"time": "forward", "repeat": min(3, plan.rounds)}, plan.limit)
        peak = peer.ask({"peak": True})
    return {
        "name": case.name, "title": case.title, "size": size, "note": case.note,
        "seconds": median(times), "peak": peak,
    }  # fmt: skip


def run(choice: Choice, recording: Recording, update: bool = False) -> None:
    """Measures and records; a row that fails says so, and the next one follows."""
    with ExitStack() as stack:
        peers = {n: stack.enter_context(Peer(n, quiet=n != OURS)) for n in choice.peers}
        recording.say(f"load: {os.getloadavg()[0]:.1f}; loading {', '.join(peers)}")
        versions, missing = load_all(peers, choice.plan.limit)
        peers = {n: p for n, p in peers.items() if n in versions}
        if update:
            recording.reload()
        else:
            recording.put("quick", choice.quick)
            words = {n: v for n, v in versions.items() if v and n != "warp"}
            recording.put("machine", describe() | words | {"load": f"{os.getloadavg()[0]:.1f}"})
            recording.put("missing", missing)
        for name, why in missing.items():
            recording.say(f"{name} is not measured: {why}")
        for name, title in ROWS.items():
            if name in choice.rows:
                recording.say(title)
                for label, step in _steps(name, choice, peers, recording, update):
                    try:
                        step()
                    except (Failure, RuntimeError, OSError) as e:
                        recording.say(f"{label} failed: {e}")
                        failures = recording.result.setdefault("failures", {})
                        failures[label] = f"{type(e).__name__}: {e}"


Step = tuple[str, Callable[[], None]]


def _steps(
    name: str, choice: Choice, peers: dict[str, Peer], recording: Recording, update: bool
) -> list[Step]:
    """What is to be done for one name."""
    plan, quick = choice.plan, choice.quick
    cases = [c for c in CASES if c.name == name]
    if cases:
        case = cases[0]
        size = case.quick if quick else case.size
        if case.alone:
            return [(name, lambda: _alone(case, size, plan, recording))]
        first = [] if update or recording.result.get("limits") else [_limits(peers, recording)]
        return [*first, (name, lambda: recording.add(measure(case, size, peers, plan)))]
    if name == "memory":
        count = RECORDED // 10 if quick else RECORDED
        return [(name, lambda: recording.add(memory(list(peers), plan, count)))]
    if name == "starts":

        def all_starts() -> None:
            for row in starts(list(peers), plan, 1 if quick else 3):
                recording.add(row)

        return [(name, all_starts)]
    if name == "scaling":
        return [(name, lambda: recording.put("curves", curves(peers, plan, quick)))]
    rounds = 2 if quick else 7
    return [(name, lambda: recording.put("startup", startup_times(rounds)))]


def _limits(peers: dict[str, Peer], recording: Recording) -> Step:
    def limits() -> None:
        if HAND in peers:
            recording.put("limits", peers[HAND].ask({"limits": True}))

    return "limits", limits


def _alone(case: Case, size: int, plan: Plan, recording: Recording) -> None:
    found = measure_alone(case, size, plan)
    others = [r for r in recording.result["alone"] if r["name"] != case.name]
    print(f"{case.name:<16} {found['seconds']:.3g} s, {found['peak'] / 1e6:.0f} MB", flush=True)
    recording.put("alone", [*others, found])
