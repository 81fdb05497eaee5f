"""The check of a whole tape takes memory in proportion to its length, however it is laid out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape
from engine.autograd.tape.memory import FEW, Gradients, Memory, Placement, Region
from engine.autograd.tape.recorded_tape import recorded_tape
from engine.autograd.tape.replay import replay
from engine.lang.types import FLOAT32
from engine.runtime.annotation import element_info

F = wp.array(dtype=float)
N = 4


@wp.kernel
def push(x: F, u: F, x1: F):
    i = wp.tid()
    x1[i] = x[i] + 0.01 * wp.sin(x[i]) + u[i]


def arrays(count: int) -> Any:
    return [wp.array(np.full(N, 0.1 * k), dtype=float, requires_grad=True) for k in range(count)]


def rows(count: int) -> Any:
    whole = wp.array(np.ones((count, N)), dtype=float, requires_grad=True)
    return [whole[k] for k in range(count)]


def columns(count: int) -> Any:
    whole = wp.array(np.ones((N, count)), dtype=float, requires_grad=True)
    return [whole[:, k] for k in range(count)]


def rolled_out(make: Any, count: int) -> wp.Tape:
    xs, us = make(count + 1), make(count)
    with wp.Tape() as tape:
        for k in range(count):
            wp.launch(push, N, [xs[k], us[k]], [xs[k + 1]])
    tape.backward(grads={xs[count]: np.ones(N, np.float32)})
    return tape


@pytest.mark.parametrize("make", [arrays, rows, columns])
def test_one_array_of_controls_a_step(make: Any) -> None:
    found = check_tape(rolled_out(make, 30))
    assert found.whole is not None and found.whole.verdict == "pass"
    assert {p.verdict for x in found.launches for p in x.pairs} == {"pass"}


def test_gradients_have_memory_where_they_are_only() -> None:
    sizes = {}
    for count in (20, 40):
        r = replay(recorded_tape(rolled_out(arrays, count)))
        for leaf in r.leaves:
            r.memories.grads.total(leaf.part)
        sizes[count] = sum(len(m.planes) for m in r.memories.grads.memories)
        r.close()
    assert sizes[40] <= 2 * sizes[20] + 2


def part(ptr: int, shape: tuple[int, ...], strides: tuple[int, ...], root: int = 0) -> Placement:
    return Placement(ptr, shape, strides, element_info(FLOAT32), root, None)


@pytest.mark.parametrize("count", [2, FEW + 5])
def test_a_region_of_columns_is_exact(count: int) -> None:
    """Columns lie in one another's extents and share nothing."""
    width = 2 * count
    region = Region([(0, 4 * 8 * width)])
    for k in range(count):
        region.add(part(8 * k, (8,), (4 * width,)))
    for k in range(count):
        assert region.meets(part(8 * k, (8,), (4 * width,)))
        assert region.meets(part(8 * k, (1,), (4,)))
        assert not region.meets(part(8 * k + 4, (8,), (4 * width,)))
    assert not region.meets(part(0, (0,), (4,)))


def test_the_total_of_a_leaf_is_over_all_gradients_of_its_memory() -> None:
    spans = [(0, 64), (64, 128)]
    grads = Gradients(spans)
    for root in (1, 2):
        grads.view(part(0, (16,), (4,), root))[...] = root
    grads.view(part(64, (16,), (4,), 3))[...] = 7.0
    assert np.array_equal(grads.total(part(8, (4,), (8,), 1)), np.full(4, 3.0))
    assert np.array_equal(grads.total(part(64, (2,), (4,), 9)), [7.0, 7.0])
    tangents = Memory(spans, True)
    tangents.view(part(0, (16,), (4,)))[...] = 1.0
    assert grads.dot(tangents) == 48.0
