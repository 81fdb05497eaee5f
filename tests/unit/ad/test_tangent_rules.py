"""The tangent of single operations, from the table, beside differences in float64."""

from __future__ import annotations

import numpy as np
import pytest

import engine.builtins  # noqa: F401  (its operations)
from engine.ad import tangent_rules
from engine.ad.components import places
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.interp import evaluate
from engine.ir.ops import OPS
from engine.lang.types import FLOAT64, MatrixType, VectorType

V2, M22 = VectorType(FLOAT64, 2), MatrixType(FLOAT64, 2, 2)


def tangent_of(op: str, types: list, result, moving: list[bool]) -> n.Function | None:
    """A function of arguments and their tangents that gives the operation's tangent."""
    args = [n.Var(f"x{k}", t) for k, t in enumerate(types)]
    moved = [n.Var(f"v{k}", t) for k, t in enumerate(types)]
    b = Builder(Names([v.name for v in (*args, *moved)]))
    dst = b.op(op, *args, result=result)
    let = b.stmts[-1]
    assert isinstance(let, n.Let)
    out = tangent_rules.operation(
        b, let, [v if m else None for v, m in zip(moved, moving, strict=True)]
    )
    if out is None:
        return None
    b.add(n.Return((out,)))
    return n.Function("t", (*args, *moved), (dst.type,), b.block())


OPERATIONS = [
    ("sin", [FLOAT64], FLOAT64),
    ("mul", [FLOAT64, FLOAT64], FLOAT64),
    ("div", [FLOAT64, FLOAT64], FLOAT64),
    ("pow", [FLOAT64, FLOAT64], FLOAT64),
    ("dot", [V2, V2], FLOAT64),
    ("length", [V2], FLOAT64),
    ("determinant", [M22], FLOAT64),
    ("inverse", [M22], M22),
]


def shape(t) -> tuple[int, ...]:
    return {FLOAT64: (), V2: (2,), M22: (2, 2)}[t]


@pytest.mark.parametrize(("op", "types", "result"), OPERATIONS, ids=[o for o, _, _ in OPERATIONS])
def test_beside_differences(op: str, types: list, result) -> None:
    rng = np.random.default_rng(1)
    x = [rng.uniform(0.5, 1.5, shape(t)) + (np.eye(2) if t == M22 else 0.0) for t in types]
    v = [rng.standard_normal(shape(t)) for t in types]
    for moving in ([True] * len(x), [True] + [False] * (len(x) - 1)):
        fn = tangent_of(op, types, result, moving)
        assert fn is not None
        (got,) = evaluate(fn, [*x, *v])

        def at(h: float, moving: list[bool] = moving) -> np.ndarray:
            moved = [a + h * d * m for a, d, m in zip(x, v, moving, strict=True)]
            return np.asarray(OPS[op].numpy(*moved))

        np.testing.assert_allclose(got, (at(1e-6) - at(-1e-6)) / 2e-6, rtol=1e-8, atol=1e-9)


def test_what_does_not_move_has_no_tangent() -> None:
    assert tangent_of("mul", [FLOAT64, FLOAT64], FLOAT64, [False, False]) is None
    assert tangent_of("floor", [FLOAT64], FLOAT64, [True]) is None


def test_components_and_zeros() -> None:
    assert places(FLOAT64) == [()]
    assert [tuple(c.value for c in path) for path in places(M22)] == [
        (0, 0), (0, 1), (1, 0), (1, 1)
    ]  # fmt: skip
    assert tangent_rules.zero(V2) == const(0, V2)
