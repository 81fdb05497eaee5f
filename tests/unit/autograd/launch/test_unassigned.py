"""Variables that a launch reads before they have a value, found as it happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape

F = wp.array(dtype=float)
pytestmark = pytest.mark.filterwarnings("ignore:.*before it has a value")


@wp.kernel
def branch(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.5:
        s = x[i] * 2.0
    y[i] = s * x[i]


@wp.kernel
def loop(x: F, y: F):
    i = wp.tid()
    for k in range(int(4.0 * x[i])):
        s = x[i] * float(k + 1)
    y[i] = s + x[i]


@wp.kernel
def in_a_test(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.5:
        n = 3
    k = 0
    while k < n:
        k += 1
    y[i] = float(k) * x[i]


@wp.kernel
def own_value(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.5:
        s = float(1.0)
    s += x[i]
    y[i] = s


@wp.func
def chosen(v: float):
    if v > 0.5:
        r = v
    return r * v


@wp.kernel
def in_a_function(x: F, y: F):
    i = wp.tid()
    y[i] = chosen(x[i]) + chosen(0.7)


@wp.kernel
def a_vector(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.5:
        v = wp.vec3(x[i], 1.0, 2.0)
    y[i] = v[0] * x[i]


@wp.kernel
def every_path(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.5:
        s = x[i]
    else:
        s = 2.0 * x[i]
    y[i] = s


@wp.kernel
def not_read(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.5:
        s = x[i]
    if x[i] > 0.6:
        y[i] = s
    else:
        y[i] = x[i]


MAYBE = {branch: "s", loop: "s", in_a_test: "n", own_value: "s", in_a_function: "r", a_vector: "v"}


def reads(kernel: Any, values: list[float]) -> tuple[Any, ...]:
    x = wp.array(np.float32(values), dtype=float, requires_grad=True)
    y = wp.zeros(len(values), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, len(values), [x, y])
    (launch,) = check_tape(tape).launches
    assert not launch.skipped
    return launch.unassigned


@pytest.mark.parametrize("kernel", MAYBE, ids=lambda k: k.key)
def test_a_read_without_a_value_is_named(kernel: Any) -> None:
    assert reads(kernel, [0.9, 0.8, 0.7]) == ()
    ((name, span),) = reads(kernel, [0.9, 0.1, 0.7])
    assert name == MAYBE[kernel] and span.file == __file__
    with open(__file__) as file:
        assert name in file.read().splitlines()[span.line - 1]


@pytest.mark.parametrize("kernel", [every_path, not_read], ids=lambda k: k.key)
def test_nothing_is_said_where_all_that_is_read_has_a_value(kernel: Any) -> None:
    assert reads(kernel, [0.9, 0.1, 0.55]) == ()


def test_each_place_is_named_once() -> None:
    assert len(reads(branch, [0.1] * 50)) == 1
