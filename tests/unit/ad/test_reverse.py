"""The reverse pass emits effects only on gradients, and saves no more than needed."""

from __future__ import annotations

import pytest

import engine.builtins  # noqa: F401 (fills the operation table)
from engine import ad
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.lang.types import FLOAT32, INT32, ArrayType

A = n.Var("a", ArrayType(FLOAT32, 1))
B = n.Var("b", ArrayType(FLOAT32, 1))
COUNT = n.Var("m", INT32)
ZERO = const(0, INT32)
BOTH = frozenset({"a", "b"})


def kernel(build) -> n.Function:
    b = Builder(Names(["a", "b", "m"]))
    build(b)
    return n.Function("k", (A, B, COUNT), (), b.block(), is_kernel=True)


def adjoint(build, journaled=frozenset()) -> ad.Adjoint:
    return ad.reverse(ad.prepare(kernel(build)), BOTH, journaled)


def statements(fn: n.Function, kind) -> list:
    return [s for s in n.walk(fn.body) if isinstance(s, kind)]


def product(b: Builder) -> None:
    """prod over a, stored to b[0]."""
    p = b.variable(FLOAT32, "p")
    b.set(p, const(1, FLOAT32))
    body = b.child()
    i = body.temp(INT32, "i")
    body.set(p, body.op("mul", p, body.load(A, [i], [], FLOAT32)))
    b.add(n.For(i, ZERO, COUNT, const(1, INT32), body.block()))
    b.add(n.Store(B, (ZERO,), p))


def total(b: Builder) -> None:
    """sum over a, added to b[0]."""
    p = b.variable(FLOAT32, "p")
    body = b.child()
    i = body.temp(INT32, "i")
    body.set(p, body.op("add", p, body.load(A, [i], [], FLOAT32)))
    b.add(n.For(i, ZERO, COUNT, const(1, INT32), body.block()))
    b.add(n.Atomic(None, "add", B, (ZERO,), p))


def inplace(b: Builder) -> None:
    b.add(n.Store(A, (ZERO,), b.op("mul", *[b.load(A, [ZERO], [], FLOAT32)] * 2)))


def inplace_sum(b: Builder) -> None:
    x = b.load(B, [ZERO], [], FLOAT32)
    b.add(n.Store(A, (ZERO,), b.op("add", b.load(A, [ZERO], [], FLOAT32), x)))


@pytest.mark.parametrize("build", [product, total, inplace, inplace_sum])
def test_the_adjoint_touches_gradients_alone(build) -> None:
    out = adjoint(build, frozenset("a"))
    written = {s.array.name for s in statements(out.fn, (n.Store, n.Atomic))}
    assert written and written <= {name for _, name in out.fn.adjoints}


def test_a_product_loop_saves_its_one_carried_variable() -> None:
    out = adjoint(product).fn
    assert len(statements(out, n.Push)) == len(statements(out, n.Pop)) == 1


def test_a_sum_needs_neither_storage_nor_a_forward_sweep() -> None:
    out = adjoint(total).fn
    assert not statements(out, (n.Push, n.Load)) or {
        s.array.name for s in statements(out, n.Load)
    } == {"adj_b"}
    assert len(statements(out, n.For)) == 1


def test_a_destroyed_value_that_is_needed_is_journaled() -> None:
    out = adjoint(inplace, frozenset("a"))
    assert len(out.sites) == 1
    recorded = ad.record(ad.prepare(kernel(inplace)), out.sites)
    assert len(statements(recorded, n.JournalWrite)) == 1


def test_a_destroyed_value_that_is_not_needed_is_not_journaled() -> None:
    assert adjoint(inplace_sum, frozenset("a")).sites == frozenset()


def test_arrays_without_gradient_get_no_adjoint_code() -> None:
    prepared = ad.prepare(kernel(product))
    out = ad.reverse(prepared, frozenset(), frozenset())
    assert out.fn.body == () and out.fn.params == (A, B, COUNT)


def test_text_is_the_same_in_every_run() -> None:
    assert str(adjoint(product).fn) == str(adjoint(product).fn)
