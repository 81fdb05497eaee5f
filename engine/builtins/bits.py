"""Bits of numbers: counting them, reading them as another type; and operators by component."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.builtins import infer as i
from engine.builtins import numeric as m
from engine.builtins import operators  # noqa: F401  (the scalar forms)
from engine.builtins.rules import by_component, call, holes
from engine.ir.ops import OPS, Derivative, NoDerivative, Op, register
from engine.lang.ctypes_ import ctype
from engine.lang.types import INT32, ArrayType, Type, is_float, scalar_of, shape_of

_INTEGERS = "integers carry no derivative"


def _bit_count(x: Any) -> Any:
    bits = x.dtype.itemsize * 8
    return np.int32(bin(int(x) & ((1 << bits) - 1)).count("1"))


register(
    Op(
        name="bit_count",
        user="bit_count",
        doc="bit_count(x): how many bits of an integer are set; a negative one counts in two's "
        "complement, so that bit_count(-1) is the width of its type.",
        infer=i.same(1, i.integer, INT32),
        c=call("bit_count", 1),
        numpy=_bit_count,
        derivative=NoDerivative(_INTEGERS),
    )
)


def reinterpretable(have: Type, want: Type) -> bool:
    """Whether the bytes of one type can be read as the other: as many, and none of a bool."""
    if isinstance(have, ArrayType) or isinstance(want, ArrayType):
        return False
    return have.size == want.size and "b" not in (scalar_of(have).kind, scalar_of(want).kind)


def _reinterpret(t: Type, x: Any) -> Any:
    assert not isinstance(t, ArrayType)
    data = np.ascontiguousarray(x).tobytes()
    return np.frombuffer(data, scalar_of(t).numpy).reshape(shape_of(t)).copy()[()]


register(
    Op(
        name="reinterpret",
        doc="cast(x, dtype): the bytes of x read as a value of another type of the same size.",
        infer=i.explicit,
        c=lambda types, result: f"eng::reinterpret<{ctype(result)}>({holes(1)})",
        numpy=_reinterpret,
        derivative=NoDerivative("bits do not vary smoothly"),
        explicit=True,
        fits=lambda types, t: len(types) == 1 and reinterpretable(types[0], t),
    )
)


def _by_component(
    name: str, user: str, count: int, accepts: i.Accepts, numpy: Callable[..., Any]
) -> None:
    """The form of an operator for vectors and matrices of one type."""
    scalar = OPS[name]
    derivative: Derivative = NoDerivative(_INTEGERS)
    if not isinstance(scalar.derivative, NoDerivative):
        derivative = by_component(scalar)
    register(
        Op(
            name=f"{name}_vec",
            user=user,
            doc=scalar.doc.replace(":", ", on vectors and matrices: by component,", 1),
            infer=i.same(count, accepts),
            c=call(f"{name}_vec", count),
            numpy=numpy,
            derivative=derivative,
            domain=scalar.domain,
        )
    )


def _whole(t: Type) -> bool:
    return i.tensor(t) and not is_float(t)


def _componentwise(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: np.asarray(f(*args))


_OPERATORS: Sequence[tuple[str, str, int, Callable[..., Any]]] = (
    ("bitand", "bit_and", 2, np.bitwise_and),
    ("bitor", "bit_or", 2, np.bitwise_or),
    ("bitxor", "bit_xor", 2, np.bitwise_xor),
    ("shl", "lshift", 2, m.shl),
    ("shr", "rshift", 2, m.shr),
    ("invert", "invert", 1, np.invert),
)
_by_component("mod", "mod", 2, i.tensor, _componentwise(m.mod))
for _name, _user, _count, _f in _OPERATORS:
    _by_component(_name, _user, _count, _whole, _componentwise(_f))
