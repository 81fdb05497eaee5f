"""The operation with the kink is found among others that do not tie."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import engine as wp
from engine.autograd import LaunchResult, check_tape
from engine.tape.capture import capturing

F = wp.array(dtype=float)


@wp.func
def ramp(v: float):
    if v > 0.0:
        return v
    return 0.0


@wp.kernel
def beside_others(x: F, y: F):
    i = wp.tid()
    s = wp.abs(x[i] + 5.0)
    n = float(0.0)
    if x[i] < 3.0:
        n = 1.0
    y[i] = ramp(x[i]) + s + n


@wp.kernel
def summed(x: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, wp.abs(x[i]) * wp.max(x[i], -7.0))
    wp.atomic_add(y, 0, wp.clamp(x[i], -9.0, 1.0))


@wp.kernel
def largest(x: F, y: F):
    wp.atomic_max(y, 0, x[wp.tid()])


@wp.kernel
def of_vectors(x: wp.array(dtype=wp.vec2), y: F):
    i = wp.tid()
    v = wp.abs(x[i] - wp.vec2(1.0, 2.0))
    y[i] = v[0] + v[1]


@wp.kernel
def in_a_loop(x: F, y: F):
    i = wp.tid()
    for k in range(4):
        y[i] += wp.min(x[i], float(k))


def check(kernel: wp.Kernel, x: np.ndarray, dtype: type, out: int) -> LaunchResult:
    a = wp.array(x, dtype=dtype, requires_grad=True)
    y = wp.zeros(out, dtype=float, requires_grad=True)
    with capturing() as capture, wp.Tape():
        wp.launch(kernel, dim=len(x), inputs=[a], outputs=[y])
    (launch,) = check_tape(capture.tapes[0]).launches
    return launch


def values(n: int, at: int, tie: float) -> np.ndarray:
    x = np.random.default_rng(3).uniform(-1.0, 0.5, n)
    x[at] = tie
    return x


@pytest.mark.parametrize(
    ("kernel", "x", "dtype", "out", "expression"),
    [
        (beside_others, values(40, 17, 0.0), float, 40, "v > 0.0"),
        (summed, values(40, 8, 1.0), float, 1, "wp.clamp(x[i], -9.0, 1.0)"),
        (summed, values(5000, 4017, 1.0), float, 1, "wp.clamp(x[i], -9.0, 1.0)"),
        (largest, np.array([0.5, 2.0, 2.0]), float, 1, "wp.atomic_max(y, 0, x[wp.tid()])"),
        (of_vectors, np.array([[0.0, 0.0], [3.0, 2.0]]), wp.vec2, 2,
         "wp.abs(x[i] - wp.vec2(1.0, 2.0))"),
        (in_a_loop, np.array([0.5, 2.0]), float, 2, "wp.min(x[i], float(k))"),
    ],
)  # fmt: skip
def test_the_operation_that_ties(
    kernel: wp.Kernel, x: np.ndarray, dtype: type, out: int, expression: str
) -> None:
    launch = check(kernel, x, dtype, out)
    (pair,) = launch.pairs
    assert pair.verdict == "kink" and pair.corner is not None
    assert pair.corner.expression == expression
    span = pair.corner.span
    line = linecache.getline(__file__, span.line)
    assert span.file == __file__ and line[span.col - 1 :].startswith(expression)


def test_nothing_is_said_where_there_is_no_kink() -> None:
    launch = check(beside_others, values(40, 17, 0.25), float, 40)
    assert [(p.verdict, p.corner) for p in launch.pairs] == [("pass", None)]


def test_it_is_looked_for_once_a_kind_of_launch() -> None:
    x = wp.array(values(40, 17, 0.0), dtype=float, requires_grad=True)
    with capturing() as capture, wp.Tape():
        for _ in range(2):
            y = wp.zeros(40, dtype=float, requires_grad=True)
            wp.launch(beside_others, dim=40, inputs=[x], outputs=[y])
    first, second = (launch.pairs[0] for launch in check_tape(capture.tapes[0]).launches)
    assert first.corner is not None and second.verdict == "kink" and second.corner is None
