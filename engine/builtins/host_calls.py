"""Resolved calls of builtins on the host, kept by the classes of their arguments.

What such a call means is resolved once: it hangs on the types of its arguments alone, but for
integers, which a call takes where they fit into 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.ir.as_python import Evaluation
from engine.lang.scalars import SCALAR_CLASSES, host_number
from engine.lang.types import FLOAT32, INT32, MatrixType, ScalarType, Type, VectorType
from engine.lang.vectors import Components, vector_class

MISS = object()  # a call that has to be resolved
MOST = 64  # classes of arguments that are remembered of one builtin
_SCALARS = frozenset({bool, *(c for c in SCALAR_CLASSES.values() if c.__name__ != "bfloat16")})
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


class HostCall:
    """One meaning of a builtin. run: takes NumPy values, gives a tuple of them."""

    __slots__ = ("_into", "_out", "_run", "_whole")

    def __init__(
        self, into: Sequence[Callable[[Any], Any]], whole: Sequence[int], run: Evaluation,
        out: Sequence[Callable[[Any], Any]],
    ) -> None:  # fmt: skip
        self._into = tuple(into)
        self._whole = tuple(whole)
        self._run = run
        self._out = tuple(out)

    def __call__(self, args: tuple[Any, ...]) -> Any:
        for k in self._whole:
            if not _LOW <= args[k] <= _HIGH:
                return MISS
        with np.errstate(all="ignore"):
            into = self._into
            try:  # most have one or two, for which a loop takes a while
                if len(into) == 2:
                    values: Any = into[0](args[0]), into[1](args[1])
                elif len(into) == 1:
                    values = (into[0](args[0]),)
                else:
                    values = [f(a) for f, a in zip(into, args, strict=True)]
            except OverflowError:  # an integer that wraps
                return MISS
            found = self._run(*values)
        out = self._out
        if len(out) == 1:
            return out[0](found[0])
        return tuple([f(x) for f, x in zip(out, found, strict=False)])


def host_call(
    args: Sequence[Any], types: Sequence[Type], casts: Sequence[ScalarType | None],
    run: Evaluation, results: Sequence[Type],
) -> HostCall | None:  # fmt: skip
    """What a call with values of the classes of these does; None where each has to be looked at.

    types: of the arguments; casts: what literals become.
    """
    classes = [type(a) for a in args]
    whole = [k for k, cls in enumerate(classes) if cls is int]
    if not all(_LOW <= args[k] <= _HIGH for k in whole):
        return None  # these types are of these numbers alone
    into: list[Callable[[Any], Any]] = []
    for cls, t, cast in zip(classes, types, casts, strict=True):
        target = cast or t
        if issubclass(cls, Components):
            into.append(_data)
        elif isinstance(target, ScalarType) and (
            cls in (float, int, np.float32, np.float64) or cls in _SCALARS
        ):
            into.append(target.numpy.type)
        else:
            return None
    out = [_made(t) for t in results]
    if None in out:
        return None
    return HostCall(into, whole, run, out)  # type: ignore[arg-type]


def _data(value: Components) -> Any:
    return value._data


def _made(t: Type) -> Callable[[Any], Any] | None:
    """How a result comes to the host."""
    if isinstance(t, ScalarType):
        if t in (FLOAT32, INT32):
            return _item
        return lambda x: host_number(t, x)
    if isinstance(t, (VectorType, MatrixType)):
        return vector_class(t)._of
    return None


def _item(x: Any) -> Any:
    return x.item()
