"""Accesses of a launch that share no element, against a record of all accesses."""

from __future__ import annotations

from typing import Any

import pytest

from engine.ad.threads.apart import Numbers
from engine.ad.threads.bounds import Bounds
from engine.ad.threads.collect import collect
from engine.ir import nodes as n
from engine.ir.nodes import Const, Function, Let, Var
from engine.lang.types import FLOAT32, INT32, ArrayType

Y = Var("y", ArrayType(FLOAT32, 1))
DIM = 12


def made(*forms: tuple[int, int, int]) -> list[Any]:
    """Accesses at `a * (i % m) + b` for each thread i; m is 0 for the whole i."""
    body: list[n.Stmt] = [
        Let(i := Var("i", INT32), "tid", (Const(0, INT32), Const(1, INT32)))
    ]  # fmt: skip
    for k, (a, m, b) in enumerate(forms):
        at: Var = i
        if m:
            body.append(Let(at := Var(f"m{k}", INT32), "mod", (i, Const(m, INT32))))
        body.append(Let(p := Var(f"p{k}", INT32), "mul", (at, Const(a, INT32))))
        body.append(Let(q := Var(f"q{k}", INT32), "add", (p, Const(b, INT32))))
        body.append(n.Atomic(None, "max", Y, (q,), Const(1.0, FLOAT32)))
    fn = Function("k", (Y,), (), tuple(body), True)
    return list(collect(fn).accesses)


def touched(a: int, m: int, b: int) -> set[int]:
    return {a * (i % m if m else i) + b for i in range(DIM)}


FORMS = [(a, m, b) for a in (0, 1, 2, 3) for m in (0, 3) for b in (0, 1, 3, 40)]


@pytest.mark.parametrize("first", FORMS, ids=str)
def test_what_is_disjoint_is_so(first: tuple[int, int, int]) -> None:
    proven = 0
    for second in FORMS:
        found = made(first, second)
        if len(found) < 2:  # one and the same
            continue
        numbers = Numbers(Bounds((DIM,), {}))
        is_so = not touched(*first) & touched(*second)
        if numbers.disjoint(*found):
            assert is_so, (first, second)
            proven += 1
    assert proven


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 0, 0), (0, 0, 1)),
        ((1, 3, 0), (1, 3, 3)),
        ((2, 0, 0), (2, 0, 1)),
        ((1, 0, 0), (1, 0, 40)),
    ],
)
def test_what_is_proven(first: Any, second: Any) -> None:
    a, b = made(first, second)
    numbers = Numbers(Bounds((DIM,), {}))
    assert numbers.disjoint(a, b) and not numbers.disjoint(a, a)


def test_one_thread_may_mean_one_element() -> None:
    (a,) = made((1, 0, 0))
    numbers = Numbers(Bounds((DIM,), {}))
    assert numbers.apart(a, a) and not numbers.disjoint(a, a)
