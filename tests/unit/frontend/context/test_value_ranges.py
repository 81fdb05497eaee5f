"""Negative indices count from the end, and indices that cannot be negative cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.unit.frontend.ir_text import Floats, Matrices, Vectors, lowered

Ints = wp.array(dtype=int)
Grid = wp.array2d(dtype=float)


def wraps(kernel: Any) -> int:
    """How many indices of a kernel may count from the end."""
    return str(lowered(kernel)).count("wrap_index(")


@pytest.mark.parametrize("dtype", [wp.int8, wp.int16, wp.int32, wp.int64])
def test_every_signed_type_wraps(dtype: Any) -> None:
    # More elements than an int8 can count.
    @wp.kernel
    def k(x: Ints, y: Ints, at: Ints):
        i = wp.tid()
        y[i] = x[dtype(at[i])]

    y = wp.zeros(4, dtype=int)
    at = wp.array([-1, 5, -100, 0], dtype=int)
    wp.launch(k, dim=4, inputs=[wp.array(np.arange(1000), dtype=int), y, at])
    assert y.numpy().tolist() == [999, 5, 900, 0]


@wp.kernel
def _stores(v: Vectors, m: Matrices, g: Grid, i: int):
    v[i][i] = 1.0
    m[i, i][i, i] = 2.0
    m[i, i][i] += wp.vec2(3.0, 3.0)
    g[i][i] += 4.0
    wp.atomic_add(g, i, 0, 5.0)
    u = wp.vec3(0.0, 0.0, 0.0)
    u[i] = 6.0
    v[0] = u


def test_stores_and_components() -> None:
    v, m = wp.zeros(2, dtype=wp.vec3), wp.zeros((2, 2), dtype=wp.mat22)
    g = wp.zeros((2, 2), dtype=float)
    wp.launch(_stores, dim=1, inputs=[v, m, g, -1])
    assert v.numpy().tolist() == [[0, 0, 6], [0, 0, 1]]
    assert m.numpy()[1, 1].tolist() == [[0, 0], [3, 5]] and m.numpy().sum() == 8
    assert g.numpy().tolist() == [[0, 0], [5, 4]]


@wp.kernel
def _shifted(x: Floats, y: Floats, o: int):
    i = wp.tid()
    y[i] = x[i - o] * x[i - 1]


def test_gradients_go_where_the_values_came_from() -> None:
    values = np.array([2.0, 3.0, 5.0], np.float32)
    x = wp.array(values, dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(_shifted, dim=3, inputs=[x, y, 2])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_array_equal(y.numpy(), np.roll(values, 2) * np.roll(values, 1))
    np.testing.assert_array_equal(x.grad.numpy(), np.roll(values, 1) + np.roll(values, -1))


@wp.kernel
def _never_negative(x: Grid, n: int, u: wp.uint32, h: wp.uint16):
    i, j = wp.tid()
    x[i, j] = x[i + 1, j * 2] + x[u, int(h)]
    x[wp.max(n, 0), wp.min(i, j)] = x[(i + 3) // 2, j % 4]
    x[wp.clamp(n, 0, 5), x.shape[1] / 2] = 1.0
    for k in range(n):
        x[k, k + i] = 2.0
    for k in range(x.shape[0] - 1, -1, -1):
        x[k, wp.abs(n)] = 2.0


@wp.kernel
def _guarded(u: Grid, v: Grid):
    i, j = wp.tid()
    if i > 0 and 1 <= j and j < u.shape[1] - 1:
        v[i, j] = u[i - 1, j] + u[i, j - 1] + u[i, j + 1]
    if 0 < i < u.shape[0] - 1:
        v[i, j] = u[i - 1, j]
    if i == 0 or j < 2:
        v[i, j] = 0.0
    else:
        v[i, j] = u[i - 1, j - 2]
    v[i, j] = u[i - 1, j] if i != 0 else 0.0
    im = i - 1
    if not (i == 0) and u[im, j] > 0.0:
        v[i, j] = 1.0


@wp.kernel
def _early_return(u: Grid, v: Grid):
    i, j = wp.tid()
    if i == 0 or j == 0 or i >= u.shape[0] - 1:
        return
    v[i, j] = u[i - 1, j - 1]
    for k in range(3):
        if k == 0:
            continue
        v[i, j] = u[k - 1, j]


@pytest.mark.parametrize("kernel", [_never_negative, _guarded, _early_return])
def test_known_signs_need_no_wrap(kernel: Any) -> None:
    assert wraps(kernel) == 0


@wp.kernel
def _maybe_negative(x: Grid, n: int, u: wp.uint32):
    i, j = wp.tid()
    x[i - 1, j] = x[n, wp.max(n, n)]  # 3
    x[wp.min(i, n), -i] = 1.0  # 2
    x[int(u), i * n] = 1.0  # 2: a large uint32 is a negative int
    for k in range(n, 5):
        x[k, 0] = 1.0  # 1
    if i > 0 or j > 0:
        x[i - 1, j] = 1.0  # 1
    if i > 0:
        x[i - 2, j] = 1.0  # 1
    x[i - 1, j] = 2.0  # 1: the guard is over


@wp.kernel
def _changed_after_the_test(x: Floats, n: int):
    i = n
    for _ in range(3):
        if i > 0:
            i = i - 2
            x[i] = 1.0


def test_other_signs_do() -> None:
    assert wraps(_maybe_negative) == 11
    assert wraps(_changed_after_the_test) == 1
