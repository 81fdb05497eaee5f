"""Sequences that are captured with tapes of their own, and how tests run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import schedule
from engine.runtime import graphs
from engine.runtime.base import ArrayBase
from engine.runtime.guards import Guard
from tests.unit.runtime.launching import way

F, V = wp.array(dtype=float), wp.array(dtype=wp.vec3)


@wp.kernel
def scale(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] * s + wp.sin(x[i])


@wp.kernel
def product(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] * y[i] * s


@wp.kernel
def total(x: F, y: F, s: float):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i] * x[i] * s)


@wp.kernel
def largest(x: F, y: F, s: float):
    i = wp.tid()
    wp.atomic_max(y, 0, x[i] * s)


@wp.kernel
def descend(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = y[i] - s * x[i]


@wp.kernel
def checks(x: F, y: F, s: float):
    i = wp.tid()
    wp.expect_eq(x[i], x[0])
    y[i] = x[i] * s


@wp.kernel
def fewer(left: wp.array(dtype=int)):
    left[0] = left[0] - 1


@wp.kernel
def moves(x: V, y: V, s: float):
    i = wp.tid()
    y[i] = x[i] * s + wp.vec3(1.0, 2.0, 3.0)


KERNELS = (scale, product, total, largest, descend)


@contextmanager
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As a program that has the launcher, and in which no other test has left anything."""
    monkeypatch.setattr(Guard, "made", False)
    monkeypatch.setattr(ArrayBase, "retains", False)
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    with way(monkeypatch, "native"):
        yield


def bits_of(arrays: list[Any]) -> list[bytes]:
    grads = [a.grad for a in arrays if a.grad is not None]
    return [wp.clone(a).numpy().tobytes() for a in (*arrays, *grads)]


def captured(iteration: Callable[[], Any], kept: list[Any] | None = None) -> graphs.Graph:
    with wp.ScopedCapture() as capture:
        found = iteration()
    if kept is not None:
        kept.append(found)
    assert capture.graph is not None
    return capture.graph


def training() -> tuple[Any, Any, Callable[[], Any]]:
    w = wp.array(np.linspace(-1, 1, 33, dtype=np.float32), requires_grad=True)
    y = wp.zeros(33, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    def iteration() -> Any:
        loss.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 33, [w, y, 0.5])
            wp.launch(total, 33, [y, loss, 1.0])
        tape.backward(loss)
        wp.launch(descend, 33, [w.grad, w, 0.01])
        tape.zero()
        return tape

    return w, loss, iteration


def run(graph: graphs.Graph, count: int = 5) -> None:
    for _ in range(count):
        wp.capture_launch(graph)


def fitted(seed: int) -> tuple[list[Any], Callable[[], list[Any]]]:
    """Arrays, and a random iteration over them, which gives its tapes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    arrays = [wp.array(rng.normal(size=n).astype(np.float32), requires_grad=bool(rng.integers(4)))
              for _ in range(5)]  # fmt: skip
    arrays.append(wp.zeros(1, dtype=float, requires_grad=True))
    loss, plan = arrays[-1], []
    for _ in range(int(rng.integers(1, 3))):
        plan.append(("clear", loss))
        block = []
        for _ in range(int(rng.integers(1, 5))):
            kernel = KERNELS[int(rng.integers(4))]
            apart = seed % 3 > 0  # else what is read is overwritten, as often as not
            x = arrays[int(rng.integers(3 if apart else 5))]
            y = arrays[int(rng.integers(3 if apart else 0, 5))]
            kernel = scale if apart and kernel is product else kernel
            y = loss if kernel in (total, largest) else y
            block.append((kernel, x, y, float(rng.normal())))
        block.append((total, block[-1][2] if block[-1][2] is not loss else arrays[0], loss, 0.5))
        plan.append(("tape", block, bool(rng.integers(5)), bool(rng.integers(2))))
        given = [a for a in arrays[:5] if a.requires_grad]
        if given and rng.integers(3):
            plan.append(("step", given[int(rng.integers(len(given)))]))

    def iteration() -> list[Any]:
        tapes = []
        for what, *rest in plan:
            if what == "clear":
                rest[0].zero_()
            elif what == "step":
                (a,) = rest
                wp.launch(descend, n, [a.grad, a, 0.01])
            else:
                block, back, zero = rest
                tape = wp.Tape()
                with tape:
                    for kernel, x, y, s in block:
                        wp.launch(kernel, n, [x, y, s])
                if back:
                    tape.backward(loss)
                if zero:
                    tape.zero()
                tapes.append(tape)
        return tapes

    return arrays, iteration
