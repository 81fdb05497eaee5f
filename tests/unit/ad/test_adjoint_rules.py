"""The adjoint of single statements: a statement and its adjoint are each other's transpose."""

from __future__ import annotations

import numpy as np
import pytest

from engine import ad
from engine.ad.adjoint_rules import AdjointRules
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.lang.types import FLOAT32
from tests.unit.ad.kernels import ONE, ZERO, A, B, built, ran

BOTH = frozenset({"a", "b"})
X, Y, P = n.Var("x", FLOAT32), n.Var("y", FLOAT32), n.Var("p", FLOAT32, mutable=True)


def rules(*active: n.Var) -> tuple[AdjointRules, Builder]:
    names = Names(["a", "b", "x", "y", "p"])
    return AdjointRules(names, {}, frozenset(active)), Builder(names)


def store(b: Builder) -> None:
    b.add(n.Store(B, (ZERO,), b.load(A, [ONE], [], FLOAT32)))


def add(b: Builder) -> None:
    b.add(n.Atomic(None, "add", B, (ZERO,), b.load(A, [ONE], [], FLOAT32)))


def sub(b: Builder) -> None:
    b.add(n.Atomic(None, "sub", B, (ZERO,), b.load(A, [ONE], [], FLOAT32)))


def scaled(b: Builder) -> None:
    x = b.load(A, [ONE], [], FLOAT32)
    b.add(n.Store(B, (ONE,), b.op("mul", const(3, FLOAT32), b.op("sub", x, x))))
    b.add(n.Store(A, (ZERO,), b.op("mul", const(3, FLOAT32), x)))


@pytest.mark.parametrize("write", [store, add, sub, scaled], ids=lambda f: f.__name__)
def test_adjoints_are_transposes(write) -> None:
    """These kernels are linear, so that their matrix is known from unit vectors."""
    fn = ad.prepare(built(write))
    adjoint = ad.reverse(fn, BOTH, frozenset()).fn
    zero, unit = np.zeros(2, np.float32), np.eye(4, dtype=np.float32)
    forward = [np.concatenate(ran(fn, 1, u[:2], u[2:], 0)[:2]) for u in unit]
    back = [np.concatenate(ran(adjoint, 1, zero, zero, 0, u[:2], u[2:])[3:]) for u in unit]
    np.testing.assert_array_equal(np.array(back), np.array(forward).T)


def test_an_assignment_moves_the_adjoint() -> None:
    r, b = rules(X, P)
    r.assigned(b, n.Set(P, X))
    sets = [s for s in b.stmts if isinstance(s, n.Set)]
    assert [s.dst for s in sets] == [r.adjoint(P), r.adjoint(X)]
    assert sets[0].value == const(0, FLOAT32)


def test_what_is_not_active_gets_no_code() -> None:
    r, b = rules(X)
    r.assigned(b, n.Set(P, X))
    r.statement(b, n.Let(Y, "sin", (X,)))
    r.add(b, Y, X)
    assert b.stmts == [] and r.vars == {}


def test_every_variable_has_one_adjoint() -> None:
    r, _ = rules(X, Y)
    assert r.adjoint(X) == r.adjoint(X) != r.adjoint(Y) and r.adjoint(X).mutable
