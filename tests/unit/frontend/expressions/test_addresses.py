"""Local arrays seen as others by their address: values, gradients, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import gradcheck
from engine.frontend import lower_kernel

Floats = wp.array(dtype=float)


@wp.func
def fill(a: wp.array(dtype=wp.vec2), x: float):
    for k in range(a.shape[0]):
        a[k] = wp.vec2(x * float(k), x * x)


@wp.kernel
def seen_otherwise(x: Floats, o: Floats):
    i = wp.tid()
    numbers = wp.zeros(shape=(12,), dtype=float)
    pairs = wp.array(ptr=numbers.ptr, shape=(6,), dtype=wp.vec2)
    later = wp.array(ptr=numbers.ptr + wp.uint64(4 * 2 * 3), shape=(3,), dtype=wp.vec2)
    table = wp.array(ptr=numbers.ptr, shape=(3, 4), dtype=float)
    for k in range(12):
        numbers[k] = x[i] * float(k + 1)
    fill(later, x[i])
    table[2, 3] *= x[i]
    pairs[1] += wp.vec2(x[i], 1.0)
    o[i] = wp.dot(pairs[1], later[2]) + table[0, 3] * numbers[7] + float(pairs.shape[0])
    o[i] += float(pairs.shape[1]) + later[1][0]


@wp.kernel
def wrong(x: Floats, p: wp.uint64, n: int):
    own = wp.zeros(4, dtype=float)
    a = wp.array(ptr=x.ptr, shape=(2,), dtype=float)
    b = wp.array(ptr=p, shape=(2,), dtype=float)
    c = wp.array(ptr=own.ptr, shape=(3,), dtype=wp.vec2)
    d = wp.array(ptr=own.ptr + wp.uint64(2), shape=(1,), dtype=float)
    e = wp.array(ptr=own.ptr, shape=(4,), dtype=int)
    f = wp.array(ptr=own.ptr + wp.uint64(n), shape=(1,), dtype=float)
    g = wp.array(x)
    h = wp.array(ptr=own.ptr, shape=(n,), dtype=float)
    x[0] = a[0] + b[0] + c[0][0] + d[0] + float(e[0]) + f[0] + g[0] + h[0]


def test_values_and_gradients() -> None:
    data = np.array([0.5, 0.75, 1.25])
    x = wp.array(data, dtype=float, requires_grad=True)
    o = wp.zeros(3, dtype=float, requires_grad=True)
    wp.launch(seen_otherwise, dim=3, inputs=[x, o])
    want = []
    for v in data:
        n = v * np.arange(1.0, 13.0)
        n[6:] = np.array([(v * k, v * v) for k in range(3)]).ravel()
        n[11] *= v
        n[2:4] += [v, 1.0]
        want.append(n[2:4] @ n[10:12] + n[3] * n[7] + 6 + n[8])
    np.testing.assert_allclose(o.numpy(), want, rtol=1e-6)
    assert gradcheck(seen_otherwise, dim=3, inputs=[x], outputs=[o])


def test_refusals() -> None:
    with pytest.raises(wp.KernelError) as e:
        lower_kernel(wrong.func)
    first = wrong.func.__code__.co_firstlineno
    told = [(d.code, d.span.line - first) for d in e.value.diagnostics]
    assert told == [
        ("E112", 3), ("E112", 4), ("E104", 5), ("E104", 6), ("E104", 7), ("E112", 8), ("E112", 9),
        ("E104", 10),
    ]  # fmt: skip
    assert all(d.help for d in e.value.diagnostics)
