"""The tangent pass: parameters, no code for constants, calls that stay calls."""

from __future__ import annotations

import numpy as np
import pytest

from engine import ad
from engine.ir import interp
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.verify import verify
from engine.lang.types import FLOAT64, INT32, ArrayType, VectorType
from tests.property.programs import ARRAYS, program
from tests.unit.ad.test_reverse import A, B, kernel, statements, total

F = FLOAT64
X = n.Var("x", ArrayType(F, 1))
Y = n.Var("y", ArrayType(F, 1))
ZERO = const(0, INT32)


def tangent(build, wrt=("a", "b")) -> n.Function:
    out = ad.tangent(kernel(build), frozenset(wrt))
    verify(out)
    return out


def test_tangents_come_last_in_parameter_order() -> None:
    out = tangent(total)
    assert [p.name for p in out.params] == ["a", "b", "m", "tan_a", "tan_b"]
    assert [p.type for p in out.params[3:]] == [A.type, B.type]
    assert not out.adjoints and out.is_kernel
    assert [p.name for p in tangent(total, ["b"]).params] == ["a", "b", "m", "tan_b"]


def test_names_that_are_taken() -> None:
    tan_x = n.Var("tan_x", INT32)
    b = Builder(Names(["x", "tan_x"]))
    b.add(n.Store(X, (tan_x,), b.load(X, [ZERO], [], F)))
    out = ad.tangent(n.Function("k", (X, tan_x), (), b.block(), is_kernel=True), frozenset("x"))
    verify(out)
    assert [p.name for p in out.params] == ["x", "tan_x", "tan_x_1"]


def test_nothing_is_computed_for_what_does_not_move() -> None:
    """A store of a value from elsewhere stores a zero tangent, and that is all."""

    def build(b: Builder) -> None:
        value = b.op("sin", b.load(A, [ZERO], [], A.type.element))
        b.add(n.Store(B, (ZERO,), b.op("mul", value, value)))

    out = tangent(build, ["b"])
    assert len(statements(out, n.Let)) == 2 and len(statements(out, n.Load)) == 1
    stores = statements(out, n.Store)
    assert [s.array.name for s in stores] == ["b", "tan_b"]
    assert stores[1].value == const(0, A.type.element)


def test_unused_partials_are_left_out() -> None:
    """pow(x, 2) has a partial by its exponent, which does not move."""

    def build(b: Builder) -> None:
        x = b.load(A, [ZERO], [], A.type.element)
        b.add(n.Store(B, (ZERO,), b.op("pow", x, const(2.0, A.type.element))))

    assert "log" not in {s.op for s in statements(tangent(build), n.Let)}


def _square() -> n.Function:
    x = n.Var("x", F)
    b = Builder(Names(["x"]))
    b.add(n.Return((b.op("mul", x, x), const(3, INT32))))
    return n.Function("square", (x,), (F, INT32), b.block())


def _caller(func: n.Function, moving: bool) -> n.Function:
    b = Builder(Names(["x", "y"]))
    arg = b.load(X, [ZERO], [], F) if moving else const(2.0, F)
    dsts = (b.temp(F), b.temp(INT32))
    b.add(n.Call(dsts, func, (arg,)))
    b.add(n.Store(Y, (ZERO,), dsts[0]))
    return n.Function("k", (X, Y), (), b.block(), is_kernel=True)


def test_a_function_gets_tangent_parameters_and_results() -> None:
    out = ad.tangent(_caller(_square(), moving=True), frozenset("xy"))
    verify(out)
    (func,) = n.callees(out)
    assert [p.name for p in func.params] == ["x", "tan_x"]
    assert func.results == (F, INT32, F)


def test_a_function_of_what_does_not_move_is_called_as_it_is() -> None:
    square = _square()
    out = ad.tangent(_caller(square, moving=False), frozenset("xy"))
    assert n.callees(out) == [square]


