"""Programs that capture, whose graphs run in one call or one by one, and what is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.tape.records import LaunchRecord
from tests.unit.runtime.launching import (
    NATIVE,
    F,
    grid,
    in_place,
    made,
    scale,
    total,
    turns,
)

# Marks of tests of what runs in one call.
ONE_CALL = [
    pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here"),
    pytest.mark.host("the CPU's sequences, in one call of compiled code"),
]
RUNS = 6


@wp.kernel
def step(x: F, v: F, dt: float, x1: F, v1: F):
    i = wp.tid()
    v1[i] = v[i] - dt * wp.sin(x[i])
    x1[i] = x[i] + dt * v1[i]


@wp.kernel
def add(x: F, s: float):
    i = wp.tid()
    x[i] = x[i] + s


class Program:
    """Graphs, run in turns; and what is compared: arrays, and tapes with their records."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.arrays: list[Any] = []
        self.tapes: list[wp.Tape] = []

    def captured(self, block: Callable[[], None]) -> None:
        with wp.ScopedCapture() as capture:
            block()
        self.graphs.append(capture.graph)


def record(tape: wp.Tape) -> list[Any]:
    return [
        (r.name, r.site and r.site.line, [a.ptr for a in r.arrays], [a.ptr for a in r.written])
        + ((r.dim, r.blob, r.input_count, sorted(r.wrt), sorted(r.holds), r.lost, r.stack_bytes,
            r.journal_bytes,
            [x.tobytes() if isinstance(x, np.ndarray) else x for x in r.inputs_at_record()])
           if isinstance(r, LaunchRecord) else ())
        for r in tape.records
    ]  # fmt: skip


def several(n: int) -> Program:
    """Launches off any tape: scalars, strides, views that overlap, a grid of two axes, fills."""
    p = Program()
    x, y, z = made(n + 2), made(n + 2, 3), made(n + 2)
    flat = wp.zeros((3, n + 1), dtype=float, requires_grad=True)
    out = wp.zeros_like(flat)
    p.arrays = [x, y, z, flat, out]

    def block() -> None:
        for k in range(4):
            wp.launch(scale, n, [x, y, 0.5 + k])
            wp.launch(scale, n, [y[:n], z[1 : n + 1], 0.5])
            wp.launch(add, n, [x[2:], 0.25])
            wp.launch(add, n, [x[1 : n + 1], -0.25])
            wp.launch(grid, (3, n), [flat], [out])
            wp.launch(turns, n, [z, y, 3 * k])
        z.zero_()
        wp.launch(scale, n, [x, z, 1.0])
        wp.launch(total, n, [x, z])

    p.captured(block)
    return p


def writes(n: int) -> Program:
    """Fills and copies of all kinds, alone and beside launches."""
    p = Program()
    x, y, z = made(n + 2), made(n + 2, 3), made(n + 2)
    vectors = wp.zeros((n, 2), dtype=wp.vec3)
    numbers, halves = wp.zeros(n, dtype=int), wp.zeros(n, dtype=wp.float16)
    doubles, flags = wp.zeros(n, dtype=wp.float64), wp.zeros(n, dtype=bool)
    p.arrays = [x, y, z, vectors, numbers, halves, doubles, flags]
    changing = wp.vec3(1.0, 2.0, 3.0)

    def block() -> None:
        wp.copy(z, x)
        wp.launch(add, n, [x, 0.25])
        wp.copy(x[1:], x[:-1])  # onto itself
        wp.copy(x, y)
        wp.copy(y, z)
        y.fill_(0.5)
        x[1 : n + 1].fill_(-0.0)
        wp.copy(doubles, x[:n])
        vectors.zero_()
        vectors[:, 0].fill_(2.5)
        wp.launch(add, n, [z, -0.5])
        vectors.fill_(changing)
        vectors[:1].fill_(float("nan"))
        numbers.fill_(-7)
        numbers[1:].fill_(2**31 - 1)
        halves.fill_(1.0 / 3.0)
        flags.fill_(True)
        flags[1:].fill_(False)
        doubles[1:].fill_(float("inf"))
        wp.copy(z[:-1], z[1:])
        wp.copy(z, z)
        x[0] = 4.0
        wp.clone(z, requires_grad=False)

    p.captured(block)
    changing[0] = 5.0
    return p


def training(n: int) -> Program:
    """A tape that is recorded and run backward, and an update."""
    p, tape = Program(), wp.Tape()
    x, y, loss = made(n), made(n), wp.zeros(1, dtype=float, requires_grad=True)
    p.arrays, p.tapes = [x, y, loss], [tape]

    def block() -> None:
        tape.zero()
        loss.zero_()
        with tape:
            wp.launch(scale, n, [x, y, 2.0])
            wp.launch(total, n, [y, loss])
            wp.launch(total, n, [x, loss])
        tape.backward(loss)
        wp.launch(scale, n, [x.grad, x, 0.5])

    p.captured(block)
    return p


