"""Handwritten gradients that the tangent of a kernel calls with unit cotangents."""

from __future__ import annotations

import engine as wp
from engine import ad

A = wp.array(dtype=float)


@wp.func
def clipped(x: float):
    return x * x


@wp.func_grad(clipped)
def adj_clipped(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * wp.clamp(adj_ret, -1.0, 1.0)


@wp.func
def below(x: float, n: int):
    return clipped(x) + float(n)


@wp.func
def gathered(x: A, i: int, s: float):
    return x[i] * s


@wp.func_grad(gathered)
def adj_gathered(x: A, i: int, s: float, adj_ret: float):
    """Linear in what numbers get, not in what the array gets."""
    wp.adjoint[s] += x[i] * adj_ret
    if adj_ret > 0.0:
        wp.adjoint[x][i] += s * adj_ret


@wp.kernel
def kernel(x: A, z: A, t: A, y: A, n: wp.array(dtype=int)):
    i = wp.tid()
    y[i] = below(x[i], n[i]) + gathered(z, i, t[i])
    n[i] = int(clipped(t[i]))


def asked(*wrt: str) -> list[tuple[str, str, str]]:
    found = ad.nonlinear_gradients(kernel.ir, frozenset(wrt))
    return [(g.function, g.gradient, g.kink.what) for g in found]


def test_only_where_a_number_moves() -> None:
    (one,) = asked("x", "y")
    assert "clipped" in one[0] and "adj_clipped" in one[1] and "clamp" in one[2]
    assert asked("y") == asked("z") == []
    assert asked("x") == asked("x", "y", "z") == [one]  # each once


def test_gradients_of_arrays_that_do_not_move_do_not_count() -> None:
    """What the gradient does to that of `z` is lost, and only how `s` moves is asked for."""
    assert "gathered" not in str(asked("t", "y"))


@wp.func
def counted(x: float, n: wp.array(dtype=int), seen: A):
    return x * x


@wp.func_grad(counted)
def adj_counted(x: float, n: wp.array(dtype=int), seen: A, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * adj_ret
    n[0] = n[0] + 1
    seen[0] = 2.0


@wp.func
def kept(x: float, seen: A):
    return x * x


@wp.func_grad(kept)
def adj_kept(x: float, seen: A, adj_ret: float):
    seen[0] = adj_ret
    wp.adjoint[x] += 2.0 * x * seen[0]


@wp.kernel
def leaving(x: A, z: A, n: wp.array(dtype=int), seen: A, y: A):
    i = wp.tid()
    y[i] = counted(x[i], n, seen) + kept(z[i], seen)


def test_what_a_gradient_leaves_in_memory() -> None:
    """Numbers that no cotangent is in change nothing; a cotangent may come back from there."""
    assert ad.nonlinear_gradients(leaving.ir, frozenset("xy")) == ()
    (g,) = ad.nonlinear_gradients(leaving.ir, frozenset("zy"))
    assert "writes to `seen`" in g.kink.what
