"""Random host programs do the same in every way that the engine runs them, and what they mean.

The compiled launcher is a second implementation of launches, records and backward passes. Programs
are drawn, not cases: each runs by Python alone, natively from its first launch on (bit for bit the
same), and, where it can be, as a captured graph; and all of it is what dual numbers give.

`ENGINE_HOST_PROGRAMS=100000 ENGINE_HOST_PROGRAMS_FROM=0 pytest -m sweep` runs as many as one likes.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from engine import config
from engine.accel import launcher
from tests import spoiling
from tests.property.hosts.programs import Program, written
from tests.property.hosts.running import meant, run

FEW, PARTS = 150, 6  # programs of a test, and tests
MANY = int(os.environ.get("ENGINE_HOST_PROGRAMS", "10000"))
FIRST = int(os.environ.get("ENGINE_HOST_PROGRAMS_FROM", "100000"))


def are_right(found: list[np.ndarray], want: list[np.ndarray]) -> bool:
    """found: numbers, and last what was warned of."""
    return len(found) == len(want) + 1 and all(
        np.allclose(x, y, rtol=1e-9, atol=1e-9) for x, y in zip(found, want, strict=False)
    )


def are_equal(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return [x.tobytes() for x in a] == [x.tobytes() for x in b]


def wrong_way(program: Program, seed: int) -> str:
    """The first way in which a program does anything else than it means; empty for none."""
    want = meant(program, seed)
    peek = seed % 3 == 0
    if str(config.device) != "cpu":
        if program.aliased:
            return ""  # its gradients are refused there, as they depend on the order of threads
        return "" if are_right(run(program, seed, False), want) else "on the device"
    eager = seed % 4 == 0
    plain = run(program, seed, False, peek=peek, eager=eager)
    if not are_right(plain, want):
        return "by Python"
    if not are_equal(run(program, seed, True, peek=peek, eager=eager), plain):
        return "natively"
    if not program.direct:
        for native in (False, True):
            if not are_right(run(program, seed, native, graph=True), want):
                return "as a graph, natively" if native else "as a graph"
    return ""


def check(seeds: range) -> None:
    for seed in seeds:
        program = written(seed)
        assert not (way := wrong_way(program, seed)), f"seed {seed}, {way}:\n{program.text}"


@pytest.mark.parametrize("part", range(PARTS))
def test_all_ways_agree(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches and tapes are looked at here: compilers may do little, which takes half the time."""
    monkeypatch.setattr(config, "optimization_level", 1)
    few = FEW if str(config.device) == "cpu" else FEW // 5
    check(range(part * FEW, part * FEW + few))
    assert str(config.device) != "cpu" or launcher.maker.made is not None


@pytest.mark.sweep
@pytest.mark.host("as many as on a GPU would take long")
def test_all_ways_agree_in_many_programs() -> None:
    check(range(FIRST, FIRST + MANY))


def test_programs_have_what_they_are_to_have() -> None:
    """Of each kind there are enough: a generator that stopped making one would go unseen."""
    texts = [written(seed) for seed in range(FEW)]
    assert sum(not p.direct for p in texts) > FEW // 5 < sum(p.direct for p in texts)
    for what in (
        "wp.copy(", ".fill_(", ".zero_()", ".assign(", "wp.map(", "wp.clone(", ".reset()",
        ".reshape(", ".transpose()", ".flatten()", "::2]", "k.Both()", "k.packed", "k.turned",
        "wp.indexed(", "record_cmd", ".numpy()]", ".requires_grad = ", ".grad = ", " *= ",
    ):  # fmt: skip
        assert sum(what in p.text for p in texts) >= 3, what
    assert sum(p.text.count("wp.Tape()") > 2 for p in texts) > FEW // 5


SPOILED = """
import sys
from tests import spoiling
spoiling.install(sys.argv[1])
from tests.property.hosts.programs import written
from tests.property.test_host_programs import wrong_way
for seed in range(int(sys.argv[2])):
    if way := wrong_way(written(seed), seed):
        print(seed, way)
        break
"""


@pytest.mark.host("native launches")
@pytest.mark.parametrize("name", spoiling.SPOILINGS)
def test_a_spoiled_launcher_is_seen(name: str, root) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPOILED, name, "1000"], capture_output=True, text=True, cwd=root
    )
    assert done.returncode == 0 and "natively" in done.stdout, done.stdout + done.stderr
