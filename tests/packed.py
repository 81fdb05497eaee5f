"""Types of the operations that take packed results apart: none of them is in the usual lists."""

from __future__ import annotations

from engine.lang.types import INT32, MatrixType, ScalarType, ValueType, VectorType

Types = tuple[ValueType, ...]


def packed_types(name: str, s: ScalarType) -> list[Types]:
    """Arguments that the operation takes over a float type; none for other operations."""
    v = VectorType(s, 11)
    if name.startswith("part_"):
        return [(v, INT32)]
    parts = (VectorType(s, 3), MatrixType(s, 2, 2))
    return [(v, INT32, p) for p in parts] if name == "put_part" else []


def index_limit(name: str) -> int | None:
    """How many places a part can have in the vector of `packed_types`; None for others."""
    return 3 if name.startswith("part_") or name == "put_part" else None
