"""Components of values that were just put together."""

from __future__ import annotations

from engine.ad.components import component
from engine.ir import nodes as n
from engine.ir.builder import const
from engine.lang.types import FLOAT32, INT32, MatrixType, VectorType

V3, M22 = VectorType(FLOAT32, 3), MatrixType(FLOAT32, 2, 2)
X, Y, Z, W = (n.Var(name, FLOAT32) for name in "xyzw")
I0, I1, I2 = (const(k, INT32) for k in range(3))


def let(name: str, t, op: str, *args) -> tuple[n.Var, n.Let]:
    v = n.Var(name, t)
    return v, n.Let(v, op, args)


def test_of_a_construction() -> None:
    v, made = let("v", V3, "construct", X, Y, Z)
    m, other = let("m", M22, "construct", X, Y, Z, W)
    known = {v: made, m: other}
    assert [component((v, k), known) for k in (I0, I1, I2)] == [X, Y, Z]
    assert component((m, I1, I0), known) == Z
    assert component((v, n.Var("i", INT32)), known) is None


def test_of_a_fill_and_of_replaced_components() -> None:
    f, filled = let("f", V3, "fill", X)
    g, inserted = let("g", V3, "insert", f, I1, Y)
    known = {f: filled, g: inserted}
    assert component((g, I1), known) == Y and component((g, I2), known) == X
    h, anywhere = let("h", V3, "insert", g, n.Var("i", INT32), Z)
    assert component((h, I1), known | {h: anywhere}) is None


def test_of_constants() -> None:
    c = n.Const((1.0, 2.0, 3.0), V3)
    assert component((c, I2), {}) == const(3.0, FLOAT32)
    assert component((c, n.Var("i", INT32)), {}) is None
    same = n.Const((2.0, 2.0, 2.0), V3)
    assert component((same, n.Var("i", INT32)), {}) == const(2.0, FLOAT32)
    assert component((c, const(3, INT32)), {}) is None


def test_what_may_have_changed_since_is_not_known() -> None:
    p = n.Var("p", FLOAT32, mutable=True)
    v, made = let("v", V3, "construct", p, Y, Z)
    assert component((v, I0), {v: made}) is None and component((v, I1), {v: made}) == Y
    assert component((n.Var("unknown", V3), I0), {}) is None
