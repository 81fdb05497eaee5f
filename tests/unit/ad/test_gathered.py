"""Chains of inserts that become one value: which do, and that the meaning stays."""

from __future__ import annotations

import numpy as np

import engine.builtins  # noqa: F401  (its operations)
from engine.ad.cleanup import remove_dead
from engine.ad.gathered import gathered
from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.lang.types import FLOAT32, INT32, VectorType
from tests.unit.ad.kernels import ONE, ZERO, A, B, built, operations, ran

V3 = VectorType(FLOAT32, 3)
I = [const(k, INT32) for k in range(3)]


def same(fn: n.Function) -> n.Function:
    out = remove_dead(gathered(fn))
    given = [np.array([2, 3], np.float32), np.zeros(2, np.float32), 1]
    for x, y in zip(ran(fn, 1, *given), ran(out, 1, *given), strict=True):
        np.testing.assert_array_equal(x, y)
    return out


def chain(b: Builder, begin: n.Atom, *places: n.Atom) -> n.Atom:
    for at in places:
        begin = b.op("insert", begin, at, b.load(A, [ZERO], [], FLOAT32))
    return begin


def shown(b: Builder, v: n.Atom) -> None:
    b.add(n.Store(B, (ZERO,), b.op("length", v)))


def test_a_chain_becomes_one_value() -> None:
    out = same(built(lambda b: shown(b, chain(b, const(0, V3), I[2], I[0]))))
    assert "insert" not in operations(out) and operations(out).count("construct") == 1


def test_one_that_hides_what_it_began_with() -> None:
    def write(b: Builder) -> None:
        x = b.op("scale", const(1, V3), b.load(A, [ONE], [], FLOAT32))
        shown(b, chain(b, x, I[2], I[0], I[1]))

    assert operations(same(built(write))) == ["construct", "length"]


def test_others_stay() -> None:
    def unknown_beginning(b: Builder) -> None:
        x = b.op("scale", const(1, V3), b.load(A, [ONE], [], FLOAT32))
        shown(b, chain(b, x, I[2], I[0]))

    def unknown_place(b: Builder) -> None:
        at = b.op("cast", b.load(A, [ZERO], [], FLOAT32), result=INT32)
        shown(b, chain(b, const(0, V3), I[2], at))

    def single(b: Builder) -> None:
        shown(b, chain(b, const(0, V3), I[1]))

    def seen_on_the_way(b: Builder) -> None:
        first = chain(b, const(0, V3), I[2])
        shown(b, first)
        shown(b, chain(b, first, I[1]))

    for write in (unknown_beginning, unknown_place, single, seen_on_the_way):
        fn = built(write)
        assert gathered(fn).body == fn.body
