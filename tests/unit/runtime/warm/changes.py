"""Shared code of programs that change something after launches are warm.

Each is a generator of steps and of what a step gives from then on, in exact numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import engine as wp

F = wp.array(dtype=float)
N = 4
X = np.arange(1.0, N + 1, dtype=np.float32)
ONE = np.ones(N, np.float32)
ZERO = np.zeros(N, np.float32)

Step = Callable[[], list[Any]]
Steps = Iterator[tuple[Step, list[Any]]]


@dataclass
class Change:
    """A program. native: whether its first step comes to run without Python."""

    run: Callable[[], Steps]
    native: bool = True


CHANGES: dict[str, Change] = {}


def change(name: str, native: bool = True) -> Callable[[Callable[[], Steps]], Callable[[], Steps]]:
    def enter(run: Callable[[], Steps]) -> Callable[[], Steps]:
        assert name not in CHANGES
        CHANGES[name] = Change(run, native)
        return run

    return enter


@wp.kernel
def square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def scale(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = s * x[i]


@wp.kernel
def halve(x: F):
    i = wp.tid()
    x[i] = 0.5 * x[i]


@wp.kernel
def total(x: F, loss: F):
    wp.atomic_add(loss, 0, x[wp.tid()])


def floats(values: Any = X, grad: bool = True) -> Any:
    return wp.array(np.array(values, np.float32), dtype=float, requires_grad=grad)


def zeros(n: int = N, grad: bool = True) -> Any:
    return wp.zeros(n, dtype=float, requires_grad=grad)


def read(a: Any) -> np.ndarray:
    """As it is now, without a view that would stay."""
    return wp.clone(a, requires_grad=False).numpy().copy()


class Squares:
    """y = x * x on a tape of its own each time, with a cotangent; the gradient starts anew."""

    def __init__(self) -> None:
        self.x, self.y = floats(), zeros()
        self.cotangent = floats(ONE, grad=False)
        self.tape: Any = None

    def step(self) -> list[Any]:
        if self.x.grad is not None:
            self.x.grad.zero_()
        self.tape = wp.Tape()
        with self.tape:
            wp.launch(square, N, [self.x], [self.y])
        self.tape.backward(grads={self.y: self.cotangent})
        return self.seen()

    def seen(self) -> list[Any]:
        return [read(self.y), ZERO if self.x.grad is None else read(self.x.grad)]


class Kept(Squares):
    """The same, where one tape is kept and runs backward each time."""

    def __init__(self) -> None:
        super().__init__()
        self.tape = wp.Tape()
        with self.tape:
            wp.launch(square, N, [self.x], [self.y])

    def step(self) -> list[Any]:
        if self.x.grad is not None:
            self.x.grad.zero_()
        self.tape.backward(grads={self.y: self.cotangent})
        return self.seen()


def set_and_back(p: Squares, name: str, value: Any, want: list[Any]) -> Steps:
    before = getattr(wp.config, name)
    yield p.step, [X * X, 2 * X]
    setattr(wp.config, name, value)
    yield p.step, want
    setattr(wp.config, name, before)
    yield p.step, [X * X, 2 * X]


@contextmanager
def entered(options: dict[str, Any], name: str, value: Any) -> Iterator[None]:
    before = dict(options)
    options[name] = value
    try:
        yield
    finally:
        options.clear()
        options.update(before)
