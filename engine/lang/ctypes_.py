"""C++ names of the kernel language's types, shared by the operation table and code generators."""

from __future__ import annotations

from engine.lang.types import (
    BFLOAT16,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
)


def ctype(t: Type) -> str:
    """The C++ type that holds a value: `float`, `int32_t`, `eng::vec_t<3,float>`, ..."""
    if isinstance(t, ScalarType):
        if t.kind == "b":
            return "bool"
        if t.kind == "f":
            if t == BFLOAT16:
                return "eng::bfloat_t"
            return {16: "eng::half_t", 32: "float", 64: "double"}[t.bits]
        return f"{t.name}_t"
    if isinstance(t, VectorType):
        return f"eng::vec_t<{t.length},{ctype(t.scalar)}>"
    if isinstance(t, MatrixType):
        return f"eng::mat_t<{t.rows},{t.cols},{ctype(t.scalar)}>"
    if isinstance(t, ArrayType):
        return f"eng::array_t<{ctype(t.element)},{t.ndim}>"
    raise TypeError(t)
