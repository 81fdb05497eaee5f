"""Operators of arrays: `a + b`, `-a`, `a *= 2.0`. Each is a `map` of the builtin."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.lang.structs import StructType
from engine.lang.types import ScalarType, scalar_of
from engine.lang.values import value_class


class Operators:
    """What arrays and indexed arrays have in common: arithmetic, element by element.

    Shapes are broadcast, numbers take the type of the array's components, and gradients flow on
    tapes. What is no array, number or element of one (a NumPy array, say) is left to itself.
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _apply("add", self, other, self)

    def __radd__(self, other: Any) -> Any:
        return _apply("add", other, self, self)

    def __iadd__(self, other: Any) -> Any:
        return _apply("add", self, other, self, True)

    def __sub__(self, other: Any) -> Any:
        return _apply("sub", self, other, self)

    def __rsub__(self, other: Any) -> Any:
        return _apply("sub", other, self, self)

    def __isub__(self, other: Any) -> Any:
        return _apply("sub", self, other, self, True)

    def __mul__(self, other: Any) -> Any:
        return _apply("mul", self, other, self)

    def __rmul__(self, other: Any) -> Any:
        return _apply("mul", other, self, self)

    def __imul__(self, other: Any) -> Any:
        return _apply("mul", self, other, self, True)

    def __truediv__(self, other: Any) -> Any:
        return _apply("div", self, other, self)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply("div", other, self, self)

    def __itruediv__(self, other: Any) -> Any:
        return _apply("div", self, other, self, True)

    def __floordiv__(self, other: Any) -> Any:
        return _apply("floordiv", self, other, self)

    def __rfloordiv__(self, other: Any) -> Any:
        return _apply("floordiv", other, self, self)

    def __ifloordiv__(self, other: Any) -> Any:
        return _apply("floordiv", self, other, self, True)

    def __mod__(self, other: Any) -> Any:
        return _apply("mod", self, other, self)

    def __rmod__(self, other: Any) -> Any:
        return _apply("mod", other, self, self)

    def __imod__(self, other: Any) -> Any:
        return _apply("mod", self, other, self, True)

    def __pow__(self, other: Any) -> Any:
        return _apply("pow", self, other, self)

    def __rpow__(self, other: Any) -> Any:
        return _apply("pow", other, self, self)

    def __ipow__(self, other: Any) -> Any:
        return _apply("pow", self, other, self, True)

    def __neg__(self) -> Any:
        return _mapped("neg", self)

    def __pos__(self) -> Any:
        return _mapped("pos", self)


def _apply(name: str, a: Any, b: Any, own: Any, in_place: bool = False) -> Any:
    other = b if a is own else a
    if not isinstance(other, Operators):
        element = own.data._ir.element if hasattr(own, "data") else own._ir.element
        if isinstance(other, (bool, int, float, np.number, np.bool_)):
            if isinstance(element, StructType):
                return NotImplemented
            scalar = scalar_of(element)
            if not _fits(other, scalar):
                return NotImplemented
            make: Any = value_class(scalar)
            other = make(other)
        elif getattr(type(other), "__ir_type__", None) is None:
            return NotImplemented
        a, b = (own, other) if a is own else (other, own)
    return _mapped(name, a, b, out=own if in_place else None)


def _fits(number: Any, scalar: ScalarType) -> bool:
    return scalar.kind == "f" or (
        scalar.kind != "b" and not isinstance(number, (float, np.floating))
    )


def _mapped(name: str, *inputs: Any, out: Any = None) -> Any:
    from engine.builtins.stubs import BUILTINS  # late: most programs never ask
    from engine.runtime.mapping import map

    return map(BUILTINS[name], *inputs, out=out)
