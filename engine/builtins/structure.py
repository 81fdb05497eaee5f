"""Structure: copies, casts, construction, components, choice, and facts about the launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.builtins import infer as i
from engine.builtins import numeric as m
from engine.builtins.rules import Maybe, call, choose, components, holes, inner, or_zero
from engine.ir.builder import E
from engine.ir.ops import Domain, Infer, NoDerivative, Op, Vjp, register
from engine.lang.ctypes_ import ctype
from engine.lang.types import (
    BOOL,
    INT32,
    UINT64,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
    is_float,
    is_integer,
    scalar_of,
    shape_of,
)

_LINE = (-2.0, 2.0)


def _explicit(name: str, types: Sequence[Type], result: Type) -> str:
    return f"eng::{name}<{ctype(result)}>({holes(len(types))})"


def _shape(t: Type) -> tuple[int, ...]:
    assert not isinstance(t, ArrayType)
    return shape_of(t)


def _constructed(t: Type, *parts: Any) -> Any:
    found, shape = np.array(parts, scalar_of(t).numpy), _shape(t)
    return found if len(shape) == 1 else found.reshape(shape)


# Copies and casts.


def _cast_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    return (g.make("cast", a[0].type) if is_float(a[0].type) else None,)


def _cast_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    return None if t[0] is None else t[0].make("cast", y.type)


register(
    Op(
        name="copy",
        doc="copy(x): the same value in another temporary.",
        infer=lambda types: types[0] if len(types) == 1 else None,
        c="{0}",
        numpy=lambda x: x,
        derivative=Vjp(lambda g, a, y: (g,), "linear"),
        domain=Domain((_LINE,)),
    )
)
register(
    Op(
        name="cast",
        doc="cast<T>(x): a scalar of another type, or a vector or matrix over one. Floats "
        "become integers by truncation and saturate; NaN becomes 0.",
        infer=i.explicit,
        c=lambda types, result: _explicit("cast", types, result),
        numpy=m.cast,
        derivative=Vjp(_cast_rule, "general", _cast_jvp),
        explicit=True,
        domain=Domain((_LINE,)),
    )
)

# Construction.


def _construct_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    return components(g)


def _construct_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    if not t or all(x is None for x in t):
        return None
    parts = [or_zero(x, like) for x, like in zip(t, a, strict=True)]
    return parts[0].make("construct", y.type, *parts[1:])


def _fill_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    return (inner(g, g.full(1)),)


register(
    Op(
        name="construct",
        doc="construct<T>(a, b, ...): a vector or matrix from its components, row by row.",
        infer=i.explicit,
        c=lambda types, result: _explicit("construct", types, result),
        numpy=_constructed,
        derivative=Vjp(_construct_rule, "general", _construct_jvp),
        explicit=True,
        domain=Domain((_LINE,)),
    )
)
register(
    Op(
        name="fill",
        doc="fill<T>(s): a vector or matrix with every component the same.",
        infer=i.explicit,
        c=lambda types, result: _explicit("fill", types, result),
        numpy=lambda t, s: np.full(_shape(t), s, scalar_of(t).numpy),
        derivative=Vjp(
            _fill_rule,
            "general",
            lambda t, a, y: None if t[0] is None else t[0].make("fill", y.type),
        ),
        explicit=True,
        domain=Domain((_LINE,)),
    )
)
register(
    Op(
        name="identity",
        doc="identity<T>(): the square matrix with ones on its diagonal.",
        infer=i.explicit,
        c=lambda types, result: _explicit("identity", types, result),
        numpy=lambda t: np.eye(_shape(t)[0], dtype=scalar_of(t).numpy),
        derivative=NoDerivative("a constant"),
        explicit=True,
    )
)

# Components. Indices of any integer type; the interpreter checks them, native code does not.


def _indices(types: Sequence[Type], count: int) -> bool:
    return len(types) == count and all(i.integer(t) for t in types)


def _extract_type(types: Sequence[Type]) -> Type | None:
    if types and isinstance(types[0], VectorType) and _indices(types[1:], 1):
        return types[0].scalar
    if types and isinstance(types[0], MatrixType) and _indices(types[1:], 2):
        return types[0].scalar
    return None


def _extract_row_type(types: Sequence[Type]) -> Type | None:
    if types and isinstance(types[0], MatrixType) and _indices(types[1:], 1):
        return VectorType(types[0].scalar, types[0].cols)
    return None


def _insert_type(types: Sequence[Type]) -> Type | None:
    fits = _extract_type(types[:-1]) is not None and types[-1] == scalar_of(types[0])
    return types[0] if fits else None


def _insert_row_type(types: Sequence[Type]) -> Type | None:
    row = _extract_row_type(types[:-1])
    return types[0] if row is not None and row == types[-1] else None


def _at(index: Sequence[Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    found = tuple(int(k) for k in index)
    if any(not 0 <= k < n for k, n in zip(found, shape, strict=False)):
        raise IndexError(f"component {found} of a value of shape {shape}")
    return found


def _extract(x: Any, *index: Any) -> Any:
    part = x[_at(index, x.shape)]
    return part.copy() if isinstance(part, np.ndarray) else part


def _insert(x: Any, *rest: Any) -> Any:
    out = x.copy()
    out[_at(rest[:-1], x.shape)] = rest[-1]
    return out


def _extracting(name: str, doc: str, infer: Infer, back: str) -> None:
    """extract(x, i...): linear in x; the adjoint puts the cotangent into zeros."""
    register(
        Op(
            name=name,
            doc=doc,
            infer=infer,
            c=lambda types, _: call(name, len(types)),
            numpy=_extract,
            derivative=Vjp(
                lambda g, a, y: (
                    a[0].full(0).call(back, *a[1:], g),
                    *[None for _ in a[1:]],
                ),
                "linear",
                lambda t, a, y: None if t[0] is None else t[0].call(name, *a[1:]),
            ),
            domain=Domain((_LINE,)),
        )
    )


def _inserting(name: str, doc: str, infer: Infer, forth: str) -> None:
    """insert(x, i..., s): linear in x and s together."""

    def rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
        index = a[1:-1]
        rest = g.call(name, *index, a[-1].full(0))
        return (rest, *[None for _ in index], g.call(forth, *index))

    def jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
        if t[0] is None and t[-1] is None:
            return None
        return or_zero(t[0], a[0]).call(name, *a[1:-1], or_zero(t[-1], a[-1]))

    register(
        Op(
            name=name,
            doc=doc,
            infer=infer,
            c=lambda types, _: call(name, len(types)),
            numpy=_insert,
            derivative=Vjp(rule, "linear", jvp),
            domain=Domain((_LINE,)),
        )
    )


_extracting("extract", "extract(x, i...): one component of a vector (i) or matrix (i, j).",
            _extract_type, "insert")  # fmt: skip
_extracting("extract_row", "extract_row(a, i): one row of a matrix.", _extract_row_type,
            "insert_row")  # fmt: skip
_inserting("insert", "insert(x, i..., s): the vector or matrix with one component replaced.",
           _insert_type, "extract")  # fmt: skip
_inserting("insert_row", "insert_row(a, i, v): the matrix with one row replaced.",
           _insert_row_type, "extract_row")  # fmt: skip

# Indices that count from the end.


def _wrap_type(types: Sequence[Type]) -> Type | None:
    fits = len(types) == 2 and types[0] == types[1] and i.integer(types[0])
    return types[0] if fits and scalar_of(types[0]).kind == "i" else None


register(
    Op(
        name="wrap_index",
        doc="wrap_index(i, n): the index i, or n + i where i is negative (counted from the end).",
        infer=_wrap_type,
        c="(({0}) < 0 ? ({0}) + ({1}) : ({0}))",
        numpy=lambda k, n: np.add(k, n) if k < 0 else k,
        derivative=NoDerivative("an index is an integer"),
    )
)

register(
    Op(
        name="within",
        doc="within(i, n): the index i along a dimension of a view, which has n places there.",
        infer=_wrap_type,
        c="({0})",
        numpy=lambda k, n: k,
        derivative=NoDerivative("an index is an integer"),
    )
)

# Choice. Both values are evaluated; the cotangent goes only to the one that was taken.


def _choice_type(types: Sequence[Type]) -> Type | None:
    fits = len(types) == 3 and types[1] == types[2] and not isinstance(types[1], ArrayType)
    return types[1] if fits else None


def _truth(cond: E) -> E:
    return cond if cond.type == BOOL else cond.call("ne", 0)


def _choice_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    cond = _truth(a[0])
    return (None, cond.select(g, 0), cond.select(0, g))


for _name, _accepts in (("select", i.boolean), ("where_int", i.integer)):
    register(
        Op(
            name=_name,
            user="where",
            doc="where(cond, a, b): a where the condition holds, else b; both are evaluated.",
            infer=lambda types, ok=_accepts: (  # type: ignore[misc]
                _choice_type(types) if types and ok(types[0]) else None
            ),
            c=call(_name, 3),
            numpy=lambda cond, a, b: a if cond else b,
            derivative=Vjp(
                _choice_rule, "linear", lambda t, a, y: choose(_truth(a[0]), t[1], t[2])
            ),
            domain=Domain(((0.0, 1.0), _LINE, _LINE)),
        )
    )

register(
    Op(
        name="replayed",
        doc="replayed(a, b): a; the backward pass of a kernel goes on with b, the replay's value.",
        infer=lambda types: types[0] if len(types) == 2 and types[0] == types[1] else None,
        c=call("replayed", 2),
        numpy=lambda a, b: a,
        derivative=Vjp(lambda g, a, y: (g, None), "general", lambda t, a, y: t[0]),
        domain=Domain((_LINE, _LINE)),
    )
)

# Facts about the launch. Code generators and the interpreter handle these by name.


def _needs_thread(*_: object) -> Any:
    raise TypeError("tid() has a value only inside a kernel")


def _shape_type(types: Sequence[Type]) -> Type | None:
    return INT32 if len(types) == 2 and isinstance(types[0], ArrayType) else None


register(
    Op(
        name="tid",
        doc="tid(dim, arity): coordinate `dim` of the thread in the launch grid, of `arity` that "
        "are asked for; 0 along an axis that the grid has not.",
        infer=lambda types: INT32 if _indices(types, 2) else None,
        c=call("tid", 2),
        numpy=_needs_thread,
        derivative=NoDerivative("an index is an integer"),
    )
)
register(
    Op(
        name="thread",
        doc="thread(): the thread's linear index, row-major over the launch grid.",
        infer=lambda types: INT32 if not types else None,
        c=call("thread", 0),
        numpy=_needs_thread,
        derivative=NoDerivative("an index is an integer"),
    )
)


def _trips_type(types: Sequence[Type]) -> Type | None:
    same = len(types) == 3 and types[0] == types[1] == types[2]
    return UINT64 if same and isinstance(types[0], ScalarType) and is_integer(types[0]) else None


def _trips(start: Any, stop: Any, step: Any) -> Any:
    a, b, c = int(start), int(stop), int(step)
    if c < 0:
        a, b, c = b, a, -c
    return np.uint64((b - a + c - 1) // c if c and b > a else 0)


register(
    Op(
        name="trips",
        doc="trips(start, stop, step): how many values a range has; none for a step of 0. "
        "Unsigned 64-bit, which holds the count for integers of any type and any bounds.",
        infer=_trips_type,
        c="eng::trips({0}, {1}, {2})",
        numpy=_trips,
        derivative=NoDerivative("a count is an integer"),
    )
)
register(
    Op(
        name="shape",
        doc="shape(array, dim): how many elements an array has along one dimension.",
        infer=_shape_type,
        c=call("shape", 2),
        numpy=lambda array, dim: np.int32(array.shape[int(dim)]),
        derivative=NoDerivative("a shape is an integer"),
    )
)
