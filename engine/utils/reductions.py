"""Sums of arrays, and of products."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from engine.lang.types import ScalarType, ValueType, scalar_of
from engine.lang.values import value_class
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.launch import launch
from engine.runtime.transfer import remake
from engine.utils.common import (
    UtilityIndexError,
    UtilityTypeError,
    check_arrays,
    flows,
    in_one_piece,
    on_host,
    put,
    refused,
    scalars,
)


def array_sum(
    values: array, out: array | None = None, value_count: int | None = None, axis: int | None = None
) -> Any:
    """The sum of an array's elements, of all or along an axis.

    Args:
        values: scalars, vectors or matrices of floats, of any shape.
        out: receives the sums: shape (1,), or that of `values` with 1 in place of the axis;
            dtype that of `values`. On a tape gradients flow from it to `values`.
        value_count: how many elements count (in row-major order, or along the axis); all of them
            where left out.
        axis: the axis to sum along, from the end where negative; all elements where left out.

    Returns `out`; without it and without an axis the sum as NumPy has it: a constant to tapes.
    Raises UtilityError (a LaunchError and a RuntimeError) E202 for other types, E206 for shapes
    that do not fit; with IndexError among its bases for an axis that is not there.
    """
    check_arrays("array_sum", values=values)
    _floats("array_sum", values)
    return _reduced("array_sum", [values], values._ir.element, out, value_count, axis)


def array_inner(
    a: array, b: array, out: array | None = None, count: int | None = None, axis: int | None = None
) -> Any:
    """The sum of the products of two arrays' elements (of all components), or along an axis.

    Args:
        a: floats, vectors or matrices.
        b: of the same type and shape.
        out: receives the sums: as for `array_sum`, but scalars. On a tape gradients flow from it
            to both.
        count: as `value_count` of `array_sum`.
        axis: as for `array_sum`.

    Returns and raises what `array_sum` does.
    """
    check_arrays("array_inner", a=a, b=b)
    if a.shape != b.shape:
        raise refused(f"array_inner: the arrays differ in shape: {a.shape} and {b.shape}")
    if a._ir.element != b._ir.element:
        raise refused(f"array_inner: the arrays differ in type: {a.dtype.__name__} and "
                      f"{b.dtype.__name__}", code="E202")  # fmt: skip
    _floats("array_inner", a)
    return _reduced("array_inner", [a, b], scalar_of(a._ir.element), out, count, axis)


def _floats(function: str, a: array) -> None:
    if not a._info.floating or a._info.numpy.names is not None:
        raise refused(f"{function} takes floats, got {a.dtype.__name__}",
                      "cast the array to floats first: utils.array_cast", "E202")  # fmt: skip


def _reduced(
    function: str, given: list[array], kind: ValueType, out: array | None, count: int | None,
    axis: int | None,
) -> Any:  # fmt: skip
    first = given[0]
    shape, count = _extent(function, first, count, axis)
    if out is None:
        if axis is not None and events.graph() is not None:
            later = array._allocate(shape, kind, True, first.device)
            later.requires_grad = flows(*given)
            remake(later)
            return _reduced(function, given, kind, later, count, axis)
        made = array._allocate(shape, kind, True, first.device)
        if flows(*given) and axis is not None:
            made.requires_grad = True
    else:
        made = out
        check_arrays(function, values=first, out=out)
        if out._ir.element != kind:
            raise refused(f"{function}: `out` must have the type {value_class(kind).__name__}",
                          code="E202")  # fmt: skip
        if out.shape != shape:
            raise refused(f"{function}: `out` must have shape {shape}")
    if out is not None and events.deferred(
        lambda: _reduced(function, given, kind, out, count, axis)
    ):
        return out
    if made.requires_grad and flows(*given):
        _on_tape(given, made, count, axis)
    elif made.size:
        put(made, _on_host(given, shape, count, axis).astype(made._info.numpy, copy=False))
    if out is not None or axis is not None:
        return made
    result = made._host()[0]
    return result if result.ndim == 0 else np.array(result)


def _extent(
    function: str, a: array, count: int | None, axis: int | None
) -> tuple[tuple[int, ...], int]:
    """The shape of the result, and how many elements are summed."""
    if axis is None:
        length = a.size
        shape: tuple[int, ...] = (1,)
    else:
        at = _index(function, "axis", axis)
        if not -a.ndim <= at < a.ndim:
            raise refused(f"{function}() axis {at} is out of bounds for {a.ndim} dimensions",
                          kind=UtilityIndexError)  # fmt: skip
        at %= a.ndim
        length, shape = a.shape[at], (*a.shape[:at], 1, *a.shape[at + 1 :])
    count = length if count is None else _index(function, "the number of elements", count)
    if not 0 <= count <= length:
        raise refused(f"{function}: {count} elements cannot be summed: there are only {length}")
    return shape, count


def _index(function: str, what: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise refused(f"{function}: {what} must be an integer, got {value!r}",
                      kind=UtilityTypeError) from None  # fmt: skip


def _on_host(given: list[array], shape: tuple[int, ...], count: int, axis: int | None) -> Any:
    inner = given[0]._info.inner
    parts = [on_host(a) for a in given]
    if axis is None:
        parts = [p.reshape((-1, *inner))[:count] for p in parts]
        at = 0
    else:
        at = axis % given[0].ndim
        parts = [p[(slice(None),) * at + (slice(count),)] for p in parts]
    with np.errstate(all="ignore"):
        if len(parts) == 1:
            return parts[0].sum(at, parts[0].dtype).reshape(shape + inner)
        product = parts[0] * parts[1]
        axes = (at, *range(product.ndim - len(inner), product.ndim))
        return product.sum(axes, product.dtype).reshape(shape)


def _on_tape(given: list[array], out: array, count: int, axis: int | None) -> None:
    from engine.utils import kernels

    first = given[0]
    at = 0 if axis is None else axis % first.ndim
    shape: tuple[int, ...] = (first.size,) if axis is None else first.shape
    before, length, after = math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])
    flat = [a.contiguous() for a in given]
    if len(given) == 2 and not isinstance(first._ir.element, ScalarType):
        # Components become elements, summed with the others: those behind the axis go before it.
        size = math.prod(first._info.inner)
        if after > 1:
            order = [*range(at), *range(at + 1, first.ndim), at]
            flat = [a.transpose(order).contiguous() for a in flat]
            before, after = before * after, 1
        blocks = [scalars(a).reshape((before, length * size, 1)) for a in flat]
        count *= size
    else:
        blocks = [a.reshape((before, length, after)) for a in flat]

    def compute(whole: array) -> None:
        grid = (before, after)
        kernel = kernels.sum_of if len(given) == 1 else kernels.inner_of_scalars
        launch(kernel, grid, inputs=[*blocks, count], outputs=[whole.reshape(grid)])

    in_one_piece(out, compute)
