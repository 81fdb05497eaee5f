"""Elements that a kernel certainly reads and stores by one thread."""

from __future__ import annotations

from typing import Any

import pytest

import engine as wp

F = wp.array(dtype=float)
V = wp.array(dtype=wp.vec3)


@wp.func
def put(x: F, i: int):
    x[i] = 2.0


@wp.kernel
def through_a_function(x: F, y: F):
    i = wp.tid()
    a = x[i]
    put(x, i)
    y[i] = a


@wp.kernel
def shrunk(x: F):
    i = wp.tid()
    x[i] = 0.5 * x[i]


@wp.kernel
def index_computed_twice(x: F):
    i = wp.tid()
    x[i + 1] = 3.0 * x[1 + i]
    x[i + 2] = 3.0 * x[i + 2]


@wp.kernel
def read_twice(x: F, y: F):
    i = wp.tid()
    a = x[i]
    y[i] = a
    x[i] = a + 1.0


@wp.kernel
def component(v: V, y: F):
    i = wp.tid()
    y[i] = v[i][1]
    v[i] = wp.vec3(1.0)


@wp.kernel
def at_an_index(k: wp.array(dtype=int), x: F, y: F):
    i = wp.tid()
    j = k[i]
    y[i] = x[j]
    x[j] = 0.0


@pytest.mark.parametrize(
    ("kernel", "name"),
    [(through_a_function, "x"), (shrunk, "x"), (index_computed_twice, "x"), (read_twice, "x"),
     (component, "v"), (at_an_index, "x")],
)  # fmt: skip
def test_what_is_read_and_then_lost(kernel: Any, name: str) -> None:
    found = kernel.plan.variants.reuse
    assert found.lost == {name} and name in found.stored and found.back == frozenset()


@wp.kernel
def made_and_used(x: F, y: F, z: F):
    i = wp.tid()
    y[i] = x[i]
    z[i] = y[i]


@wp.kernel
def added_and_used(x: F, y: F, z: F):
    i = wp.tid()
    y[i] += x[i]
    z[i] = 2.0 * y[i]


@pytest.mark.parametrize("kernel", [made_and_used, added_and_used])
def test_what_is_read_back(kernel: Any) -> None:
    found = kernel.plan.variants.reuse
    assert found.back == {"y"} and found.lost == frozenset()


@wp.kernel
def added(x: F, y: F):
    i = wp.tid()
    y[i] += x[i]
    y[i] = y[i] + x[i]
    y[i] = x[i] + y[i]
    y[i] = y[i] - x[i]


@wp.kernel
def added_components(v: V, x: F):
    i = wp.tid()
    v[i] = v[i] + wp.vec3(x[i])
    v[i][0] = v[i][0] + x[i]


@wp.kernel
def elsewhere(x: F):
    i = wp.tid()
    x[i + 8] = 2.0 * x[i]


@wp.kernel
def perhaps(x: F, y: F):
    i = wp.tid()
    y[i] = x[i]
    if y[i] > 0.0:
        x[i] = 0.0


@wp.kernel
def moving(x: F, n: int):
    i = wp.tid()
    j = i
    a = x[j]
    for _ in range(n):
        j += 1
    x[j] = 2.0 * a


@wp.kernel
def other_component(v: V, y: F):
    i = wp.tid()
    y[i] = v[i][1]
    v[i][0] = 1.0


@pytest.mark.parametrize(
    "kernel", [added, added_components, elsewhere, perhaps, moving, other_component]
)
def test_what_only_adds_or_is_not_certain(kernel: Any) -> None:
    assert kernel.plan.variants.reuse.lost == frozenset()


def test_a_difference_from_what_was_there_is_no_sum() -> None:
    @wp.kernel
    def mirrored(x: F, y: F):
        i = wp.tid()
        y[i] = x[i] - y[i]

    assert mirrored.plan.variants.reuse.lost == {"y"}
