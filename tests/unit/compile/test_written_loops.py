"""Loops through local values are unrolled, or stay loops where that is faster."""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.codegen.facts import facts_of
from engine.codegen.outline import is_large
from engine.codegen.together import together
from engine.compile.cpu.loops import written
from engine.compile.pipeline import Variants
from engine.ir import nodes as n
from tests.unit.ad.kernels import statements

pytestmark = pytest.mark.host("loops of the host's compiler")
V8 = wp.types.vector(8, float)
V24 = wp.types.vector(24, float)
V16 = wp.types.vector(16, float)
M88 = wp.types.matrix((8, 8), float)


@wp.kernel
def layers(x: wp.array(dtype=V16), w: wp.array3d(dtype=float), out: wp.array2d(dtype=float)):  # type: ignore[valid-type]
    """Two layers, of weights that all threads share."""
    t = wp.tid()
    v = x[t]
    h = V16()
    g = V16()
    for i in range(16):
        s = float(0.0)
        for j in range(16):
            s += w[0, i, j] * v[j]
        h[i] = wp.tanh(s)
    for i in range(16):
        s = float(0.0)
        for j in range(16):
            s += w[1, i, j] * h[j]
        g[i] = wp.tanh(s)
    for i in range(16):
        out[t, i] = g[i]


@wp.kernel
def own(x: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    """The largest step of 24 numbers, which each thread has for itself."""
    t = wp.tid()
    v = V24()
    for i in range(24):
        v[i] = x[t, i]
    best = float(0.0)
    for i in range(23):
        best = wp.max(best, v[i + 1] - v[i])
    out[t] = best


@wp.func
def layer(w: M88, x: V8):  # type: ignore[valid-type]
    y = V8()
    for i in range(8):
        s = float(0.0)
        for j in range(8):
            s += w[i, j] * x[j]
        y[i] = wp.tanh(s)
    return y


@wp.kernel
def repeated(
    x: wp.array(dtype=V8),  # type: ignore[valid-type]
    w: wp.array(dtype=M88),  # type: ignore[valid-type]
    many: int,
    out: wp.array(dtype=V8),  # type: ignore[valid-type]
):
    h = x[wp.tid()]
    for k in range(many):
        h = layer(w[k], h) + h
    out[wp.tid()] = h


@wp.func
def first_above(v: V8, least: float):  # type: ignore[valid-type]
    for i in range(8):
        if v[i] > least:
            return v[i]
    return float(-1.0)


@wp.kernel
def early(x: wp.array(dtype=V8), out: wp.array(dtype=float)):  # type: ignore[valid-type]
    v = x[wp.tid()]
    for i in range(7):
        v[i + 1] += v[i]
    out[wp.tid()] = first_above(v, 1.0) * 2.0


def factor(rows: int) -> Any:
    square = wp.types.matrix((rows, rows), float)

    @wp.kernel(module="unique")
    def kernel(a: wp.array(dtype=square), out: wp.array(dtype=square)):  # type: ignore[valid-type]
        m = a[wp.tid()]
        for j in range(wp.static(rows)):
            for k in range(j):
                m[j, j] -= m[j, k] * m[j, k]
            m[j, j] = wp.sqrt(m[j, j])
            for i in range(j + 1, wp.static(rows)):
                for k in range(j):
                    m[i, j] -= m[i, k] * m[j, k]
                m[i, j] = m[i, j] / m[j, j]
        out[wp.tid()] = m

    return kernel


def loops(fn: n.Function) -> int:
    return len(statements(fn, n.For, n.While))


def test_sums_of_shared_elements_stay_in_loops() -> None:
    v = Variants(layers.ir)
    assert v.reversible is v.prepared and loops(ad.unroll(v.prepared)) == 0
    assert written(layers.ir) is layers.ir and is_large(ad.write_out(layers.ir))


def test_elements_of_the_thread_itself_are_no_such_sums() -> None:
    v = Variants(own.ir)
    assert loops(v.reversible) == 0
    adjoint = v.adjoint_ir(frozenset(("x", "out")), frozenset()).fn
    assert len(statements(adjoint, n.Atomic)) == 24


@pytest.mark.parametrize("rows", [4, 12])
def test_what_saves_the_whole_for_each_turn_is_written_out(rows: int) -> None:
    """Long as it may be: the loops would keep a matrix for each of some hundred turns."""
    v = Variants(factor(rows).ir)
    assert loops(v.reversible) == 0 < loops(v.prepared)


def test_a_function_that_is_written_out_becomes_a_part_and_threads_run_together() -> None:
    out = written(repeated.ir)
    assert loops(out) == 1 and not statements(out, n.Call)
    assert together(out, facts_of(out)) is not None


def test_a_function_that_returns_early_stays_one() -> None:
    out = written(early.ir)
    assert len(statements(out, n.Call)) == 1 and loops(out) == 0
    assert not any(loops(f) for f in n.callees(out))


def test_they_compute_the_same() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(100, 8)), rng.normal(size=(3, 8, 8)) * 0.3
    a = wp.array(x, dtype=V8, requires_grad=True)
    b = wp.array(w, dtype=M88, requires_grad=True)
    out = wp.zeros(100, dtype=V8, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(repeated, dim=100, inputs=[a, b, 3], outputs=[out])
    seed = rng.normal(size=(100, 8))
    tape.backward(grads={out: wp.array(seed, dtype=V8)})
    hs, ys = [x], []
    for m in w:
        ys.append(np.tanh(hs[-1] @ m.T))
        hs.append(ys[-1] + hs[-1])
    np.testing.assert_allclose(out.numpy(), hs[-1], 1e-4, 1e-5)
    back, weights = seed, []
    for m, h, y in zip(w[::-1], hs[-2::-1], ys[::-1], strict=True):
        inner = back * (1 - y * y)
        weights.append(np.einsum("ti,tj->ij", inner, h))
        back = back + inner @ m
    np.testing.assert_allclose(a.grad.numpy(), back, 2e-4, 2e-4)
    np.testing.assert_allclose(b.grad.numpy(), np.array(weights[::-1]), 2e-4, 2e-4)


def test_early_ends_compute_the_same() -> None:
    x = np.zeros((3, 8), np.float32)
    x[0, 2], x[1, 0], x[2, 7] = 1.5, 0.75, 0.5
    x[1, 4] = 0.5
    out = wp.zeros(3, dtype=float)
    wp.launch(early, dim=3, inputs=[wp.array(x, dtype=V8)], outputs=[out])
    assert out.numpy().tolist() == [3.0, 2.5, -2.0]
