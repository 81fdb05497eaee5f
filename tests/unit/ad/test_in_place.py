"""Chains of inserts that become stores to components: which do, and that the meaning stays."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

import engine.builtins  # noqa: F401  (its operations)
from engine.ad.cleanup import propagate, remove_dead
from engine.ad.in_place import in_place
from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.lang.types import FLOAT32, INT32, VectorType
from tests.unit.ad.kernels import ONE, ZERO, A, B, built, ran, statements

V4 = VectorType(FLOAT32, 4)
I = [const(k, INT32) for k in range(4)]


def chains(fn: n.Function) -> int:
    """How many inserts are stores to a component, with what follows them."""
    found = 0
    for block in [fn.body, *(b for s in n.walk(fn.body) for b in n.blocks_of(s))]:
        for s, after in pairwise(block):
            if isinstance(s, n.Let) and s.op == "insert" and isinstance(after, n.Set):
                found += after.value == s.dst and s.args[0] == after.dst
    return found


def same(fn: n.Function, changed: n.Function) -> None:
    given = [np.array([2, 3], np.float32), np.zeros(2, np.float32), 5]
    for x, y in zip(ran(fn, 1, *given), ran(changed, 1, *given), strict=True):
        np.testing.assert_array_equal(x, y)


def shown(b: Builder, *vectors: n.Var) -> None:
    """Puts what vectors hold where it can be seen."""
    total: n.Atom = const(0, FLOAT32)
    for k, v in enumerate(vectors):
        for c in range(4):
            weight = const(float(10 ** (c + 1) + k), FLOAT32)
            total = b.op("add", total, b.op("mul", b.op("extract", v, I[c]), weight))
    b.add(n.Store(B, (ONE,), total))


def test_stages_become_stores() -> None:
    def write(b: Builder) -> None:
        x = b.variable(V4, "x")
        v = b.load(A, [ZERO], [], FLOAT32)
        first = b.op("insert", x, I[1], v)
        taken = b.op("extract", first, I[1])
        second = b.op("insert", first, I[2], b.op("add", taken, v))
        b.set(x, second)
        b.add(n.Store(B, (ZERO,), b.op("extract", second, I[2])))
        shown(b, x)

    fn = built(write)
    out = in_place(fn)
    assert chains(fn) == 0 and chains(out) == 2 == len(statements(out, n.Set))
    same(fn, out)


def test_what_is_taken_of_a_copy_is_taken_before() -> None:
    """`ct = x; x[1] = 0; ... ct[1] ...`, as adjoints of a component that is assigned have it."""

    def write(b: Builder) -> None:
        x = b.variable(V4, "x")
        b.set(x, b.op("fill", b.load(A, [ZERO], [], FLOAT32), result=V4))
        held = b.op("copy", x)
        blank = b.op("insert", held, I[1], const(0, FLOAT32))
        b.add(n.Store(B, (ZERO,), b.op("extract", held, I[1])))
        b.set(x, blank)
        shown(b, x)

    fn = built(write)
    out = remove_dead(in_place(fn))
    assert chains(out) == 1
    assert not [s for s in statements(out, n.Let) if s.op == "copy"]
    same(fn, out)


def test_what_is_used_as_a_whole_stays() -> None:
    def write(b: Builder) -> None:
        x = b.variable(V4, "x")
        first = b.op("insert", x, I[1], b.load(A, [ZERO], [], FLOAT32))
        whole = b.op("add", first, first)
        b.set(x, b.op("insert", first, I[2], b.op("extract", whole, I[1])))
        shown(b, x)

    fn = built(write)
    assert in_place(fn).body == fn.body


def test_an_index_that_comes_later_stays() -> None:
    def write(b: Builder) -> None:
        x = b.variable(V4, "x")
        held = b.op("copy", x)
        changed = b.op("insert", held, I[1], b.load(A, [ZERO], [], FLOAT32))
        at = b.op("cast", b.load(A, [ONE], [], FLOAT32), result=INT32)
        b.add(n.Store(B, (ZERO,), b.op("extract", held, at)))
        b.set(x, changed)
        shown(b, x)

    fn = built(write)
    assert chains(in_place(fn)) == 0
    same(fn, in_place(fn))


def program(seed: int) -> n.Function:
    """Statements on two vectors, copies of them and stages of changes, in any order."""
    rng = random.Random(seed)

    def block(b: Builder, variables: list[n.Var], known: list[n.Atom], deep: int) -> None:
        values: list[n.Atom] = [*variables]
        numbers = list(known)
        for _ in range(rng.randrange(4, 14)):
            kind = rng.random()
            index = rng.choice([*I, *(a for a in numbers if a.type == INT32)][-6:])
            floats = [a for a in numbers if a.type == FLOAT32]
            # The last ones most often: these make chains.
            value = rng.choice(values[-1:] if rng.random() < 0.8 else values)
            if kind < 0.1:
                values.append(b.op("copy", rng.choice(variables)))
            elif kind < 0.45:
                values.append(b.op("insert", value, index, rng.choice(floats)))
            elif kind < 0.65:
                numbers.append(b.op("extract", value, index))
            elif kind < 0.7:
                numbers.append(b.op("add", rng.choice(floats), rng.choice(floats)))
            elif kind < 0.75:
                late = b.op("gt", rng.choice(floats), const(2, FLOAT32))
                numbers.append(b.op("cast", late, result=INT32))
            elif kind < 0.78:
                values.append(b.op("add", value, rng.choice(values)))
            elif kind < 0.95 or not deep:
                b.set(rng.choice(variables), value)
            else:
                inner = b.child()
                block(inner, variables, numbers, deep - 1)
                if rng.random() < 0.5:
                    b.add(n.If(b.op("gt", rng.choice(floats), const(2, FLOAT32)), inner.block()))
                else:
                    b.add(n.For(inner.temp(INT32, "k"), I[0], I[2], I[1], inner.block()))

    def write(b: Builder) -> None:
        x, y = b.variable(V4, "x"), b.variable(V4, "y")
        k = b.op("cast", b.load(A, [ZERO], [], FLOAT32), result=INT32)
        block(b, [x, y], [b.load(A, [ONE], [], FLOAT32), const(1.5, FLOAT32), k], 2)
        shown(b, x, y)

    return built(write)


def test_random_programs_mean_the_same() -> None:
    found = more = 0
    for seed in range(1500):
        fn = program(seed)
        for form in (fn, remove_dead(propagate(fn))):
            out = in_place(form)
            same(fn, out)
            same(fn, remove_dead(propagate(out)))
            found += chains(out) > chains(form)
            more += chains(out) < chains(form)
    assert found > 100 and not more


@pytest.mark.parametrize("seed", range(3))
def test_a_second_time_changes_nothing(seed: int) -> None:
    once = in_place(program(seed))
    assert chains(in_place(once)) == chains(once)
