"""Kernels whose threads take a part of a nanosecond are divided later than others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.ad.threads import collect
from engine.ad.threads.light import LIGHT as PART
from engine.ad.threads.light import is_light
from engine.frontend import lower_kernel
from tests.parts import LARGE, cut

F, F2 = wp.array(dtype=float), wp.array2d(dtype=float)


@wp.kernel
def axpy(a: float, x: F, y: F, z: F):
    i = wp.tid()
    z[i] = a * x[i] + y[i]


@wp.kernel
def squares(x: F, total: F):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i] * x[i])


@wp.kernel
def rows(x: F2, total: F):
    i, j = wp.tid()
    wp.atomic_add(total, i, x[i, j] + x[i, j + 1])


@wp.kernel
def across(x: F2, z: F2):
    i, j = wp.tid()
    z[i, j] = x[j, i]


@wp.kernel
def second(x: F, z: F):
    i = wp.tid()
    z[i] = x[2 * i]


@wp.kernel
def gathered(x: F, at: wp.array(dtype=int), z: F):
    i = wp.tid()
    z[i] = x[at[i]]


@wp.kernel
def sine(x: F, z: F):
    i = wp.tid()
    z[i] = wp.sin(x[i])


@wp.kernel
def looped(x: F, z: F):
    i = wp.tid()
    for k in range(3):
        z[i] = z[i] + x[k]


@wp.kernel
def doubles(x: wp.array(dtype=wp.float64), z: wp.array(dtype=wp.float64)):
    i = wp.tid()
    z[i] = x[i] + x[i]


@wp.kernel
def vectors(x: wp.array(dtype=wp.vec3), z: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    z[i] = x[i] + x[i]


@wp.kernel
def greatest(x: F, z: F):
    i = wp.tid()
    wp.atomic_max(z, 0, x[i])


@wp.kernel
def guarded(x: F, z: F):
    i = wp.tid()
    if x[i] > 0.0:
        z[i] = x[i]


LIGHT = [axpy, squares, rows]
OTHERS = [across, second, gathered, sine, looped, doubles, vectors, greatest, guarded]


def light(kernel: Any) -> bool:
    fn = lower_kernel(kernel)
    return is_light(fn, [a.index for a in collect(fn).accesses], frozenset(["sin"]))


@pytest.mark.parametrize("kernel", LIGHT, ids=lambda k: k.key)
def test_light(kernel: Any) -> None:
    assert light(kernel)


@pytest.mark.parametrize("kernel", OTHERS, ids=lambda k: k.key)
def test_not_light(kernel: Any) -> None:
    assert not light(kernel)


@pytest.mark.host("launches on a GPU are not divided")
@pytest.mark.parametrize("size", [66_667, 99_999, 100_000, 150_001, 299_999, 300_000])
def test_sizes_at_which_launches_are_divided(size: int) -> None:
    """By one thread, and in parts: the same elements, and sums that numbers like these allow."""
    data = np.random.default_rng(1).integers(-2, 3, (2, size)).astype(np.float32)

    def program() -> list[np.ndarray[Any, Any]]:
        x, y = (wp.array(d, dtype=float, requires_grad=True) for d in data)
        z, total = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        for _ in range(3):
            tape.reset()
            total.zero_()
            with tape:
                wp.launch(axpy, size, [2.0, x, y], [z])
                wp.launch(squares, size, [z], [total])
            tape.backward(total)
        return [a.numpy() for a in (z, total, x.grad, y.grad)]

    found = program()
    want = 2 * data[0] + data[1]
    for got, exact in zip(found, (want, [(want**2).sum()], 4 * want, 2 * want), strict=True):
        np.testing.assert_array_equal(got, exact)
    for threads in (1, 2, 7):
        with cut(threads) as seen:
            assert all(map(np.array_equal, program(), found))
        assert seen


@pytest.mark.host("launches on a GPU are not divided")
def test_light_ones_are_divided_later() -> None:
    def is_divided(kernel: Any, size: int) -> bool:
        x, z = (wp.zeros(n, dtype=float) for n in (size, 1 if kernel is squares else size))
        with cut(2, LARGE) as seen:
            wp.launch(kernel, size, [x, z])
        return bool(seen)

    assert 0 < PART < 1
    assert is_divided(sine, 80_000) and not is_divided(squares, 80_000)
    assert is_divided(squares, 300_000)
