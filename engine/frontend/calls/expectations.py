"""`expect_eq`, `expect_neq` and `expect_near`: tests inside kernels.

A test is an `if` around a message, in plain operations, so that code generators and
differentiation know messages alone, which have no adjoint.
"""

from __future__ import annotations

import ast

from engine.frontend.calls.messages import message_unless
from engine.frontend.context.context import Context
from engine.frontend.expressions.comparisons import compare
from engine.frontend.expressions.operators import apply
from engine.frontend.operands.lvalues import component_indices
from engine.frontend.operands.operand import BAD, Bad, Operand, Several, Value, unify
from engine.frontend.operands.type_names import type_name
from engine.ir.builder import const
from engine.ir.nodes import Atom
from engine.lang.types import (
    BOOL,
    ArrayType,
    MatrixType,
    ScalarType,
    VectorType,
    is_float,
)


def lower_expect(cx: Context, node: ast.Call, name: str) -> Operand:
    """`expect_eq(a, b)`, `expect_neq(a, b)`, `expect_near(a, b, tolerance)`."""
    counts = (2, 3) if name == "expect_near" else (2,)
    if len(node.args) not in counts:
        more = ", tolerance" if name == "expect_near" else ""
        return cx.error("E109", node, f"`{name}` got {len(node.args)} arguments",
                        f"write `{cx.api}.{name}(a, b{more})`")  # fmt: skip
    got = [cx.scalar_value(a) for a in node.args]
    values = [v for v in got if isinstance(v, Value)]
    if len(values) != len(got):
        return BAD
    pair = unify(values[:2], cx.b)
    if pair is None:
        return apply(cx, node, "==", values[:2])  # says that the types differ
    a, b = pair
    said: list[str | Value]
    if name == "expect_near":
        near = _near(cx, node, a, b, values[2] if len(values) > 2 else None)
        if near is None:
            return BAD
        holds, tolerance = near
        said = [f"Error, {name}() failed with tolerance ", tolerance, "\n"]
    else:
        same = compare(cx, node, "==", a, b)
        if isinstance(same, Bad):
            return BAD
        holds = same.atom if name == "expect_eq" else cx.b.op("lnot", same.atom)
        said = [f"Error, {name}() failed:\n"]
    said += ["\t Expected: ", b, "\n\t Actual: ", a, "\n"]
    message_unless(cx, holds, "expect", said)
    return Several(())


def _near(
    cx: Context, node: ast.Call, a: Value, b: Value, tolerance: Value | None
) -> tuple[Atom, Value] | None:
    """Whether no component differs by more than the tolerance (NaN does), and the tolerance."""
    t = a.type
    if isinstance(t, ArrayType) or not is_float(t):
        cx.error("E104", node, f"`expect_near` compares floats, but these are {type_name(t)}",
                 f"write `{cx.api}.expect_eq(a, b)`")  # fmt: skip
        return None
    scalar = t if isinstance(t, ScalarType) else t.scalar
    limit = Value(const(1e-6, scalar))
    if tolerance is not None:
        found = unify([limit, tolerance], cx.b)
        if found is None:
            cx.error(
                "E104",
                node.args[2],
                f"the tolerance must be {type_name(scalar)}, but this is "
                f"{type_name(tolerance.type)}",
                "convert it",
            )
            return None
        limit = found[1]
    holds: Atom = const(True, BOOL)
    pairs: list[tuple[Atom, Atom]] = [(a.atom, b.atom)]
    if isinstance(t, (VectorType, MatrixType)):
        pairs = [
            (cx.b.op("extract", a.atom, *at), cx.b.op("extract", b.atom, *at))
            for at in component_indices(t)
        ]
    for x, y in pairs:
        apart = cx.b.op("abs", cx.b.op("sub", x, y))
        # Infinities of one sign are equal, though their difference is NaN.
        close = cx.b.op("lor", cx.b.op("le", apart, limit.atom), cx.b.op("eq", x, y))
        holds = cx.b.op("land", holds, close)
    return holds, limit
