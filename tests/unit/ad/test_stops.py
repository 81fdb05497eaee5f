"""Native functions without an adjoint, where a gradient gets to them."""

from __future__ import annotations

import engine as wp
from engine import ad
from tests.unit.ad.kernels import prepared


@wp.func_native("return v * v;")
def open_end(v: float) -> float: ...


@wp.func_native("return v * v;", adj_snippet="adj_v += 2.0f * v * adj_ret;")
def with_adjoint(v: float) -> float: ...


@wp.kernel
def kernel(x: wp.array(dtype=float), z: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = open_end(x[i]) + with_adjoint(z[i])


def stopped(*wrt: str) -> list[str]:
    return [f.name for f in ad.stops(prepared(kernel), frozenset(wrt))]


def test_only_where_a_gradient_would_flow() -> None:
    (name,) = stopped("x", "y", "z")
    assert "open_end" in name
    assert stopped("x", "y") == [name]
    assert stopped("z", "y") == stopped("x") == stopped("y") == stopped() == []
