"""Arrays that are chosen at run time: calls that need to know which, facts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import gradcheck
from engine.frontend import lower_kernel

Floats = wp.array(dtype=float)


@wp.func_native("return a[i] * a[i];", "adj_a[i] += 2.0f * a[i] * adj_ret;")
def native_square(a: Floats, i: int) -> float: ...


@wp.struct
class Empty:
    data: Floats
    n: int


@wp.func
def first(data: Floats, n: int):
    if data.shape[0] > 0 and n > 0:
        return data[n - 1]
    return 0.0


@wp.func
def doubled(a: Floats, i: int):
    return a[i] * 2.0


@wp.kernel
def facts(x: Floats, y: Floats, z: Floats, o: Floats):
    i = wp.tid()
    a = x if i > 0 else y
    b: Floats = wp.where(i > 1, z, x)
    o[i] = native_square(a, i) + float(len(b)) + wp.grad(doubled_of)(a[i])
    e = Empty()
    o[i] += first(e.data, e.n)
    if i == 2:
        e.data = z
        e.n = 1
    o[i] += first(e.data, e.n) + float(e.data.ndim)
    if a:
        o[i] += native_square(y if i == 1 else b, 0) * float(wp.lower_bound(a, 0.5))


@wp.func
def doubled_of(x: float):
    return x * x * x


@wp.kernel
def parts_of_local_arrays(x: Floats, o: Floats, n: int):
    i = wp.tid()
    own = wp.zeros((2, 2), dtype=float)
    other = wp.zeros((2, 2), dtype=float)
    own[0, 1] = x[i]
    other[1, 1] = x[i] * x[i]
    row = own[0] if i < n else other[1]
    row[0] = x[i] * 3.0
    o[i] = doubled(row, 1) + own[0, 0] * other[1, 0] + other[1, 0]


@wp.func
def other_names(a: Floats, b: Floats, x: float):
    first = a
    first[0] = x * x
    which = a
    if x > 0.6:
        which = b
    for k in range(2):
        which[1] += x * float(k + 1)
    return which[1] * a[0]


@wp.func
def returned_whole(a: Floats):
    b = a
    b[1] *= 2.0
    return b


@wp.kernel
def arrays_of_the_caller(x: Floats, o: Floats):
    i = wp.tid()
    own = wp.zeros(2, dtype=float)
    other = wp.zeros(3, dtype=float)
    part = other[1:]
    r = other_names(own, part, x[i]) + other_names(other, own, x[i])
    copy = own
    copy[0] = 100.0
    o[i] = r + own[0] * own[1] + other[0] * other[2]
    third = returned_whole(own)
    o[i] += third[1] * own[1]


@wp.kernel
def too_many(x: Floats, y: Floats, n: int):
    a = x if n > 0 else y
    b = x if n > 1 else y
    c = x if n > 2 else y
    d = x if n > 3 else y
    e = x if n > 4 else y
    f = x if n > 5 else y
    g = x if n > 6 else y
    seven(a, b, c, d, e, f, g)
    x[0] = seven_sums(a, b, c, d, e, f, g)


@wp.func_native("a[0] = b[0];")
def seven(a: Floats, b: Floats, c: Floats, d: Floats, e: Floats, f: Floats, g: Floats): ...


@wp.func
def seven_sums(a: Floats, b: Floats, c: Floats, d: Floats, e: Floats, f: Floats, g: Floats):
    return a[0] + b[0] + c[0] + d[0] + e[0] + f[0] + g[0]


def test_calls_and_facts() -> None:
    x, y, z = (wp.array(np.linspace(0.2, 1.4, n) + n * 0.01, dtype=float, requires_grad=True)
               for n in (3, 4, 5))  # fmt: skip
    o = wp.zeros(3, dtype=float, requires_grad=True)
    wp.launch(facts, dim=3, inputs=[x, y, z, o])
    X, Y, Z = (v.numpy().astype(float) for v in (x, y, z))
    for i in range(3):
        a, b = (X if i > 0 else Y), (Z if i > 1 else X)
        want = a[i] ** 2 + len(b) + 3 * a[i] ** 2 + (Z[0] if i == 2 else 0.0) + 1.0
        want += (Y if i == 1 else b)[0] ** 2 * np.searchsorted(a, 0.5)
        assert o.numpy()[i] == pytest.approx(want, rel=1e-6)
    assert gradcheck(facts, dim=3, inputs=[x, y, z], outputs=[o])


def test_parts_of_local_arrays() -> None:
    x = wp.array(np.array([0.5, 0.7, 1.1]), dtype=float, requires_grad=True)
    o = wp.zeros(3, dtype=float, requires_grad=True)
    wp.launch(parts_of_local_arrays, dim=3, inputs=[x, o, 2])
    X = x.numpy().astype(float)
    want = [2 * X[0], 2 * X[1], 2 * X[2] ** 2 + 3 * X[2]]
    np.testing.assert_allclose(o.numpy(), want, rtol=1e-6)
    tape = wp.Tape()
    with tape:
        wp.launch(parts_of_local_arrays, dim=3, inputs=[x, o, 2])
    tape.backward(grads={o: wp.ones(3, dtype=float)})
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 2.0, 4 * X[2] + 3], rtol=1e-6)


def test_other_names_for_arrays_of_the_caller() -> None:
    """They mean the same memory, as in Warp; in the function that made the array, a copy."""
    x = wp.array(np.array([0.5, 0.7, 1.1]), dtype=float, requires_grad=True)
    o = wp.zeros(3, dtype=float, requires_grad=True)
    wp.launch(arrays_of_the_caller, dim=3, inputs=[x, o])
    want = []
    for v in x.numpy().astype(float):
        own, other = np.zeros(2), np.zeros(3)
        r = 0.0
        for a, b in ((own, other[1:]), (other, own)):
            a[0] = v * v
            which = b if v > 0.6 else a
            which[1] += 3 * v
            r += which[1] * a[0]
        r += own[0] * own[1] + other[0] * other[2]
        own[1] *= 2
        want.append(r + own[1] * own[1])
    np.testing.assert_allclose(o.numpy(), want, rtol=1e-6)
    assert gradcheck(arrays_of_the_caller, dim=3, inputs=[x], outputs=[o])


def test_too_many_combinations() -> None:
    with pytest.raises(wp.KernelError) as e:
        lower_kernel(too_many.func)
    (d,) = e.value.diagnostics
    assert d.code == "E101" and "more than 64 combinations" in d.message and d.help
