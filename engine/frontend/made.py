"""Values and types made to measure: `wp.vector(x, y)`, `wp.matrix(..., shape=(2, 3))`,
`wp.quaternion(...)`, `wp.transformation(p, q)`, `wp.types.vector(length=5, dtype=float)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from engine.builtins.made import part_names
from engine.diagnostics import LaunchError
from engine.frontend.construct import construct
from engine.frontend.context import Context
from engine.frontend.operands import BAD, Bad, Known, Operand, Several, Value, number, unify, zero
from engine.frontend.scope import type_of
from engine.frontend.typenames import type_name
from engine.ir.nodes import Const
from engine.lang import factories
from engine.lang.types import (
    FLOAT32,
    MatrixType,
    ScalarType,
    ValueType,
    VectorType,
    quat_type,
    transform_type,
    with_scalar,
)

FACTORIES: dict[object, tuple[str, ...]] = {
    factories.vector: ("length", "dtype"),
    factories.matrix: ("shape", "dtype"),
    factories.quaternion: ("dtype",),
    factories.transformation: ("dtype",),
}
_USAGE = {
    "vector": "`{0}.vector(x, y, z)` or `{0}.vector(length=5, dtype=float)`",
    "matrix": "`{0}.matrix(a, b, c, d, shape=(2, 2))` or `{0}.matrix(shape=(2, 3), dtype=float)`",
    "quaternion": "`{0}.quaternion(x, y, z, w)` or `{0}.quaternion({0}.vec3(x, y, z), w)`",
    "transformation": "`{0}.transformation(p, q)` with a vector and a quaternion",
}


def factory_of(obj: object) -> Callable[..., Any] | None:
    """The factory of `types` that an object is."""
    try:
        return obj if obj in FACTORIES else None  # type: ignore[return-value]
    except TypeError:  # not hashable
        return None


class _Wrong(Exception):
    """The call means nothing: the text says why. Empty where that has been reported."""


def _scalar(cx: Context, node: ast.expr) -> ScalarType:
    found = cx.expr(node)
    if isinstance(found, Bad):
        raise _Wrong
    scalar = type_of(found.obj) if isinstance(found, Known) else None
    if not isinstance(scalar, ScalarType):
        raise _Wrong("the dtype is a scalar type")
    return scalar


def _count(got: Operand, what: str) -> int:
    n = number(got) if isinstance(got, Value) else None
    if isinstance(got, Bad):
        raise _Wrong
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= factories.MAX_COMPONENTS:
        most = factories.MAX_COMPONENTS
        raise _Wrong(f"{what} is a constant whole number from 1 to {most}")
    return n


def _shape(cx: Context, node: ast.expr) -> tuple[int, int]:
    got = cx.expr(node)
    if isinstance(got, Bad):
        raise _Wrong
    if not isinstance(got, Several) or len(got.items) != 2:
        raise _Wrong("the shape of a matrix is (rows, columns)")
    rows, cols = (_count(x, "the number of rows or columns") for x in got.items)
    if rows * cols > factories.MAX_COMPONENTS:
        raise _Wrong(f"a matrix has at most {factories.MAX_COMPONENTS} components")
    return rows, cols


def _words(node: ast.Call, allowed: Sequence[str]) -> dict[str, ast.expr]:
    out: dict[str, ast.expr] = {}
    for word in node.keywords:
        if word.arg is None or word.arg not in allowed:
            raise _Wrong(f"there is no argument `{word.arg}`")
        out[word.arg] = word.value
    return out


# ---- types


def lower_factory(cx: Context, node: ast.Call, make: Callable[..., Any]) -> Operand:
    """`types.vector(length=n, dtype=t)` and the like: a class, to be called."""
    names = FACTORIES[make]
    name = make.__name__
    try:
        words = dict(zip(names, node.args, strict=False))
        for key, value in _words(node, names).items():
            words[key] = value
        if len(words) != len(names) or len(node.args) > len(names):
            raise _Wrong(f"its arguments are {' and '.join(f'`{n}`' for n in names)}")
        given: list[object] = []
        for key in names:
            n = words[key]
            if key == "dtype":
                given.append(_scalar(cx, n))
            else:
                size = _shape(cx, n) if key == "shape" else _count(cx.expr(n), "the length")
                given.append(size)
        return Known(make(*given))
    except LaunchError as error:
        problem = error.diagnostics[0].message
    except _Wrong as wrong:
        problem = str(wrong)
    if not problem:
        return BAD
    return cx.error(
        "E104", node, f"`{name}` makes no type: {problem}",
        f"write `{cx.api}.types.{name}({', '.join(f'{n}=...' for n in names)})`",
    )  # fmt: skip


# ---- values


def lower_made(cx: Context, node: ast.Call, name: str) -> Operand:
    """A value of a type that the arguments tell."""
    try:
        return _made(cx, node, name)
    except _Wrong as wrong:
        if not str(wrong):
            return BAD
        return cx.error("E104", node, f"`{name}` makes no value: {wrong}",
                        f"write {_USAGE[name].format(cx.api)}")  # fmt: skip


_SIZES = {"vector": ("length",), "matrix": ("shape",)}


def _made(cx: Context, node: ast.Call, name: str) -> Operand:
    parts = part_names(name)
    words = _words(node, (*_SIZES.get(name, ()), *parts, "dtype"))
    nodes = list(node.args) + [words[p] for p in parts if p in words]
    args = [cx.scalar_value(a, "an argument") for a in nodes]
    values = [a for a in args if isinstance(a, Value)]
    if len(values) != len(args):
        raise _Wrong
    dtype = _scalar(cx, words["dtype"]) if "dtype" in words else None
    length = shape = None
    if "length" in words:
        length = _count(cx.expr(words["length"]), "the length")
    if "shape" in words:
        shape = _shape(cx, words["shape"])
    t = _type(name, values, dtype, length, shape)
    return construct(cx, node, nodes, values, t) if values else Value(zero(t))


def _type(
    name: str,
    values: Sequence[Value],
    dtype: ScalarType | None,
    length: int | None,
    shape: tuple[int, int] | None,
) -> VectorType | MatrixType:
    scalar = dtype or _common(values)
    rotation = name in ("quaternion", "transformation")
    if dtype is None and rotation and all(v.weak for v in values):
        scalar = FLOAT32
    if rotation:
        if scalar.kind != "f":
            raise _Wrong("its components are floats")
        return quat_type(scalar) if name == "quaternion" else transform_type(scalar)
    kind: type[VectorType] | type[MatrixType] = VectorType if name == "vector" else MatrixType
    first = values[0].type if values else None
    if len(values) == 1 and isinstance(first, kind) and length is None and shape is None:
        copied: ValueType = with_scalar(first, scalar)
        assert isinstance(copied, (VectorType, MatrixType))
        return copied
    if name == "matrix":
        if shape is None:
            raise _Wrong("its shape is missing")
        return MatrixType(scalar, *shape)
    size = length or len(values)
    if not size:
        raise _Wrong("its length is missing")
    return VectorType(scalar, size)


def _common(values: Sequence[Value]) -> ScalarType:
    """The scalar type of the arguments: float32 where there are none."""
    if not values:
        return FLOAT32
    scalars = [v for v in values if isinstance(v.type, ScalarType)]
    for v in values:
        if isinstance(v.type, (VectorType, MatrixType)):
            return v.type.scalar
    same = unify(scalars)
    if same is None:
        named = ", ".join(dict.fromkeys(type_name(v.type) for v in scalars if not v.weak))
        raise _Wrong(f"its components have several types ({named})")
    found = same[0].type
    assert isinstance(found, ScalarType)
    return found


def lower_neutral(cx: Context, node: ast.Call, name: str) -> Operand:
    """`quat_identity(dtype=float)` and `transform_identity(dtype=float)`."""
    nodes = [*node.args, *(w.value for w in node.keywords)]
    named = [w.arg for w in node.keywords]
    if len(nodes) > 1 or named not in ([], ["dtype"]):
        return cx.error("E109", node, f"`{name}` takes a dtype or nothing",
                        f"write `{cx.api}.{name}(dtype=float)`")  # fmt: skip
    try:
        scalar = _scalar(cx, nodes[0]) if nodes else FLOAT32
        if scalar.kind != "f":
            raise _Wrong("the dtype is a float type")
    except _Wrong as wrong:
        if not str(wrong):
            return BAD
        return cx.error("E104", nodes[0], f"`{name}`: {wrong}",
                        f"write `{cx.api}.{name}(dtype=float)`")  # fmt: skip
    t = quat_type(scalar) if name == "quat_identity" else transform_type(scalar)
    return Value(Const((*(0.0,) * (t.length - 1), 1.0), t))
