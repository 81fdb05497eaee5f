"""Transposes of users' gradients are code like any other, that saves nothing."""

from __future__ import annotations

import numpy as np

import engine as wp
from engine import ad
from engine.ir import interp
from engine.ir import nodes as n
from engine.ir.verify import verify

D = wp.float64
A = wp.array(dtype=D)


@wp.func
def element(z: A, at: int):
    return z[at] * z[at]


@wp.func_grad(element)
def adj_element(z: A, at: int, adj_ret: D):
    weight = D(1.0)
    k = int(0)  # noqa: RUF046
    while k < 3:
        weight = weight * z[at]
        wp.adjoint[z][at] += D(10.0) * weight * adj_ret
        k += 1


@wp.kernel
def run(x: A, y: A):
    i = wp.tid()
    y[i] = element(x, i)


VALUES = np.array([0.7, 1.3])
FIRST = 10 * (VALUES + VALUES**2 + VALUES**3)
SECOND = 10 * (1 + 2 * VALUES + 3 * VALUES**2)


def test_loops_run_again_and_save_nothing() -> None:
    out = ad.tangent(run.ir, frozenset("xy"))
    verify(out)
    (made,) = [f for f in n.callees(out) if f.name.endswith("_transpose")]
    assert not [s for s in n.walk(made.body) if isinstance(s, (n.Push, n.Pop, n.JournalRead))]
    assert [p.name for p in made.params] == ["z", "at", "tan_adj_z"]


def test_reverse_over_forward() -> None:
    ahead = ad.prepare(ad.tangent(run.ir, frozenset("xy")))
    out = ad.reverse(ahead, frozenset({"x", "tan_x", "tan_y"}), frozenset())
    verify(out.fn)
    given = {p.name: np.zeros(2) for p in out.fn.params}
    given["x"][:], given["tan_x"][:], given["adj_tan_y"][:] = VALUES, 1.0, 1.0
    interp.run(out.fn, [given[p.name] for p in out.fn.params], 2)
    np.testing.assert_allclose(given["adj_tan_x"], FIRST)
    np.testing.assert_allclose(given["adj_x"], SECOND)


def test_forward_over_forward() -> None:
    once = ad.tangent(run.ir, frozenset("xy"))
    twice = ad.tangent(once, frozenset({"x", "y", "tan_y"}))
    verify(twice)
    given = {p.name: np.zeros(2) for p in twice.params}
    given["x"][:], given["tan_x"][:] = VALUES, 1.0
    (direction,) = [k for k in given if "x" in k and k not in ("x", "tan_x")]
    given[direction][:] = 1.0
    interp.run(twice, [given[p.name] for p in twice.params], 2)
    np.testing.assert_allclose(given["tan_y"], FIRST)
    np.testing.assert_allclose(given[twice.params[-1].name], SECOND)
