"""Functions that stay calls, and their adjoints. Random ones: tests/property."""

from __future__ import annotations

import numpy as np
import pytest

from engine import ad
from engine.ad import kept
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.lang.types import FLOAT32, INT32
from tests.unit.ad.kernels import ZERO, A, B, built, operations, ran, statements

X, Y = n.Var("x", FLOAT32), n.Var("y", FLOAT32)
TWO = const(2, FLOAT32)
BOTH = frozenset({"a", "b"})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LARGE", 0)
    monkeypatch.setattr(kept, "SAVED", 4)


def function(*params: n.Var, op: str = "tid") -> n.Function:
    """Of two results: sin(x) times two, and the square root of the last parameter."""
    b = Builder(Names(["x", "y"]))
    first = b.op("mul", b.op("sin", X), TWO)
    if op == "while":
        b.add(n.While((), n.Const(False, b.op("lt", X, TWO).type), ()))
    elif op == "load":
        first = b.op("add", first, b.load(A, [ZERO], [], FLOAT32))
    elif op == "thread":
        b.op("tid", ZERO, const(1, INT32))
    b.add(n.Return((first, b.op("sqrt", params[-1]))))
    given = (*params, A) if op == "load" else params
    return n.Function("f", given, (FLOAT32, FLOAT32), b.block())


def kernel(f: n.Function, calls: int = 3, both: bool = False) -> n.Function:
    """b[i] += f(a[i], a[i])[0] for each call; the other result is stored where asked for."""

    def write(b: Builder) -> None:
        i = b.op("tid", ZERO, const(1, INT32))
        x = b.load(A, [i], [], FLOAT32)
        for _ in range(calls):
            dsts = (b.temp(FLOAT32), b.temp(FLOAT32))
            args = [A if p == A else x for p in f.params]
            b.add(n.Call(dsts, f, tuple(args)))
            total = b.op("add", *dsts) if both else dsts[0]
            b.add(n.Atomic(None, "add", B, (i,), total))

    return built(write)


def calls_of(fn: n.Function) -> list[n.Call]:
    return statements(fn, n.Call)


def test_what_is_called_often_stays_a_call() -> None:
    prepared = ad.prepare(ad.keep(kernel(function(X, Y))))
    assert [s.func.name for s in calls_of(prepared)] == ["f"] * 3
    adjoint = ad.reverse(prepared, BOTH, frozenset()).fn
    names = {s.func.name: s.func for s in calls_of(adjoint)}
    assert list(names) == ["f_adjoint"]  # nothing needs what the function itself gives
    assert len({id(s.func) for s in calls_of(adjoint)}) == 1
    # What does not matter has no code, and no place among parameters and results.
    f = names["f_adjoint"]
    assert [p.name for p in f.params] == ["x", "y", "ct"] and f.results == (FLOAT32,)
    assert "sqrt" not in operations(f) and "cos" in operations(f)


def test_one_copy_is_no_reason_and_neither_is_a_small_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    once = kernel(function(X, Y), calls=1)
    assert ad.keep(once) is once
    monkeypatch.undo()
    often = kernel(function(X, Y))
    assert ad.keep(often) is often


@pytest.mark.parametrize("op", ["while", "load", "thread"])
def test_loops_arrays_and_threads_are_expanded(op: str) -> None:
    fn = kernel(function(X, Y, op=op))
    assert ad.keep(fn) is fn


@pytest.mark.parametrize("both", [False, True])
def test_an_infinite_slope_counts_only_where_it_does_when_expanded(both: bool) -> None:
    """The slope of the root at 0 is infinite: of an unused result it must not be seen."""
    fn = kernel(function(X, Y), both=both)
    a, b = np.zeros(2, np.float32), np.zeros(2, np.float32)
    found = []
    for marked in (fn, ad.keep(fn)):
        adjoint = ad.reverse(ad.prepare(marked), BOTH, frozenset()).fn
        grads = [np.zeros(2, np.float32), np.ones(2, np.float32)]
        found.append(ran(adjoint, 2, a, b, 3, *grads)[3])
    np.testing.assert_array_equal(found[0], found[1])
    assert np.isinf(found[1]).all() if both else (found[1] == 6.0).all()


def test_kept_functions_call_kept_functions() -> None:
    inner = function(X, Y)
    b = Builder(Names(["x", "y"]))
    one, two = (b.temp(FLOAT32) for _ in range(2))
    b.add(n.Call((one, two), inner, (X, Y)))
    three, four = (b.temp(FLOAT32) for _ in range(2))
    b.add(n.Call((three, four), inner, (one, Y)))
    b.add(n.Return((three, b.op("add", two, four))))
    fn = kernel(n.Function("g", (X, Y), (FLOAT32, FLOAT32), b.block()), both=True)
    adjoint = ad.reverse(ad.prepare(ad.keep(fn)), BOTH, frozenset()).fn
    assert {f.name for f in n.callees(adjoint)} == {"f", "f_adjoint", "g_adjoint"}
    plain = ad.reverse(ad.prepare(fn), BOTH, frozenset()).fn
    a = np.array([0.3, 0.9], np.float32)
    some = [
        ran(k, 2, a, a, 3, np.zeros(2, np.float32), np.ones(2, np.float32))[3]
        for k in (adjoint, plain)
    ]
    np.testing.assert_allclose(some[0], some[1], rtol=1e-6)
