"""Parameters of no one type: the markers that users write, and the patterns they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from engine.lang.structs import ARRAYS, UserType
from engine.lang.types import ScalarType


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
class Pattern:
    """What a parameter takes whose type the call decides.

    role: `value` (anything), `array` or `function`. ndim: of arrays. kinds: of the scalar
    that a value is, or that an array's elements are; "" for any type.
    """

    role: Literal["value", "array", "function"] = "value"
    ndim: int = 0
    kinds: str = ""

    def accepts(self, t: UserType) -> bool:
        """Whether a parameter of this pattern takes values of a type."""
        if self.role == "function":
            return False
        of: UserType = t
        if self.role == "array":
            if not isinstance(t, ARRAYS) or t.ndim != self.ndim:
                return False
            of = t.element
        if not self.kinds:
            return True
        return isinstance(of, ScalarType) and of.kind in self.kinds

    def __str__(self) -> str:
        inner = {"": "Any", "iuf": "Scalar", "f": "Float", "iu": "Int"}[self.kinds]
        if self.role == "array":
            ndim = f", ndim={self.ndim}" if self.ndim > 1 else ""
            return f"array(dtype={inner}{ndim})"
        return "Callable" if self.role == "function" else inner


ANYTHING = Pattern()
FUNCTION = Pattern("function")


def is_open(dtype: object) -> bool:
    """True for what stands for several types: `Any` and the markers."""
    return dtype is Any or isinstance(dtype, Marker)


def pattern_of(obj: Any) -> Pattern | None:
    """The pattern of an annotation object; None where it names one type, or none at all."""
    if obj is Any:
        return ANYTHING
    if isinstance(obj, Marker):
        return Pattern(kinds=obj.kinds)
    if obj is Callable or getattr(obj, "__origin__", None) is Callable:
        return FUNCTION
    if isinstance(obj, type):
        return getattr(obj, "__ir_pattern__", None)
    dtype = getattr(obj, "dtype", None)
    if is_open(dtype) and getattr(obj, "__ir_type__", None) is None:
        return Pattern("array", int(obj.ndim), getattr(dtype, "kinds", ""))
    return None
