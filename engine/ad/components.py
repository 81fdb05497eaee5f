"""Tracks known components of vectors and matrices through the value that was just built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.ir import nodes as n
from engine.ir.builder import const
from engine.lang.types import INT32, ArrayType, MatrixType, Type, scalar_of, shape_of

_STEPS = 1024  # how many replaced components are looked through


def places(t: Type) -> list[tuple[n.Const, ...]]:
    """The indices of all components of a value, row by row; the empty path of a scalar."""
    assert not isinstance(t, ArrayType)
    return [tuple(n.Const(k, INT32) for k in at) for at in np.ndindex(*shape_of(t))]


def component(args: Sequence[n.Atom], made: Mapping[n.Var, n.Let]) -> n.Atom | None:
    """The atom that `extract(args)` is equal to; None where that is not known.

    made: how temporaries were made.
    """
    x, *index = args
    at = [i.value for i in index if isinstance(i, n.Const)]
    assert not isinstance(x.type, ArrayType)
    sizes = shape_of(x.type)
    inside = all(isinstance(k, int) and 0 <= k < size for k, size in zip(at, sizes, strict=False))
    known = len(at) == len(index) and inside
    for _ in range(_STEPS):
        if isinstance(x, n.Const):
            return _of_constant(x, at if known else None)
        found = made.get(x)
        if found is None or not known:
            return None
        if found.op == "construct":
            return _steady(found.args[_flat(found.dst, at)])
        if found.op == "fill":
            return _steady(found.args[0])
        if found.op != "insert":
            return None
        *where, value = found.args[1:]
        if not all(isinstance(i, n.Const) for i in where):
            return None
        if [i.value for i in where if isinstance(i, n.Const)] == at:
            return _steady(value)
        x = found.args[0]
    return None


def _flat(v: n.Var, at: Sequence[object]) -> int:
    places = [k for k in at if isinstance(k, int)]
    return places[0] * v.type.cols + places[1] if isinstance(v.type, MatrixType) else places[0]


def _steady(a: n.Atom) -> n.Atom | None:
    """The atom, unless it may have changed since."""
    return None if isinstance(a, n.Var) and a.mutable else a


def _of_constant(x: n.Const, at: Sequence[object] | None) -> n.Atom | None:
    """A component of a constant; one at an unknown place only where all are the same."""
    data: object = x.value
    for k in at or [0] * len(shape_of(x.type)):
        if not isinstance(data, tuple) or not isinstance(k, int) or not 0 <= k < len(data):
            return None
        data = data[k]
    if not isinstance(data, (bool, int, float)) or (at is None and x != const(data, x.type)):
        return None
    return n.Const(data, scalar_of(x.type))