def overwriting(n: int) -> Program:
    """Launches that overwrite what earlier ones read, and what they read themselves."""
    p, tape = Program(), wp.Tape()
    x, y, loss = made(n), made(n), wp.zeros(1, dtype=float, requires_grad=True)
    p.arrays, p.tapes = [x, y, loss], [tape]

    def block() -> None:
        tape.zero()
        with tape:
            for _ in range(2):
                wp.launch(scale, n, [x, y, 2.0])
                wp.launch(scale, n, [y, x, 0.2])  # so that nothing grows
                wp.launch(in_place, n, [x])
                wp.launch(turns, n, [x, y, 5])
            wp.launch(total, n, [y, loss])
        tape.backward(loss)

    p.captured(block)
    return p


def outdated(n: int) -> Program:
    """An array that is written again after a launch has read it, once."""
    p, tape = Program(), wp.Tape()
    x, y, z, loss = made(n), made(n), made(n), wp.zeros(1, dtype=float, requires_grad=True)
    p.arrays, p.tapes = [x, y, z, loss], [tape]

    def block() -> None:
        wp.launch(add, n, [x, 0.5])
        wp.launch(add, n, [x, 0.25])
        with tape:
            wp.launch(scale, n, [x, y, 2.0])
            wp.launch(scale, n, [z, x, 0.5])
            wp.launch(total, n, [y, loss])
        tape.backward(loss)

    p.captured(block)
    return p


def rollout(layout: str) -> Callable[[int], Program]:
    def program(n: int) -> Program:
        p, tape, steps = Program(), wp.Tape(), 9
        if layout == "rows":
            xs, vs = (wp.zeros((steps + 1, n), dtype=float, requires_grad=True) for _ in "xv")
            p.arrays = [xs, vs]
        else:
            count = steps + 1 if layout == "arrays" else 2
            xs, vs = ([made(n) for _ in range(count)] for _ in "xv")
            p.arrays = [*xs, *vs]
        count = len(xs) if layout != "rows" else steps + 1
        x, v = ([a[t % count] for t in range(steps + 1)] for a in (xs, vs))
        loss, p.tapes = wp.zeros(1, dtype=float, requires_grad=True), [tape]
        p.arrays.append(loss)

        def forward() -> None:
            with tape:
                for t in range(steps):
                    wp.launch(step, n, [x[t], v[t], 0.1], [x[t + 1], v[t + 1]])
                wp.launch(total, n, [x[steps], loss])

        def backward() -> None:
            tape.backward(loss)

        p.captured(forward)
        p.captured(backward)
        p.captured(backward)
        return p

    program.__name__ = f"rollout_{layout}"
    return program


PROGRAMS = [
    several,
    writes,
    training,
    overwriting,
    outdated,
    *map(rollout, ("arrays", "rows", "turns")),
]


def seen(make: Callable[[int], Program], n: int, look: bool) -> list[Any]:
    """What is there after each run. look: at the records, too."""
    p = make(n)
    out: list[Any] = []
    memory = {id(s): s for a in p.arrays for b in (a, a.grad) if b is not None for s in [b.storage]}
    versions = [s.version for s in memory.values()]
    other = wp.Tape()  # holds what the graphs overwrite
    with other:
        for a in p.arrays:
            if a.ndim == 1 and a.dtype is wp.float32:
                wp.launch(total, a.size, [a, wp.zeros(1, dtype=float, requires_grad=True)])
    for k in range(RUNS):
        for graph in p.graphs:
            wp.capture_launch(graph)
            if look and k > 2:
                out.append([record(t) for t in p.tapes])
        out.append([x.numpy().tobytes() for a in p.arrays for x in (a, a.grad) if x is not None])
    out.append([record(t) for t in (*p.tapes, other)])
    out.append([(t.memory.journals, t.memory.stack) for t in (*p.tapes, other)])
    if not look:  # a look makes views, which NumPy's users may write
        out.append([s.version - v for s, v in zip(memory.values(), versions, strict=True)])
    return plain(out)


def plain(out: list[Any]) -> list[Any]:
    """Without addresses: two programs have arrays of their own."""
    known: dict[int, int] = {}
    blobs: dict[bytes, int] = {}

    def of(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return [of(v) for v in x]
        if isinstance(x, int) and x > 1 << 24:
            return "at", known.setdefault(x, len(known))
        return x

    def records(rows: Any) -> Any:
        return [[(*r[:5], blobs.setdefault(r[5], len(blobs)), *r[6:]) if len(r) > 5 else r
                 for r in t] for t in rows]  # fmt: skip

    def fits(x: Any) -> bool:
        return isinstance(x, list) and bool(x) and isinstance(x[0], list)

    return [of(records(x)) if fits(x) else of(x) for x in out]
