"""Generic parameters: the markers that users write, and the patterns of types."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from engine.classes import dataclass
from engine.diagnostics import LaunchError
from engine.lang.references import Reference
from engine.lang.structs import ARRAYS, IndexedArrayType, TupleType, UserType
from engine.lang.types import MatrixType, ScalarType, VectorType
from engine.lang.values import to_ir_type


@dataclass(frozen=True, slots=True)
class Marker:
    """`Scalar`, `Float` and `Int`: any scalar type of some kinds (see `ScalarType.kind`)."""

    name: str
    kinds: str

    def __repr__(self) -> str:
        return self.name


Scalar = Marker("Scalar", "iuf")
Float = Marker("Float", "f")
Int = Marker("Int", "iu")


@dataclass(frozen=True, slots=True)
class Form:
    """Vectors or matrices of which not all is said: `vector(length=Any, dtype=Float)`.

    kind: what is made, tag: that of vectors. shape: lengths, None for any. scalar: the type of
    components, or the scalars that it may be.
    """

    kind: Literal["vector", "matrix", "quaternion", "transformation"]
    shape: tuple[int | None, ...]
    scalar: ScalarType | Marker

    def accepts(self, t: UserType) -> bool:
        """Whether a type is one of those meant."""
        if isinstance(t, VectorType):
            tag = {"vector": "", "quaternion": "quat", "transformation": "transform"}
            if tag.get(self.kind) != t.tag:
                return False
            have: tuple[int, ...] = (t.length,)
        elif isinstance(t, MatrixType) and self.kind == "matrix":
            have = (t.rows, t.cols)
        else:
            return False
        if any(n is not None and n != m for n, m in zip(self.shape, have, strict=True)):
            return False
        if isinstance(self.scalar, Marker):
            return not self.scalar.kinds or t.scalar.kind in self.scalar.kinds
        return t.scalar == self.scalar

    def __repr__(self) -> str:
        sizes = ["Any" if n is None else str(n) for n in self.shape]
        shape = f"({', '.join(sizes)})" if self.kind == "matrix" else sizes[0]
        scalar = self.scalar
        dtype = (scalar.name or "Any") if isinstance(scalar, Marker) else scalar
        if self.kind in ("vector", "matrix"):
            return f"{self.kind}({shape}, {dtype})"
        return f"{self.kind}({dtype})"


# What `Any` stands for where a scalar is named.
ANY_SCALAR = Marker("", "")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a parameter takes whose type the call decides.

    role: `value` (anything), `array`, `indexedarray`, `function` or `tuple`. ndim: of arrays.
    kinds: of the scalar that a value is, or that an array's elements are; "" for any type.
    form: of vectors and matrices. items: of a tuple, types and patterns; rest: the one item is
    that of tuples of any length.
    """

    role: Literal["value", "array", "indexedarray", "function", "tuple"] = "value"
    ndim: int = 0
    kinds: str = ""
    form: Form | None = None
    items: tuple[Any, ...] = ()
    rest: bool = False

    def accepts(self, t: UserType) -> bool:
        """Whether a parameter of this pattern takes values of a type."""
        if self.role == "function":
            return False
        of: UserType = t
        if self.role == "tuple":
            wants = self.wanted(len(t.items)) if isinstance(t, TupleType) else None
            return wants is not None and all(
                w.accepts(i) if isinstance(w, Pattern) else w == i
                for w, i in zip(wants, t.items, strict=True)  # type: ignore[union-attr]
            )
        if self.role == "indexedarray" and not isinstance(t, IndexedArrayType):
            return False
        if self.role in ("array", "indexedarray"):
            if not isinstance(t, ARRAYS) or t.ndim != self.ndim:
                return False
            of = t.element
        if self.form is not None:
            return self.form.accepts(of)
        if not self.kinds:
            return True
        return isinstance(of, ScalarType) and of.kind in self.kinds

    def wanted(self, count: int) -> tuple[Any, ...] | None:
        """What each item of a tuple of so many must be; None where there are others."""
        if self.rest:
            return self.items * count
        return self.items if len(self.items) == count else None

    def __str__(self) -> str:
        inner = {"": "Any", "iuf": "Scalar", "f": "Float", "iu": "Int"}[self.kinds]
        if self.form is not None:
            inner = repr(self.form)
        if self.role in ("array", "indexedarray"):
            ndim = f", ndim={self.ndim}" if self.ndim > 1 else ""
            return f"{self.role}(dtype={inner}{ndim})"
        return "Callable" if self.role == "function" else inner


ANYTHING = Pattern()
FUNCTION = Pattern("function")
# What has no place as the parameter of a kernel.
NOT_OF_KERNELS = ("function", "tuple")


def _tuple_pattern(items: tuple[Any, ...]) -> Pattern | None:
    """The pattern of `tuple[...]`; None where an item is no type."""
    rest = len(items) == 2 and items[1] is Ellipsis
    found: list[Any] = []
    for item in items[:1] if rest else items:
        pattern = pattern_of(item)
        try:
            found.append(pattern or to_ir_type(item))
        except LaunchError:
            return None
    return Pattern("tuple", items=tuple(found), rest=rest)


def is_open(dtype: object) -> bool:
    """True for what stands for several types.

    `Any`, the markers, open vectors and matrices, and variables of `typing`.
    """
    return dtype is Any or isinstance(dtype, (Marker, Form, TypeVar))


def pattern_of(obj: Any) -> Pattern | None:
    """The pattern of an annotation object; None where it names one type, or none at all."""
    if obj is Any or isinstance(obj, TypeVar):
        return ANYTHING
    if isinstance(obj, Reference):
        return pattern_of(obj.dtype)
    if isinstance(obj, Form):
        return Pattern(form=obj)
    if isinstance(obj, Marker):
        return Pattern(kinds=obj.kinds)
    if obj is Callable or getattr(obj, "__origin__", None) is Callable:
        return FUNCTION
    if obj is tuple or obj is typing.Tuple:  # noqa: UP006
        return Pattern("tuple", items=(ANYTHING,), rest=True)
    if getattr(obj, "__origin__", None) is tuple:
        return _tuple_pattern(typing.get_args(obj))
    if isinstance(obj, type):
        return getattr(obj, "__ir_pattern__", None)
    dtype = getattr(obj, "dtype", None)
    if is_open(dtype) and getattr(obj, "__ir_type__", None) is None:
        role: Any = getattr(obj, "__ir_role__", "array")
        form = dtype if isinstance(dtype, Form) else None
        return Pattern(role, int(obj.ndim), getattr(dtype, "kinds", ""), form)
    return None
