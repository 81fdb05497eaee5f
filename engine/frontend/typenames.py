"""How types are spelled to users: `vec3`, `mat22d`, `array(dtype=float32, ndim=2)`."""

from __future__ import annotations

from collections.abc import Iterable

from engine.lang.types import ArrayType, MatrixType, ScalarType, Type, VectorType

_SUFFIX = {
    "float32": "", "float64": "d", "int32": "i", "int64": "l", "int16": "s", "int8": "b",
    "uint32": "ui", "uint64": "ul", "uint16": "us", "uint8": "ub",
}  # fmt: skip


def type_name(t: Type) -> str:
    """The type as a user would write it."""
    if isinstance(t, VectorType):
        return f"vec{t.length}{_SUFFIX.get(t.scalar.name, '')}"
    if isinstance(t, MatrixType):
        return f"mat{t.rows}{t.cols}{_SUFFIX.get(t.scalar.name, '')}"
    if isinstance(t, ArrayType):
        ndim = f", ndim={t.ndim}" if t.ndim > 1 else ""
        return f"array(dtype={type_name(t.element)}{ndim})"
    return t.name


def type_names(types: Iterable[Type]) -> str:
    """Several types, separated by commas."""
    return ", ".join(type_name(t) for t in types)


def cast_name(t: ScalarType, api: str) -> str:
    """What a cast to the type is called in a kernel: `float`, or `wp.float64`."""
    return {"float32": "float", "int32": "int", "bool": "bool"}.get(t.name, f"{api}.{t.name}")
