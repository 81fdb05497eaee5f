"""Casts and constructors: `float(x)`, `wp.int64(n)`, `wp.vec3(a, b, c)`, `wp.mat22(...)`."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from engine.frontend.context.context import Context
from engine.frontend.expressions.component_slices import components_of
from engine.frontend.expressions.conditions import truth
from engine.frontend.expressions.conversions import coerce, refuse_quotient, refuse_unknown
from engine.frontend.operands.operand import (
    BAD,
    UNKNOWN_LITERALS,
    Bad,
    Known,
    Operand,
    Several,
    Value,
    adapt,
    fits,
    look_up,
    number,
    zero,
)
from engine.frontend.operands.type_names import type_name
from engine.frontend.parsing.scope import type_of
from engine.ir.builder import const
from engine.ir.nodes import Atom, Const
from engine.lang.types import (
    BOOL,
    FLOAT32,
    INT32,
    MatrixType,
    ScalarType,
    ValueType,
    VectorType,
    quat_type,
    scalar_of,
    shape_of,
)

_PARTS_HELP: dict[tuple[str, ...], str] = {
    ("ijk", "real"): "pass x, y, z, w, or a vector of 3 and w, of one float type",
    ("p", "q"): "pass a vector of 3 and a quaternion of one float type, or 7 numbers",
    ("w", "v"): "pass two vectors of 3, of one float type, or 6 numbers",
}


# Parts that a type can be made from, by name and in this order.
def _part_names(t: ValueType) -> tuple[str, ...]:
    if not isinstance(t, VectorType):
        return ()
    if t.length == 6 and not t.tag:
        return ("w", "v")
    return {"quat": ("ijk", "real"), "transform": ("p", "q")}.get(t.tag, ())


def _facts(t: ValueType) -> dict[str, object]:
    """What a constructor may repeat of its type, by name."""
    if isinstance(t, VectorType) and not t.tag:
        return {"length": t.length, "dtype": t.scalar}
    if isinstance(t, MatrixType):
        return {"shape": (t.rows, t.cols), "dtype": t.scalar}
    return {"dtype": scalar_of(t)} if isinstance(t, VectorType) else {}


def _says(cx: Context, node: ast.expr, fact: object) -> bool:
    """Whether an expression is a fact about a type."""
    got = cx.expr(node)
    if isinstance(got, Bad):
        return True
    if isinstance(got, Several):
        items = [number(i) if isinstance(i, Value) else None for i in got.items]
        return tuple(items) == fact
    if isinstance(got, Known):
        return type_of(got.obj) == fact
    return isinstance(got, Value) and number(got) == fact


def lower_constructor(cx: Context, node: ast.Call, t: ValueType) -> Operand:
    """A call of a type."""
    parts = _part_names(t)
    nodes = list(node.args)
    words = {w.arg: w.value for w in node.keywords}
    facts = {name: fact for name, fact in _facts(t).items() if name in words}
    if not all(_says(cx, words[name], fact) for name, fact in facts.items()):
        return cx.error(
            "E104",
            node,
            f"this is not a {type_name(t)}",
            "leave out the size and the dtype, which the type already has",
        )
    for word in node.keywords:
        if word.arg in facts:
            continue
        if word.arg not in parts or parts.index(word.arg) < len(node.args):
            return cx.error(
                "E106",
                word.value,
                f"{type_name(t)} takes no argument named `{word.arg}`",
                "pass the components by position",
            )
    nodes += [words[p] for p in parts if p in words]
    args = [cx.scalar_value(a, "an argument") for a in nodes]
    values = [a for a in args if isinstance(a, Value)]
    if len(values) != len(args):
        return BAD
    if not values:
        return Value(zero(t))
    if isinstance(t, ScalarType):
        return _cast(cx, node, values, t)
    if "q" in words and "p" not in words and not node.args:
        values.insert(0, Value(zero(VectorType(t.scalar, 3))))
        nodes.insert(0, node)
    return construct(cx, node, nodes, values, t)


def _from_parts(
    cx: Context, nodes: Sequence[ast.expr], values: list[Value], t: VectorType
) -> tuple[list[ast.expr], list[Value]] | None:
    """Components in place of the parts of a quaternion, transform or spatial vector."""
    three = VectorType(t.scalar, 3)
    known: dict[tuple[str, int], tuple[ValueType, ...]] = {
        ("quat", 4): (three, t.scalar),
        ("transform", 7): (three, quat_type(t.scalar)),
        ("", 6): (three, three),
    }
    kinds = known.get((t.tag, t.length), ())
    if t.tag == "transform" and len(values) == 1 and values[0].type == three:
        identity = Const((0.0, 0.0, 0.0, 1.0), quat_type(t.scalar))
        values, nodes = [*values, Value(identity)], [*nodes, nodes[0]]
    if len(values) != len(kinds):
        return None
    fitted = [adapt(cx.b, v, k) for v, k in zip(values, kinds, strict=True)]
    out: list[Value] = []
    at: list[ast.expr] = []
    for n, v in zip(nodes, fitted, strict=True):
        if v is None:
            return None
        flat = [Value(a) for a in components_of(cx, v.atom)] or [v]
        out += flat
        at += [n] * len(flat)
    return at, out


def _cast(cx: Context, node: ast.Call, values: list[Value], t: ScalarType) -> Operand:
    if len(values) != 1:
        return cx.error("E109", node, f"{type_name(t)} takes 1 argument, got {len(values)}")
    v = values[0]
    if not isinstance(v.type, ScalarType):
        return cx.error(
            "E104",
            node.args[0],
            f"{type_name(v.type)} cannot become {type_name(t)}",
            "convert one component: `v[0]`",
        )
    if t == BOOL:
        return truth(cx, node.args[0], v)
    if t.kind == "f" and refuse_quotient(cx, node.args[0], [v]):
        return BAD
    known = _converted(v, t)
    if known is not None:
        return Value(known)
    if v.type == t:
        return Value(v.atom)
    if v.table == UNKNOWN_LITERALS and t.kind == "f":
        return refuse_unknown(cx, node)
    if isinstance(node.args[0], ast.Name):
        cx.ask(node.args[0], t)  # what literals have started is not to be rounded first
    if v.table is not None and not v.table.exact:  # what the numbers themselves become
        items = [_converted(item, t) for item in v.table.items]
        fitted = [item for item in items if item is not None]
        if len(fitted) == len(items):
            return Value(look_up(cx.b, v.table, fitted))
    return Value(cx.b.op("cast", v.atom, result=t))


def _converted(v: Value, t: ScalarType) -> Const | None:
    """The constant in another type; None where the cast decides: it wraps or saturates."""
    n = number(v)
    if n is None or not math.isfinite(n):
        return None
    if t.kind == "f":
        return Const(float(n), t)
    return Const(int(n), t) if fits(int(n), t) else None


def construct(
    cx: Context,
    node: ast.Call,
    nodes: Sequence[ast.expr],
    values: list[Value],
    t: VectorType | MatrixType,
) -> Operand:
    """A vector or matrix from its components, parts, one number to fill, or one like it.

    nodes: the expressions of the values.
    """
    from_parts = _from_parts(cx, nodes, values, t) if isinstance(t, VectorType) else None
    if from_parts is not None:
        nodes, values = from_parts
    shape = shape_of(t)
    size = math.prod(shape)
    first = values[0]
    if len(values) == 1 and isinstance(first.type, (VectorType, MatrixType)):
        if first.type == t:
            return Value(first.atom)
        if type(first.type) is type(t) and shape_of(first.type) == shape:
            return Value(cx.b.op("cast", first.atom, result=t))
        return cx.error(
            "E104",
            nodes[0],
            f"{type_name(first.type)} cannot become {type_name(t)}",
            "the numbers of components must agree: pass the components one by one",
        )
    if any(not isinstance(v.type, ScalarType) for v in values):
        at = next(k for k, v in enumerate(values) if not isinstance(v.type, ScalarType))
        help_text = _PARTS_HELP.get(_part_names(t), "pass the components one by one: `v[0], ...`")
        if isinstance(t, MatrixType):
            help_text = (
                f"write `{cx.api}.matrix_from_rows(...)` or `{cx.api}.matrix_from_cols(...)`"
            )
        return cx.error(
            "E104",
            nodes[at],
            f"a component of {type_name(t)} is a number, but this is {type_name(values[at].type)}",
            help_text,
        )
    if len(values) not in (1, size):
        return cx.error(
            "E109",
            node,
            f"{type_name(t)} takes {size} components, got {len(values)}",
            f"pass {size} numbers, one number to fill it, or none for zeros",
        )
    atoms: list[Atom] = []
    for n, v in zip(nodes, values, strict=True):
        atom = coerce(cx, n, v, t.scalar, f"a component of {type_name(t)}")
        if atom is not None:
            atoms.append(atom)
    if len(atoms) != len(values):
        return BAD
    numbers = [a.value for a in atoms if isinstance(a, Const)]
    if len(atoms) == 1:
        whole = numbers[0] if numbers else None
        if isinstance(whole, (bool, int, float)):
            return Value(const(whole, t))
        return Value(cx.b.op("fill", atoms[0], result=t))
    if len(numbers) == size:
        return Value(Const(_rows(tuple(numbers), t), t))
    return Value(cx.b.op("construct", *atoms, result=t))


def _rows(flat: tuple[object, ...], t: VectorType | MatrixType) -> tuple[object, ...]:
    if isinstance(t, VectorType):
        return flat
    return tuple(flat[i * t.cols : (i + 1) * t.cols] for i in range(t.rows))


def lower_identity(cx: Context, node: ast.Call) -> Operand:
    """`identity(n=3, dtype=float)`."""
    words: dict[str, ast.expr] = dict(zip(("n", "dtype"), node.args, strict=False))
    usage = f"write `{cx.api}.identity(n=3, dtype=float)` with a constant n"
    for word in node.keywords:
        if word.arg not in ("n", "dtype") or word.arg in words:
            return cx.error("E106", word.value, f"`identity` takes no argument `{word.arg}`", usage)
        words[word.arg] = word.value
    if "n" not in words or len(node.args) > 2:
        return cx.error("E109", node, "`identity` takes a size and a dtype", usage)
    size = cx.value(words["n"])
    n = number(size) if isinstance(size, Value) else None
    scalar: object = FLOAT32
    if "dtype" in words:
        found = cx.expr(words["dtype"])
        scalar = type_of(found.obj) if isinstance(found, Known) else None
    if isinstance(size, Bad):
        return BAD
    if not isinstance(n, int) or n < 1 or not isinstance(scalar, ScalarType):
        return cx.error("E104", node, "`identity` takes a constant size and a scalar type", usage)
    return Value(cx.b.op("identity", result=MatrixType(scalar, n, n)))


def matrix_from_vectors(cx: Context, node: ast.Call, rows: bool) -> Operand:
    """`matrix_from_rows(v, ...)` and `matrix_from_cols(v, ...)`."""
    args = [cx.scalar_value(a, "an argument") for a in node.args]
    values = [a for a in args if isinstance(a, Value)]
    if len(values) != len(args):
        return BAD
    first = values[0].type if values else None
    if not isinstance(first, VectorType) or any(v.type != first for v in values):
        return cx.error(
            "E104", node, "a matrix is made from vectors of one type", "pass `vec3` values"
        )
    parts = [
        [cx.b.op("extract", v.atom, Const(k, INT32)) for k in range(first.length)] for v in values
    ]
    if not rows:
        parts = [list(column) for column in zip(*parts, strict=True)]
    t = MatrixType(first.scalar, len(parts), len(parts[0]))
    return Value(cx.b.op("construct", *(p for row in parts for p in row), result=t))
