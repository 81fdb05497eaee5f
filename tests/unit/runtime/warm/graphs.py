"""Captured graphs: what of it changes once launches are warm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import engine as wp
from tests.unit.runtime.warm.changes import (
    ONE,
    ZERO,
    F,
    N,
    Steps,
    X,
    change,
    floats,
    halve,
    read,
    scale,
    square,
    zeros,
)


class Graph:
    """A captured iteration: a tape of its own each time, or one that is kept."""

    def __init__(self, kept: bool = False, fill: bool = False) -> None:
        self.x, self.y, self.z = floats(), zeros(), zeros()
        self.one = floats(ONE, grad=False)
        self.tape = wp.Tape() if kept else None

        def body() -> None:
            self.x.grad.zero_()
            tape = self.tape or wp.Tape()
            if kept:
                tape.reset()
            with tape:
                wp.launch(square, N, [self.x], [self.y])
                wp.launch(scale, N, [self.y, self.z, 3.0])
                if fill:
                    self.x.fill_(1.0)
            tape.backward(grads={self.z: self.one})

        with wp.ScopedCapture() as capture:
            body()
        self.graph = capture.graph
        self.fill = fill

    def step(self) -> list[Any]:
        if self.fill:
            self.x.assign(X)
        wp.capture_launch(self.graph)
        return [read(self.z), ZERO if self.x.grad is None else read(self.x.grad)]


WANT = [3 * X * X, 6 * X]


def graphs() -> Iterator[Graph]:
    for kept in (False, True):
        for fill in (False, True):
            yield Graph(kept, fill)


@change("gradients of arrays of a graph are others", native=False)
def _() -> Steps:
    for g in graphs():
        yield g.step, WANT
        g.y.grad = zeros(grad=False)
        yield g.step, WANT
        g.z.grad = zeros(grad=False)
        yield g.step, WANT
        g.y.requires_grad = False
        yield g.step, [WANT[0], ZERO]
        g.y.requires_grad = True
        yield g.step, WANT
        g.y.retain_grad = True
        yield lambda g=g: [g.y.grad.zero_(), *g.step(), read(g.y.grad)][1:], [*WANT, 3 * ONE]
        g.y.retain_grad = False
        yield lambda g=g: [g.y.grad.zero_(), *g.step(), read(g.y.grad)][1:], [*WANT, ZERO]


@wp.kernel
def product(a: F, b: F, y: F):
    i = wp.tid()
    y[i] = a[i] * b[i]


@change("an array of a graph comes to require a gradient", native=False)
def _() -> Steps:
    for kept in (None, wp.Tape()):
        a, b, y, one = floats(), floats(3 * X, grad=False), zeros(), floats(ONE, grad=False)
        with wp.ScopedCapture() as capture:
            a.grad.zero_()
            tape = kept or wp.Tape()
            with tape:
                wp.launch(product, N, [a, b], [y])
            tape.backward(grads={y: one})
            del tape

        def step(a=a, b=b, y=y, graph=capture.graph) -> list[Any]:
            if b.requires_grad:
                b.grad.zero_()
            wp.capture_launch(graph)
            return [read(y), read(a.grad), read(b.grad) if b.requires_grad else ZERO]

        yield step, [3 * X * X, 3 * X, ZERO]
        b.requires_grad = True
        yield step, [3 * X * X, 3 * X, X]
        b.requires_grad = False
        yield step, [3 * X * X, 3 * X, ZERO]


@change("cotangents of a graph are others", native=False)
def _() -> Steps:
    for g in graphs():
        yield g.step, WANT
        g.one.fill_(2.0)
        yield g.step, [WANT[0], 12 * X]
        seen = g.one.numpy()
        seen[:] = 3.0
        yield g.step, [WANT[0], 18 * X]
        seen[:] = 1.0
        del seen
        yield g.step, WANT


@change("settings, while graphs run", native=False)
def _() -> Steps:
    for g in graphs():
        yield g.step, WANT
        for name, value, want in (
            ("enable_backward", False, ZERO), ("tape_snapshots", "eager", 6 * X),
            ("overwrites", "present", 6 * ONE if g.fill else 6 * X),
            ("overwrites", "warn", 6 * X), ("verify_fp", True, 6 * X), ("native_after", -1, 6 * X),
            ("verify_autograd_array_access", True, 6 * X), ("num_threads", 1, 6 * X),
            ("snapshot_limit_bytes", 0, None if g.fill else 6 * X),
        ):  # fmt: skip
            if want is not None:
                yield from set_in_graph(g, name, value, [WANT[0], want])


def set_in_graph(g: Graph, name: str, value: Any, want: list[Any]) -> Steps:
    before = getattr(wp.config, name)
    setattr(wp.config, name, value)
    yield g.step, want
    setattr(wp.config, name, before)
    yield g.step, WANT


@change("records of a graph's tape are looked at", native=False)
def _() -> Steps:
    for fill in (False, True):
        g = Graph(kept=True, fill=fill)
        yield g.step, WANT
        assert [r.name for r in g.tape.records][:2] == ["square", "scale"]
        yield g.step, WANT
        yield lambda g=g: [*g.step(), len(g.tape.records)], [*WANT, 3 if fill else 2]
        yield g.step, WANT


@change("arrays of a graph are read and written between its runs", native=False)
def _() -> Steps:
    for kept in (False, True):
        g = Graph(kept)
        yield g.step, WANT
        wp.launch(halve, N, [g.x])
        yield g.step, [3 * X * X / 4, 3 * X]
        seen = g.x.numpy()
        seen[:] = X
        yield g.step, WANT
        del seen
        g.x.assign(2 * X)
        yield g.step, [12 * X * X, 12 * X]
        with wp.Tape() as tape:
            wp.launch(square, N, [g.x], [g.y])
        yield g.step, [12 * X * X, 12 * X]
        assert np.array_equal(tape.records[0].inputs_at_record()[0], 2 * X)
        g.x.assign(X)
        assert np.array_equal(tape.records[0].inputs_at_record()[0], 2 * X)