def test_lifting_and_differentiating_commute() -> None:
    def text(fn: n.Function) -> str:
        parts = [str(f) for f in (*n.callees(fn), fn)]
        return "\n".join(parts).replace("_lifted", "").replace("_tangent", "")

    fn = kernel(total)
    wrt = frozenset({"a", "b"})
    assert text(ad.lift(ad.tangent(fn, wrt))) == text(ad.tangent(ad.lift(fn), wrt))


def test_a_tangent_has_a_tangent() -> None:
    """d/dt of d/dt sin(x t) at direction 1, twice: -x^2 sin(x) for x_t = x."""
    b = Builder(Names(["x", "y"]))
    b.add(n.Store(Y, (ZERO,), b.op("sin", b.load(X, [ZERO], [], F))))
    fn = n.Function("k", (X, Y), (), b.block(), is_kernel=True)
    twice = ad.tangent(ad.tangent(fn, frozenset("xy")), frozenset({"x", "y", "tan_y"}))
    verify(twice)
    values = {p.name: np.zeros(1) for p in twice.params}
    values["x"][0], values["tan_x"][0] = 0.7, 1.0
    (direction,) = [p for p in values if p not in ("x", "y", "tan_x", "tan_y") and "x" in p]
    values[direction][0] = 1.0
    interp.run(twice, [values[p.name] for p in twice.params], 1)
    second = values[twice.params[-1].name][0]
    assert second == pytest.approx(-np.sin(0.7))


def test_a_tangent_has_an_adjoint() -> None:
    """Reverse over forward: the gradient of a directional derivative is a row of the Hessian."""
    v2 = VectorType(F, 2)
    b = Builder(Names(["x", "y"]))
    x = b.op("construct", *(b.load(X, [const(i, INT32)], [], F) for i in (0, 1)), result=v2)
    b.add(n.Store(Y, (ZERO,), b.op("mul", b.op("dot", x, x), b.op("extract", x, ZERO))))
    fn = n.Function("k", (X, Y), (), b.block(), is_kernel=True)
    ahead = ad.prepare(ad.tangent(fn, frozenset("xy")))
    out = ad.reverse(ahead, frozenset({"x", "tan_y"}), frozenset())
    verify(out.fn)
    values = {p.name: np.zeros(2) for p in out.fn.params}
    values["x"][:] = 2.0, 3.0
    values["tan_x"][:] = 1.0, 0.0
    values["adj_tan_y"][0] = 1.0
    interp.run(out.fn, [values[p.name] for p in out.fn.params], 1)
    # f = (a^2 + b^2) a: the first row of its Hessian is (6 a, 2 b).
    np.testing.assert_allclose(values["adj_x"], [12.0, 6.0])


def test_adjoint_code_is_refused() -> None:
    fn = ad.reverse(ad.prepare(program(3)), frozenset(ARRAYS), frozenset(ARRAYS)).fn
    assert any(isinstance(s, (n.Push, n.JournalRead)) for s in n.walk(fn.body))
    with pytest.raises(TypeError, match="only code as lowered"):
        ad.tangent(fn, frozenset(ARRAYS))


def test_names_of_variables_that_are_never_set() -> None:
    """The caller reads a variable that it never sets, of a name that the function uses too."""
    q, r = n.Var("q", F, mutable=True), n.Var("r", F, mutable=True)
    inner = Builder(Names(["q"]))
    inner.set(q, const(5.0, F))
    inner.add(n.Return((q,)))
    func = n.Function("f", (), (F,), inner.block())
    b = Builder(Names(["y", "q", "r"]))
    got = b.temp(F)
    b.add(n.Call((got,), func, ()))
    b.add(n.Store(Y, (ZERO,), b.op("add", q, b.op("add", r, got))))
    fn = n.Function("k", (Y,), (), b.block(), is_kernel=True)
    for form in (fn, ad.prepare(fn)):
        y = np.zeros(1)
        interp.run(form, [y], 1)
        assert y == [5.0]
