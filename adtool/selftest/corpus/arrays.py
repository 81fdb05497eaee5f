"""Reductions, stencils, gathers and scatters, loops, branches, and chaotic roll-outs."""

from __future__ import annotations

from typing import Any

import numpy as np

import engine as wp
from adtool.selftest.case import Arr, Case, normal, spread

F: Any = wp.array(dtype=float)
N: Any = wp.array(dtype=int)
G: Any = wp.array(dtype=float, ndim=2)


@wp.kernel
def sum_of_squares(x: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i] * x[i])


@wp.kernel
def sum_of_waves(x: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, wp.sin(3.0 * x[i]) * 1.0e-3)


@wp.kernel
def long_loop(x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(x.shape[0]):
        s += x[k] * wp.cos(float(k) * 0.1 + float(i))
    y[i] = s


@wp.kernel
def cancelling_sum(x: F, y: F):
    i = wp.tid()
    sign = 1.0 - 2.0 * float(i % 2)
    wp.atomic_add(y, 0, sign * x[i] * x[i])


@wp.kernel
def log_sum_exp(x: F, y: F):
    top = float(-1.0e30)
    for k in range(x.shape[0]):
        top = wp.max(top, x[k])
    s = float(0.0)
    for k in range(x.shape[0]):
        s += wp.exp(x[k] - top)
    y[0] = top + wp.log(s)


@wp.kernel
def softmax(x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(x.shape[0]):
        s += wp.exp(x[k])
    y[i] = wp.exp(x[i]) / s


@wp.kernel
def dense(w: G, x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(x.shape[0]):
        s += w[i, k] * x[k]
    y[i] = wp.tanh(s)


@wp.kernel
def pairwise(x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(x.shape[0]):
        d = x[i] - x[k]
        s += d / (d * d + 0.1)
    y[i] = s


@wp.kernel
def histogram(x: F, y: F):
    i = wp.tid()
    s = x[i] * 8.0
    k = int(wp.floor(s))
    f = s - float(k)
    wp.atomic_add(y, k, (1.0 - f) * x[i])
    wp.atomic_add(y, k + 1, f * x[i])


@wp.kernel
def heat(x: F, y: F):
    i = wp.tid() + 1
    y[i] = x[i] + 0.2 * (x[i - 1] - 2.0 * x[i] + x[i + 1]) * x[i]


@wp.kernel
def advect(u: F, c: F, y: F):
    i = wp.tid() + 1
    if u[i] > 0.0:
        y[i] = c[i] - u[i] * (c[i] - c[i - 1])
    else:
        y[i] = c[i] - u[i] * (c[i + 1] - c[i])


@wp.kernel
def gather(x: F, index: N, y: F):
    i = wp.tid()
    y[i] = x[index[i]] * x[i]


@wp.kernel
def scatter(x: F, index: N, y: F):
    i = wp.tid()
    wp.atomic_add(y, index[i], x[i] * x[i] * x[i])


@wp.kernel
def springs(x: F, a: N, b: N, rest: F, y: F):
    e = wp.tid()
    d = x[b[e]] - x[a[e]]
    f = (wp.abs(d) - rest[e]) * wp.sign(d)
    wp.atomic_add(y, a[e], f)
    wp.atomic_sub(y, b[e], f)


@wp.kernel
def in_place(x: F, w: F):
    i = wp.tid()
    x[i] = wp.sin(x[i]) * w[i] + w[i] * w[i]


@wp.kernel
def matrix_product(a: G, b: G, y: G):
    i, j = wp.tid()
    s = float(0.0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    y[i, j] = s


@wp.kernel
def branches(x: F, y: F):
    i = wp.tid()
    v = x[i]
    if v > 1.0:
        v = v * v
    elif v > 0.0:
        v = wp.sqrt(v)
    else:
        v = -0.5 * v * v * v
    y[i] = v


@wp.kernel
def newton_root(x: F, y: F):
    i = wp.tid()
    r = float(1.0)
    while wp.abs(r * r - x[i]) > 1.0e-6 * x[i]:
        r = 0.5 * (r + x[i] / r)
    y[i] = r


@wp.kernel
def early_exit(x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(x.shape[0]):
        s += x[k] * x[i]
        if s > 2.0:
            break
    y[i] = s * s


@wp.kernel
def continued_fraction(x: F, y: F):
    i = wp.tid()
    v = float(1.0)
    for _ in range(12):
        v = 1.0 + x[i] / (2.0 + v)
    y[i] = v


@wp.kernel
def horner(c: F, x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(c.shape[0]):
        s = s * x[i] + c[k]
    y[i] = s


@wp.kernel
def compound(x: F, y: F):
    i = wp.tid()
    p = float(1.0)
    for _ in range(40):
        p *= 1.0 + x[i] * 0.1
    y[i] = p


@wp.kernel
def logistic_map(x: F, y: F):
    i = wp.tid()
    v = x[i]
    for _ in range(20):
        v = 3.9 * v * (1.0 - v)
    y[i] = v


@wp.kernel
def henon_map(x: F, y: F):
    i = wp.tid()
    a = x[i]
    b = float(0.1)
    for _ in range(15):
        t = 1.0 - 1.4 * a * a + b
        b = 0.3 * a
        a = t
    y[i] = a


@wp.kernel
def double_pendulum(x: F, v: F, y: F):
    i = wp.tid()
    a = x[2 * i]
    b = x[2 * i + 1]
    p = v[2 * i]
    q = v[2 * i + 1]
    for _ in range(60):
        c = wp.cos(a - b)
        s = wp.sin(a - b)
        den = 2.0 - c * c
        f = (-9.8 * (2.0 * wp.sin(a) - c * wp.sin(b)) - s * (q * q + c * p * p)) / den
        g = (2.0 * 9.8 * (c * wp.sin(a) - wp.sin(b)) + s * (2.0 * p * p + c * q * q)) / den
        p = p + 0.02 * f
        q = q + 0.02 * g
        a = a + 0.02 * p
        b = b + 0.02 * q
    y[2 * i] = a
    y[2 * i + 1] = b


@wp.kernel
def lorenz(x: F, y: F):
    i = wp.tid()
    a = x[3 * i]
    b = x[3 * i + 1]
    c = x[3 * i + 2]
    for _ in range(200):
        da = 10.0 * (b - a)
        db = a * (28.0 - c) - b
        dc = a * b - 2.667 * c
        a += 0.01 * da
        b += 0.01 * db
        c += 0.01 * dc
    y[3 * i] = a
    y[3 * i + 1] = b
    y[3 * i + 2] = c


MANY = 100_000


def _zeros(*shape: int) -> Arr:
    return Arr(np.zeros(shape))


def _case(kernel: Any, kind: str, dim: Any, *arrays: Any) -> Case:
    return Case(kernel, kind, dim, arrays[:-1], arrays[-1:])


_X, _W = Arr(spread(-1.0, 1.0)), Arr(spread(0.5, 1.5, seed=1))
_INDEX = Arr(np.random.default_rng(3).integers(0, 12, 12), "int")
_ENDS = Arr(np.arange(11), "int"), Arr(np.arange(1, 12), "int")

CASES: list[Case] = [
    _case(sum_of_squares, "reduction", MANY, Arr(spread(-1, 1, MANY)), _zeros(1)),
    _case(sum_of_waves, "reduction", MANY, Arr(spread(-3, 3, MANY)), _zeros(1)),
    _case(cancelling_sum, "reduction", MANY, Arr(spread(0.9, 1.1, MANY)), _zeros(1)),
    _case(long_loop, "reduction", 3, Arr(spread(-1, 1, MANY)), _zeros(3)),
    _case(log_sum_exp, "reduction", 1, Arr(spread(-5, 5, 40)), _zeros(1)),
    _case(softmax, "reduction", 12, _X, _zeros(12)),
    _case(dense, "reduction", 6, Arr(normal(6, 12, scale=0.4)), _X, _zeros(6)),
    _case(pairwise, "reduction", 12, _X, _zeros(12)),
    _case(histogram, "memory", 12, Arr(spread(0.01, 0.99)), _zeros(10)),
    _case(heat, "memory", 10, _X, _zeros(12)),
    _case(advect, "memory", 10, _X, _W, _zeros(12)),
    _case(gather, "memory", 12, _X, _INDEX, _zeros(12)),
    _case(scatter, "memory", 12, _X, _INDEX, _zeros(12)),
    _case(springs, "memory", 11, _X, *_ENDS, Arr(spread(0.1, 0.3, 11)), _zeros(12)),
    Case(in_place, "memory", 12, (_X, _W), ()),
    _case(matrix_product, "memory", (4, 5), Arr(normal(4, 3)), Arr(normal(3, 5, seed=2)),
          _zeros(4, 5)),
    _case(branches, "control flow", 12, Arr(spread(-2.0, 2.0)), _zeros(12)),
    _case(newton_root, "control flow", 12, Arr(spread(0.5, 9.0)), _zeros(12)),
    _case(early_exit, "control flow", 12, Arr(spread(0.3, 1.2)), _zeros(12)),
    _case(continued_fraction, "control flow", 12, Arr(spread(0.2, 3.0)), _zeros(12)),
    _case(horner, "control flow", 12, Arr(normal(8)), _X, _zeros(12)),
    _case(compound, "control flow", 12, _X, _zeros(12)),
    _case(logistic_map, "chaotic", 12, Arr(spread(0.1, 0.9)), _zeros(12)),
    _case(henon_map, "chaotic", 12, Arr(spread(-0.5, 0.5)), _zeros(12)),
    _case(double_pendulum, "chaotic", 4, Arr(spread(1.0, 2.5, 8)), Arr(spread(-1, 1, 8)),
          _zeros(8)),
    _case(lorenz, "chaotic", 4, Arr(spread(5.0, 15.0)), _zeros(12)),
]  # fmt: skip
