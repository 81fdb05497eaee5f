"""The check of a long program, which processes share: what it says, and how it ends."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

LONG = """
import atexit
import numpy as np
import engine as wp

F = wp.array(dtype=float)
print("begun", flush=True)
atexit.register(print, "goodbye")

@wp.kernel
def step(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] + 0.01 * wp.sin(x[i]) * x[0]

@wp.kernel
def scaled(x: F, y: F):
    i = wp.tid()
    y[i] = 1.001 * x[i]

for start in (0.1, 0.2):
    states = [wp.array(np.full(4, start), dtype=float, requires_grad=True) for _ in range(401)]
    with wp.Tape() as tape:
        for n, (a, b) in enumerate(zip(states, states[1:])):
            wp.launch(step if n % 2 else scaled, 4, [a], [b])
    CHANGE
    tape.backward(grads={states[-1]: wp.ones_like(states[-1])})
"""


def program(change: str = "") -> str:
    return LONG.replace("CHANGE", change)


@pytest.mark.parametrize("change", ["", 'wp.config.overwrites = "present"; states[101].fill_(3.0)'])
def test_processes_change_nothing_of_what_is_told(adtool: Any, change: str) -> None:
    adtool.script(program(change))
    one, more = (adtool.report("--jobs", n, "script.py") for n in ("1", "2"))
    assert len(one["launches"]) == 800
    assert one["ok"] is not bool(change)
    for report in (one, more):
        for name in ("seconds", "script_seconds", "created", "duration"):
            report.pop(name, None)
    assert one == more


def test_what_the_program_does_at_its_end_is_done_once(adtool: Any) -> None:
    adtool.script(program())
    done = adtool("check", "--jobs", "2", "script.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begun") == done.stdout.count("goodbye") == 1


def test_an_interrupt_leaves_no_process(adtool: Any) -> None:
    adtool.script(program())
    running = adtool.start("check", "--jobs", "2", "--format", "json", "script.py")
    children: set[int] = set()
    until = time.monotonic() + 60
    while len(children) < 2 and time.monotonic() < until and running.poll() is None:
        children = below(running.pid)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    until = time.monotonic() + 20
    while any(map(alive, children)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(alive, children))


def below(pid: int) -> set[int]:
    """The processes that a process started, and that these did."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            found = {int(p) for p in file.read().split()}
    except OSError:
        return set()
    return found.union(*map(below, found))


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
