"""The kernels of the programs: few, so that thousands of programs compile nothing."""

# No postponed annotations: kernels find theirs in the function that makes them.

from types import SimpleNamespace
from typing import Any

N = 4  # elements of most operands, and threads of most launches
ROWS = 3


def make(wp: Any) -> SimpleNamespace:
    """The kernels, for the engine, or as plain Python for what stands in for it (`dual.World`).

    Values stay bounded whatever order the kernels run in.
    """
    T = wp.float64
    A = wp.array(dtype=wp.float64)
    M = wp.array2d(dtype=wp.float64)
    V = wp.array(dtype=wp.vec3d)

    @wp.struct
    class Both:
        a: wp.array(dtype=wp.float64)  # type: ignore[valid-type]
        b: wp.array(dtype=wp.float64)  # type: ignore[valid-type]
        k: wp.float64  # type: ignore[valid-type]

    @wp.struct
    class Pair:
        p: wp.float64  # type: ignore[valid-type]
        q: wp.float64  # type: ignore[valid-type]

    P = wp.array(dtype=Pair)

    @wp.kernel
    def product(a: A, b: A, c: A, out: A):
        i = wp.tid()
        out[i] = wp.sin(a[i] * b[i]) + T(0.5) * wp.sin(c[i])

    @wp.kernel
    def wave(a: A, k: T, out: A):
        i = wp.tid()
        out[i] = wp.sin(a[i] * k) + T(0.25) * a[i]

    @wp.kernel
    def in_place(x: A, k: T):
        i = wp.tid()
        x[i] = k * wp.sin(x[i]) + T(0.5)

    @wp.kernel
    def mixed_in(a: A, x: A):
        i = wp.tid()
        x[i] = wp.cos(x[i]) * a[i]

    @wp.kernel
    def halve(x: A):
        i = wp.tid()
        x[i] = T(0.5) * x[i]

    @wp.kernel
    def some(a: A, out: A):
        i = wp.tid()
        if i % 2 == 0:
            out[i] = wp.cos(a[i]) * a[(i + 1) % 4]

    @wp.kernel
    def added(a: A, out: A):
        i = wp.tid()
        wp.atomic_add(out, i % 2, wp.sin(a[i]))

    @wp.kernel
    def plus(a: A, out: A):
        i = wp.tid()
        out[i] += wp.sin(a[i])

    @wp.kernel
    def power(a: A, n: int, out: A):
        i = wp.tid()
        p = T(1.0)
        for _k in range(n):
            p = p * wp.sin(a[i])
        out[i] = p

    @wp.kernel
    def columns(m: M, out: A):
        i = wp.tid()
        s = T(0.0)
        for j in range(3):
            s = s + wp.sin(m[j, i]) * wp.cos(m[j, i])
        out[i] = s

    @wp.kernel
    def spread(a: A, b: A, m: M):
        j, i = wp.tid()
        m[j, i] = wp.sin(a[i]) * b[j]

    @wp.kernel
    def turned(v: V, a: A, out: V):
        i = wp.tid()
        out[i] = v[i] * wp.sin(a[i]) + wp.vec3d(a[i], v[i][0], T(0.5))

    @wp.kernel
    def dotted(v: V, w: V, out: A):
        i = wp.tid()
        out[i] = wp.sin(wp.dot(v[i], w[i]))

    @wp.kernel
    def from_both(s: Both, out: A):
        i = wp.tid()
        out[i] = s.a[i] * wp.sin(s.b[i]) * s.k

    @wp.kernel
    def to_both(a: A, s: Both):
        i = wp.tid()
        s.b[i] = wp.sin(a[i]) * s.a[i] + s.k

    @wp.kernel
    def packed(a: A, out: P):
        i = wp.tid()
        out[i].p = wp.sin(a[i]) * out[i].q

    @wp.kernel
    def unpacked(s: P, out: A):
        i = wp.tid()
        out[i] = s[i].p * wp.cos(s[i].q)

    @wp.kernel
    def chosen(x: wp.indexedarray(dtype=wp.float64), out: A):
        i = wp.tid()
        out[i] = wp.sin(x[i]) * x[(i + 1) % 4]

    @wp.kernel
    def total(a: A, loss: A):
        i = wp.tid()
        wp.atomic_add(loss, 0, a[i] * wp.cos(a[i]))

    @wp.func
    def blended(a: wp.float64, b: wp.float64):
        return wp.sin(a) * b

    made = {k: v for k, v in locals().items() if k not in ("wp", "T", "A", "M", "V", "P")}
    return SimpleNamespace(**made)
