"""Arrays of a fixed size that kernels make."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp


@wp.struct
class Node:
    w: float
    pos: wp.vec2


@wp.func
def fill(a: wp.array(dtype=float), value: float):
    for i in range(a.shape[0]):
        a[i] = value + float(i)
        if a[i] > 8.0:
            return i
    return -1


@wp.func
def both(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    a[0] += 1.0
    b[1] += a[0]
    return b[0]


@wp.func
def made(n: int):
    a = wp.zeros(3, dtype=int)
    a[n] = n + 1
    return a


@wp.kernel
def kernel(out: wp.array(dtype=float), n: int):
    a = wp.zeros(shape=(4,), dtype=float)
    out[0] = float(fill(a, 1.0))
    out[1] = a[3] + float(len(a)) + float(a.shape[0] * a.ndim * a.size + a.shape[1] + a.shape[3])
    out[2] = float(fill(a, 7.0))
    out[3] = a[n] + a[-1]
    b = a
    b[0] = 100.0
    out[4] = a[0]  # assignment copies
    m = wp.zeros((2, 3), dtype=float)
    row = m[1]
    row[2] = 4.0  # a view does not
    out[5] = m[1, 2] + m[-1][-1]
    out[6] = both(m[0], m[0]) + m[0, 1]
    out[7] = float(fill(m[:, 1], 20.0)) + m[0, 1] + m[1, 1]
    v = wp.zeros(2, dtype=wp.vec3)
    v[n - 1].y = 3.0
    v[n - 1] += wp.vec3(1.0)
    v[0][2] += 5.0
    out[8] = v[1][1] * 10.0 + v[0].z
    q = wp.zeros(2, dtype=wp.mat22)
    q[1] = wp.mat22(1.0, 2.0, 3.0, 4.0)
    q[1][0] = q[1][1]
    out[9] = q[1][0, 1] + wp.trace(q[1])
    s = wp.zeros(3, dtype=Node)
    s[n].w = 2.0
    s[n].pos.y += 3.0
    s[0] = s[n]
    s[0].w *= 2.0
    out[10] = s[0].w * 10.0 + s[0].pos[1] + s[2].w
    out[11] = float(made(2)[2] + made(1)[1])
    old = wp.atomic_add(a, 1, 5.0)
    wp.atomic_max(a, 2, 50.0)
    out[12] = old + a[1] + a[2]
    for k in range(3):
        t = wp.zeros(2, dtype=int)
        t[k % 2] += k  # zero again in every iteration
        out[13] += float(t[0] + t[1])
    flags = wp.zeros(2, dtype=bool)
    flags[n - 1] = n == 2
    if flags[1] and not flags[0]:
        out[14] = 1.0


def test_local_arrays() -> None:
    out = wp.zeros(15, dtype=float)
    wp.launch(kernel, dim=1, inputs=[out, 2])
    expected = [-1, 24, 2, 13, 7, 8, 2, 20, 45, 11, 45, 5, 71, 3, 1]
    np.testing.assert_array_equal(out.numpy(), np.float32(expected))


@wp.kernel
def long(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    a = wp.zeros(1024, dtype=float)
    for i in range(1024):
        a[i] = x[i % x.shape[0]] * float(i)
    s = float(0.0)
    for i in range(1024):
        s += a[1023 - i]
    y[0] = s


def test_the_longest_one() -> None:
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(long, dim=1, inputs=[x, y])
    tape.backward(y)
    i = np.arange(1024)
    np.testing.assert_array_equal(x.grad.numpy(), [i[::2].sum(), i[1::2].sum()])


@wp.func
def table() -> wp.fixedarray(shape=(2, 3), dtype=float):
    t = wp.zeros(shape=(2, 3), dtype=float)
    for i in range(2):
        for j in range(3):
            t[i, j] = float(3 * i + j)
    return t


@wp.func
def row_sum(t: wp.fixedarray((2, 3)), i: int):
    return t[i, 0] + t[i, 1] + t[i, 2]


mat32d = wp.types.matrix(shape=(3, 2), dtype=wp.float64)


@wp.kernel
def of_fixed_size(out: wp.array(dtype=float)):
    t = table()
    t[1, 1] += 0.5
    out[0] = row_sum(t, 1)
    m = mat32d(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, shape=(3, 2), dtype=wp.float64)
    v = wp.vec3(1.0, 2.0, 3.0, length=3)
    out[1] = float(m[2, 0]) + v[1]


def test_arrays_of_fixed_size_by_name() -> None:
    out = wp.zeros(2, dtype=float)
    wp.launch(of_fixed_size, dim=1, outputs=[out])
    np.testing.assert_array_equal(out.numpy(), [12.5, 7.0])
    assert repr(wp.fixedarray((2,), int)) == "fixedarray(shape=(2,), dtype=int32)"
    with pytest.raises(wp.LaunchError, match="E206"):
        wp.fixedarray((0, 2), float)
