"""Indices that are known at run time, outside of tables and values: the nearest is taken.

What lies beside a value in memory is neither read nor written, in any form of a kernel, on the CPU
and on GPUs. That the index is wrong is for `adtool check` to say (G008).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.backend.cuda.emulated import PLACES, place

FAR = 10**9
INDICES = [0, 2, -1, -3, 3, 4, -4, 7, -7, FAR, -FAR, 2**31 - 1, -(2**31)]
FLOATS, WHOLE = (1.5, 2.5, 4.0), (3, 5, 7)
TRUTHS = (True, False, True)
MATRIX = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)


def nearest(n: int, size: int) -> int:
    """Which of `size` an index takes: from the end where it is negative, and the nearest."""
    return min(max(n + size if n < 0 else n, 0), size - 1)


@pytest.fixture(params=["cpu", *PLACES])
def where(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "cpu":
        yield "cpu"
        return
    with place(request.param) as found:
        yield found


@wp.kernel
def tables(
    n: wp.array(dtype=int),
    y: wp.array(dtype=float),
    d: wp.array(dtype=wp.float64),
    k: wp.array(dtype=int),
    b: wp.array(dtype=bool),
):
    i = wp.tid()
    y[i] = FLOATS[n[i]]
    d[i] = wp.float64(2.0) * (0.1, 0.2, 0.7)[n[i]]
    k[i] = WHOLE[n[i]] + (1, 2)[n[i]] + n.shape[0]
    b[i] = TRUTHS[n[i]]


def test_tables(where: Any) -> None:
    size = len(INDICES)
    n = wp.array(INDICES, dtype=int, device=where)
    y, d = (wp.zeros(size, dtype=t, device=where) for t in (float, wp.float64))
    k, b = (wp.zeros(size, dtype=t, device=where) for t in (int, bool))
    wp.launch(tables, size, [n], [y, d, k, b], device=where)
    at = [nearest(i, 3) for i in INDICES]
    np.testing.assert_array_equal(y.numpy(), np.float32([FLOATS[j] for j in at]))
    np.testing.assert_array_equal(d.numpy(), 2.0 * np.array([(0.1, 0.2, 0.7)[j] for j in at]))
    two = [(1, 2)[nearest(i, 2)] for i in INDICES]
    np.testing.assert_array_equal(
        k.numpy(), [WHOLE[j] + m + size for j, m in zip(at, two, strict=True)]
    )
    np.testing.assert_array_equal(b.numpy(), [TRUTHS[j] for j in at])


@wp.kernel
def wide(n: wp.array(dtype=wp.int64), u: wp.array(dtype=wp.uint64), s: wp.array(dtype=wp.uint8),
         y: wp.array(dtype=float, ndim=2)):  # fmt: skip
    i = wp.tid()
    y[i, 0] = FLOATS[n[i]]
    y[i, 1] = FLOATS[u[i]]
    y[i, 2] = FLOATS[s[i]]


def test_indices_of_all_widths(where: Any) -> None:
    given = np.array([1, 3, -4, 2**40, -(2**40), 2**63 - 1, -(2**63), 2**32, -(2**32) + 1])
    n = wp.array(given, dtype=wp.int64, device=where)
    u = wp.array(given.astype(np.uint64), dtype=wp.uint64, device=where)
    s = wp.array(given.astype(np.uint8), dtype=wp.uint8, device=where)
    y = wp.zeros((given.size, 3), dtype=float, device=where)
    wp.launch(wide, given.size, [n, u, s], [y], device=where)
    all_widths = (given, given.astype(np.uint64), given.astype(np.uint8))
    want = np.array([[FLOATS[nearest(int(j), 3)] for j in column] for column in all_widths]).T
    np.testing.assert_array_equal(y.numpy(), np.float32(want))


@wp.kernel
def values(
    n: wp.array(dtype=int), v: wp.array(dtype=wp.vec3), q: wp.array(dtype=wp.quat),
    m: wp.array(dtype=wp.types.matrix(shape=(2, 3), dtype=float)),
    y: wp.array(dtype=float, ndim=2),
):  # fmt: skip
    i = wp.tid()
    k = n[i]
    a = v[0]
    y[i, 0] = a[k]
    y[i, 1] = v[0][k]  # of an array's element
    b = m[0]
    y[i, 2] = b[k, k]
    row = b[k]
    y[i, 3] = row[1]
    y[i, 4] = m[0][k][k]
    y[i, 5] = q[0][k]
    room = wp.zeros(shape=3, dtype=float)  # a local array
    room[k] = a[k]
    y[i, 6] = room[0] + 2.0 * room[1] + 4.0 * room[2]
    a[k] = 9.0
    y[i, 7] = a[0] + 2.0 * a[1] + 4.0 * a[2]


def _values(where: Any) -> tuple[Any, ...]:
    def one(data: Any, dtype: Any) -> Any:
        return wp.array(data, dtype=dtype, device=where, requires_grad=True)

    kind = wp.types.matrix(shape=(2, 3), dtype=float)
    return (
        wp.array(INDICES, dtype=int, device=where), one([[1.0, 2.0, 3.0]], wp.vec3),
        one([[1.0, 2.0, 3.0, 4.0]], wp.quat), one(MATRIX[None], kind),
        wp.zeros((len(INDICES), 8), dtype=float, device=where, requires_grad=True),
    )  # fmt: skip


def _expected(x: np.ndarray[Any, Any], q: np.ndarray[Any, Any], m: np.ndarray[Any, Any]) -> Any:
    out = []
    for n in INDICES:
        j, r = nearest(n, 3), nearest(n, 2)
        room, changed = np.zeros(3, x.dtype), x.copy()
        room[j], changed[j] = x[j], 9.0
        weights = np.array([1.0, 2.0, 4.0])
        out.append([x[j], x[j], m[r, j], m[r, 1], m[r, j], q[nearest(n, 4)], weights @ room,
                    weights @ changed])  # fmt: skip
    return np.array(out)


def test_values_and_their_derivatives(where: Any) -> None:
    n, v, q, m, y = _values(where)
    with wp.Tape() as tape:
        wp.launch(values, len(INDICES), [n, v, q, m], [y], device=where)
    x, z = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(y.numpy(), _expected(x, z, MATRIX))
    seed = np.random.default_rng(7).integers(-4, 5, y.shape).astype(np.float32)
    tape.backward(grads={y: wp.array(seed, dtype=float, device=where)})
    # The function is linear in each part: differences of ones are its derivatives.
    base = _expected(0 * x, 0 * z, 0 * MATRIX)
    for a, at, size in ((v, 0, 3), (q, 1, 4), (m, 2, 6)):
        want = []
        for k in range(size):
            parts = [0 * x, 0 * z, (0 * MATRIX).astype(float)]
            parts[at].reshape(-1)[k] = 1.0
            want.append((seed * (_expected(*parts) - base)).sum())
        np.testing.assert_array_equal(a.grad.numpy().reshape(-1), want)
    tangent = wp.array([[1.0, 10.0, 100.0]], dtype=wp.vec3, device=where)
    found = wp.autograd.jvp(tape, tangents={v: tangent})[y].numpy()
    np.testing.assert_array_equal(found, _expected(np.array([1.0, 10.0, 100.0]), 0 * z, 0 * MATRIX)
                                  - base)  # fmt: skip


@wp.kernel
def written(n: int, v: wp.array(dtype=wp.vec3), m: wp.array(dtype=wp.mat22)):
    v[1][n] = 5.0
    v[3][n] += 2.0
    m[1][n, 0] = 5.0
    wp.atomic_add(m, 3, wp.mat22(0.0, 0.0, 0.0, 0.0))


@pytest.mark.parametrize("n", INDICES)
def test_elements_beside_are_not_written(where: Any, n: int) -> None:
    v = wp.zeros(5, dtype=wp.vec3, device=where)
    m = wp.zeros(5, dtype=wp.mat22, device=where)
    wp.launch(written, 1, [n, v, m], device=where)
    vectors, matrices = np.zeros((5, 3)), np.zeros((5, 2, 2))
    vectors[1, nearest(n, 3)], vectors[3, nearest(n, 3)] = 5.0, 2.0
    matrices[1, nearest(n, 2), 0] = 5.0
    np.testing.assert_array_equal(v.numpy(), vectors)
    np.testing.assert_array_equal(m.numpy(), matrices)
