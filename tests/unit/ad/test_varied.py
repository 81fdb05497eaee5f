"""Variables that can have a tangent, also through calls."""

from __future__ import annotations

import engine as wp
from engine.ad.varied import Activity, by_values, carries, moving_params
from engine.ir import nodes as n
from tests.unit.ad.kernels import named, statements


@wp.func
def both(a: float, b: float):
    return a * 2.0, b + 1.0


@wp.func
def own(v: float):
    return v * v


@wp.func_grad(own)
def adj_own(v: float, adj_ret: float):
    wp.adjoint[v] += 2.0 * v * adj_ret


@wp.kernel
def kernel(x: wp.array(dtype=float), z: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    first, second = both(x[i], z[i])
    moves = wp.sin(first)
    stays = wp.sin(second)
    cut = wp.floor(x[i])
    late = wp.cos(own(moves))
    y[i] = moves + stays + cut + late


def moving(*arrays: str) -> set[str]:
    found = Activity().of(kernel.ir, frozenset(arrays))
    return {v.name for v in found.vars} & {"moves", "stays", "cut", "late"}


def test_what_depends_on_moving_arrays() -> None:
    assert moving("x") == {"moves", "late"}
    assert moving("z") == {"stays"}
    assert moving("x", "z") == {"moves", "late", "stays"}
    assert moving() == moving("y") == set()


def test_calls() -> None:
    plain, custom = statements(kernel.ir, n.Call)
    assert not by_values(plain, frozenset()) and by_values(custom, frozenset())
    known = Activity()
    moves = known.of(kernel.ir, frozenset({"x"})).vars
    assert moving_params(plain, moves, frozenset({"x"})) == {"a"}
    assert known.called(plain, moves, frozenset({"x"})) == (True, False)
    assert known.called(custom, moves, frozenset({"x"})) == (True,)


def test_what_can_have_a_tangent() -> None:
    fn = kernel.ir
    assert carries(named(fn, "moves"))
    assert not carries(named(fn, "x")) and not carries(named(fn, "i"))
