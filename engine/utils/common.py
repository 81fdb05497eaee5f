"""Shared code of the utilities: errors, tapes, access to arrays on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.lang.names import transformf
from engine.lang.types import scalar_of
from engine.runtime import events, transfer, views
from engine.runtime.annotation import element_info
from engine.runtime.array import array

NumpyArray = np.ndarray[Any, Any]


class UtilityError(LaunchError, RuntimeError):
    """A utility was given arrays that do not fit."""


class UtilityIndexError(UtilityError, IndexError):
    """A utility was given an axis that its array has not."""


class UtilityTypeError(UtilityError, TypeError):
    """A utility was given something of another type."""


def refused(
    message: str, help: str = "", code: str = "E206", kind: type[UtilityError] = UtilityError
) -> UtilityError:
    """The error to raise, at the user's call."""
    return kind(Diagnostic(code, message, call_span(), help))


def is_number(value: object) -> bool:
    """Whether a value is one real number; truth values are none."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_arrays(function: str, **arrays: Any) -> None:
    """Raises UtilityError (E206) for what is no array, and for arrays on several devices."""
    for name, a in arrays.items():
        if not isinstance(a, array):
            raise refused(f"{function}: {name} is an array, got {type(a).__name__}",
                          kind=UtilityTypeError)  # fmt: skip
    places = {a.device.alias for a in arrays.values()}
    if len(places) > 1:
        raise refused(f"{function}: arrays on several devices: {', '.join(sorted(places))}")


def flows(*arrays: array) -> bool:
    """Whether a tape records, and one of the arrays has a gradient."""
    return events.tape() is not None and any(a.requires_grad for a in arrays)


def on_host(a: array) -> NumpyArray:
    """The elements for work on the host, components last. Not to be written."""
    a._lend()
    return a._host()


def transform_expand(t: Any) -> Any:
    """A transform from 7 numbers: the position, then the quaternion."""
    return transformf(*(float(x) for x in t))


def refuse_in_graph(function: str, help: str) -> None:
    """Raises UtilityError (E213) where a graph is captured: the host would need a result now."""
    if events.graph() is not None:
        raise refused(f"{function} needs its result immediately, but a captured graph runs later",
                      help, "E213")  # fmt: skip


def put(dest: array, result: Any) -> None:
    """Writes what the host worked out."""
    transfer.assign(dest, np.ascontiguousarray(result))


def scalars(a: array) -> array:
    """All components of a contiguous array, in one dimension; gradients are shared."""
    scalar = scalar_of(a._ir.element)
    opaque = np.dtype((np.void, scalar.size))

    def operation(v: Any) -> Any:
        return v.reshape(-1).view(opaque)

    if not a._info.inner:
        return a.flatten()
    info = element_info(scalar)
    out = views.apply(a, operation, info.kind)
    out._origin, out._flag, out._retain = (a, operation), a._flag, a._retain
    return out


def in_one_piece(dest: array, compute: Callable[[array], None]) -> None:
    """Lets `compute` write a contiguous array, and copies it to `dest` if that is not one."""
    if dest.is_contiguous:
        compute(dest)
        return
    whole = transfer.clone(dest)
    compute(whole)
    transfer.copy(dest, whole)
