"""Constructors of no named type, which take it from their arguments: `wp.vector(x, y)`,
`wp.matrix(..., shape=(2, 3))`, `wp.quaternion(...)`, `wp.transformation(p, q)`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.builtins.generic_constructors import part_names
from engine.frontend.calls.constructors import construct
from engine.frontend.calls.type_factories import (
    Meaningless,
    component_count,
    matrix_shape,
    named_arguments,
    scalar_type,
)
from engine.frontend.context.context import Context
from engine.frontend.operands.operand import (
    BAD,
    QUOTIENT_HELP,
    Operand,
    Value,
    common_type,
    zero,
)
from engine.frontend.operands.type_names import type_name
from engine.ir.nodes import Const
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

_USAGE = {
    "vector": "`{0}.vector(x, y, z)` or `{0}.vector(length=5, dtype=float)`",
    "matrix": "`{0}.matrix(a, b, c, d, shape=(2, 2))` or `{0}.matrix(shape=(2, 3), dtype=float)`",
    "quaternion": "`{0}.quaternion(x, y, z, w)` or `{0}.quaternion({0}.vec3(x, y, z), w)`",
    "transformation": "`{0}.transformation(p, q)` with a vector and a quaternion",
}


def lower_generic_constructor(cx: Context, node: ast.Call, name: str) -> Operand:
    """A value of a type that the arguments tell."""
    try:
        return _constructed(cx, node, name)
    except Meaningless as wrong:
        if not str(wrong):
            return BAD
        return cx.error("E104", node, f"`{name}` makes no value: {wrong}",
                        wrong.help or f"write {_USAGE[name].format(cx.api)}")  # fmt: skip


_SIZES = {"vector": ("length",), "matrix": ("shape",)}


def _constructed(cx: Context, node: ast.Call, name: str) -> Operand:
    parts = part_names(name)
    words = named_arguments(node, (*_SIZES.get(name, ()), *parts, "dtype"))
    nodes = list(node.args) + [words[p] for p in parts if p in words]
    args = [cx.scalar_value(a, "an argument") for a in nodes]
    values = [a for a in args if isinstance(a, Value)]
    if len(values) != len(args):
        raise Meaningless
    dtype = scalar_type(cx, words["dtype"]) if "dtype" in words else None
    length = shape = None
    if "length" in words:
        length = component_count(cx.expr(words["length"]), "the length")
    if "shape" in words:
        shape = matrix_shape(cx, words["shape"])
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
            raise Meaningless("its components are floats")
        return quat_type(scalar) if name == "quaternion" else transform_type(scalar)
    kind: type[VectorType] | type[MatrixType] = VectorType if name == "vector" else MatrixType
    first = values[0].type if values else None
    if len(values) == 1 and isinstance(first, kind) and length is None and shape is None:
        copied: ValueType = with_scalar(first, scalar)
        assert isinstance(copied, (VectorType, MatrixType))
        return copied
    if name == "matrix":
        if shape is None:
            raise Meaningless("its shape is missing")
        return MatrixType(scalar, *shape)
    size = length or len(values)
    if not size:
        raise Meaningless("its length is missing")
    return VectorType(scalar, size)


def _common(values: Sequence[Value]) -> ScalarType:
    """The scalar type of the arguments: float32 where there are none."""
    if not values:
        return FLOAT32
    scalars = [v for v in values if isinstance(v.type, ScalarType)]
    for v in values:
        if isinstance(v.type, (VectorType, MatrixType)):
            return v.type.scalar
    found = common_type(scalars)
    if found is None and any(v.truncated for v in scalars):
        raise Meaningless("a quotient of integers stands for a float", QUOTIENT_HELP)
    if found is None:
        named = ", ".join(dict.fromkeys(type_name(v.type) for v in scalars if not v.weak))
        raise Meaningless(f"its components have several types ({named})")
    assert isinstance(found, ScalarType)
    return found


def lower_rigid_identity(cx: Context, node: ast.Call, name: str) -> Operand:
    """`quat_identity(dtype=float)` and `transform_identity(dtype=float)`."""
    nodes = [*node.args, *(w.value for w in node.keywords)]
    named = [w.arg for w in node.keywords]
    if len(nodes) > 1 or named not in ([], ["dtype"]):
        return cx.error("E109", node, f"`{name}` takes a dtype or nothing",
                        f"write `{cx.api}.{name}(dtype=float)`")  # fmt: skip
    try:
        scalar = scalar_type(cx, nodes[0]) if nodes else FLOAT32
        if scalar.kind != "f":
            raise Meaningless("the dtype is a float type")
    except Meaningless as wrong:
        if not str(wrong):
            return BAD
        return cx.error("E104", nodes[0], f"`{name}`: {wrong}",
                        f"write `{cx.api}.{name}(dtype=float)`")  # fmt: skip
    t = quat_type(scalar) if name == "quat_identity" else transform_type(scalar)
    return Value(Const((*(0.0,) * (t.length - 1), 1.0), t))
