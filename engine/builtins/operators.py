"""The meaning of the language's operators: arithmetic, comparison, logic, bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.builtins import infer as i
from engine.builtins import numeric as m
from engine.builtins.rules import FLAT, Maybe, call
from engine.ir.builder import E
from engine.ir.ops import Domain, Elementwise, Infer, NoDerivative, Op, Vjp, register
from engine.lang.types import BOOL

_WIDE = (-2.0, 2.0)
_AWAY = (0.5, 3.0)


def _div_partials(a: Sequence[E], y: E) -> Sequence[Maybe]:
    inverse = 1 / a[1]
    return (inverse, -y * inverse)


def _mod_partials(a: Sequence[E], y: E) -> Sequence[Maybe]:
    # The quotient is taken from the exact remainder: trunc(a / b) is off by one
    # where a / b rounds up to the next integer.
    return (y.lit(1), -((a[0] - y) / a[1]).call("rint"))


register(
    Op(
        name="add",
        user="add",
        doc="add(a, b): the sum of two numbers, vectors, matrices, quaternions or transforms of "
        "one type; integers wrap.",
        infer=i.same(2, i.additive),
        c="({0} + {1})",
        numpy=np.add,
        derivative=Vjp(lambda g, a, y: (g, g), "linear"),
        domain=Domain((_WIDE, _WIDE)),
    )
)
register(
    Op(
        name="sub",
        user="sub",
        doc="sub(a, b): the difference of two numbers, vectors, matrices, quaternions or "
        "transforms of one type.",
        infer=i.same(2, i.additive),
        c="({0} - {1})",
        numpy=np.subtract,
        derivative=Vjp(lambda g, a, y: (g, -g), "linear"),
        domain=Domain((_WIDE, _WIDE)),
    )
)
register(
    Op(
        name="mul",
        user="mul",
        doc="mul(a, b): the product of two numbers of one type; integers wrap.",
        infer=i.same(2, i.number),
        c="({0} * {1})",
        numpy=np.multiply,
        derivative=Elementwise(lambda a, y: (a[1], a[0])),
        domain=Domain((_WIDE, _WIDE)),
    )
)
register(
    Op(
        name="div",
        user="div",
        doc="div(a, b): the quotient; integers truncate toward zero, and x / 0 is 0 for them.",
        infer=i.same(2, i.number),
        c=call("div", 2),
        numpy=m.div,
        derivative=Elementwise(_div_partials),
        domain=Domain((_WIDE, _AWAY), singular=(0.0,)),
    )
)
register(
    Op(
        name="mod",
        user="mod",
        doc="mod(a, b): the remainder of truncated division, with the sign of `a`; "
        "x % 0 is 0 for integers and NaN for floats.",
        infer=i.same(2, i.number),
        c=call("mod", 2),
        numpy=m.mod,
        derivative=Elementwise(_mod_partials),
        # Between multiples of b: a / b stays in (1.2, 1.8).
        domain=Domain(((2.5, 3.4), (1.9, 2.05)), singular=(0.0,)),
    )
)
register(
    Op(
        name="floordiv",
        user="floordiv",
        doc="floordiv(a, b): the quotient rounded down; x // 0 is 0 for integers.",
        infer=i.same(2, i.number),
        c=call("floordiv", 2),
        numpy=m.floordiv,
        derivative=FLAT,
        domain=Domain((_WIDE, _AWAY), singular=(0.0,)),
    )
)
register(
    Op(
        name="neg",
        user="neg",
        doc="neg(x): the number, vector, matrix, quaternion or transform with the opposite sign.",
        infer=i.same(1, i.additive),
        c=call("neg", 1),
        numpy=np.negative,
        derivative=Vjp(lambda g, a, y: (-g,), "linear"),
        domain=Domain((_WIDE,)),
    )
)


Meaning = Callable[..., Any]


def _truth(
    name: str, user: str, doc: str, infer: Infer, c: str, numpy: Meaning, reason: str
) -> None:
    """An operation on booleans or integers, which carry no derivative."""
    register(
        Op(
            name=name,
            user=user,
            doc=doc,
            infer=infer,
            c=c,
            numpy=numpy,
            derivative=NoDerivative(reason),
        )
    )


_COMPARISONS: tuple[tuple[str, str, i.Accepts, Meaning], ...] = (
    ("eq", "==", i.scalar, np.equal),
    ("ne", "!=", i.scalar, np.not_equal),
    ("lt", "<", i.number, np.less),
    ("le", "<=", i.number, np.less_equal),
    ("gt", ">", i.number, np.greater),
    ("ge", ">=", i.number, np.greater_equal),
)
_LOGIC: tuple[tuple[str, str, str, int, Meaning], ...] = (
    ("land", "", "land(a, b): true where both are.", 2, np.logical_and),
    ("lor", "", "lor(a, b): true where at least one is.", 2, np.logical_or),
    ("lnot", "unot", "unot(a): true where `a` is false.", 1, np.logical_not),
)
# `bitand`, `bitor` and `compl` are reserved words of C++: the native names differ.
_BITS: tuple[tuple[str, str, str, str, Meaning], ...] = (
    ("bitand", "bit_and", "bit_and", "(a, b): bits set in both integers.", np.bitwise_and),
    ("bitor", "bit_or", "bit_or", "(a, b): bits set in at least one integer.", np.bitwise_or),
    ("bitxor", "bit_xor", "bit_xor", "(a, b): bits set in only one integer.", np.bitwise_xor),
    ("shl", "lshift", "shl", "(a, b): bits moved up by b modulo the bit width.", m.shl),
    ("shr", "rshift", "shr", "(a, b): bits moved down, the sign kept; b as in lshift.", m.shr),
    ("invert", "invert", "bit_not", "(a): every bit flipped.", np.invert),
)

for _name, _sign, _accepts, _compare in _COMPARISONS:
    _truth(
        _name,
        "",
        f"{_name}(a, b): a {_sign} b, on scalars of one type; NaN is unequal to everything.",
        i.same(2, _accepts, BOOL),
        f"({{0}} {_sign} {{1}})",
        _compare,
        "a comparison is true or false",
    )
for _name, _user, _doc, _count, _f in _LOGIC:
    why = "truth values carry no derivative"
    _truth(_name, _user, _doc, i.same(_count, i.boolean), call(_name, _count), _f, why)
for _name, _user, _c, _doc, _f in _BITS:
    _count = 1 if _name == "invert" else 2
    why = "integers carry no derivative"
    _truth(_name, _user, _user + _doc, i.same(_count, i.integer), call(_c, _count), _f, why)
