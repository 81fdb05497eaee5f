"""Running sums, and conversions of whole arrays."""

from __future__ import annotations

import operator

import numpy as np

from engine.lang.structs import StructType
from engine.lang.types import MatrixType, scalar_of
from engine.runtime import events, transfer
from engine.runtime.array import array
from engine.runtime.launch import launch
from engine.utils.common import check_arrays, flows, in_one_piece, on_host, put, refused, scalars

_SCANNED = ("int32", "int64", "float32", "float64")


def array_scan(in_array: array, out_array: array, inclusive: bool = True) -> None:
    """Writes the running sums of an array, component by component, to another (or to itself).

    Args:
        in_array: scalars or vectors over int32, int64, float32 or float64.
        out_array: of the same type and size. On a tape gradients flow from it to `in_array`.
        inclusive: whether a sum has its own element in it.

    Raises UtilityError (a LaunchError and a RuntimeError) E202 for types, E206 for sizes.
    """
    check_arrays("array_scan", in_array=in_array, out_array=out_array)
    if in_array.size != out_array.size:
        raise refused(f"array_scan: {in_array.size} elements do not fit {out_array.size}")
    info, shape = in_array._info, out_array.shape
    if info is not out_array._info and info.kind != out_array._info.kind:
        raise refused(f"array_scan: sums of {in_array.dtype.__name__} cannot be stored as "
                      f"{out_array.dtype.__name__}", code="E202")  # fmt: skip
    kind = info.kind
    if isinstance(kind, (StructType, MatrixType)) or scalar_of(kind).name not in _SCANNED:
        raise refused(f"array_scan takes scalars and vectors of {', '.join(_SCANNED)}, "
                      f"got {in_array.dtype.__name__}", code="E202")  # fmt: skip
    if not in_array.size:
        return
    if events.graph() is not None and events.deferred(
        lambda: array_scan(in_array, out_array, inclusive)
    ):
        return
    if out_array.requires_grad and flows(in_array):
        from engine.utils import kernels

        # What is scanned in place is read from a copy: a gradient of sums wants the summands'.
        source = transfer.clone(in_array).flatten()

        def compute(whole: array) -> None:
            launch(kernels.scan_of, 1, inputs=[source, whole.flatten(), int(inclusive)])

        in_one_piece(out_array, compute)
        return
    found = on_host(in_array)
    if info.inner or in_array.ndim > 1:
        found = found.reshape((in_array.size, *info.inner))
    if info.floating:
        with np.errstate(all="ignore"):
            sums = np.add.accumulate(found, dtype=found.dtype)
    else:
        sums = np.add.accumulate(found, dtype=found.dtype)
    if not inclusive:
        sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
    put(out_array, sums if sums.shape == shape else sums.reshape(shape + info.inner))


def array_cast(in_array: array, out_array: array, count: int | None = None) -> None:
    """Converts the elements of an array to the type of another.

    Where elements have different numbers of components, both arrays are taken as sequences of
    their components. From floats to integers fractions are cut off, and what has no place there
    wraps or is cut, as NumPy does. On a tape gradients flow between floats.

    Args:
        in_array: numbers, vectors or matrices.
        out_array: the same number of elements or more; of the same shape where both have several
            dimensions.
        count: how many elements, from the first; only for one dimension.

    Raises UtilityError (a LaunchError and a RuntimeError) E202 for structs, E206 for sizes.
    """
    check_arrays("array_cast", in_array=in_array, out_array=out_array)
    for a in (in_array, out_array):
        if a._info.numpy.names is not None:
            raise refused(f"array_cast: the struct {a.dtype.__name__} is not a number", code="E202")
    if events.deferred(lambda: array_cast(in_array, out_array, count)):
        return
    source, dest = in_array, out_array
    dims = (in_array.ndim, in_array._info.inner) != (out_array.ndim, out_array._info.inner)
    if dims:
        if in_array.ndim > 1 and count is not None:
            raise _partial()
        each = int(np.prod(in_array._info.inner, dtype=np.int64))
        count = in_array.size * each if count is None else operator.index(count) * each
        source = scalars(in_array.contiguous())
        if not out_array.is_contiguous:
            in_one_piece(out_array, lambda whole: array_cast(in_array, whole, None))
            return
        dest = scalars(out_array)
    if source.ndim > 1:
        if count not in (None, source.size):
            raise _partial()
        if source.shape != dest.shape:
            raise refused(f"array_cast: shape {source.shape} does not fit shape {dest.shape}")
    else:
        count = source.size if count is None else operator.index(count)
        if not 0 <= count <= min(source.size, dest.size):
            raise refused(f"array_cast: {count} elements do not exist, or do not "
                          f"fit: from {source.size} to {dest.size}")  # fmt: skip
        source, dest = source[:count], dest[:count]
    if not source.size:
        return
    if source._info.floating == dest._info.floating and (
        source._info.floating or source._info.numpy == dest._info.numpy
    ):
        transfer.copy(dest, source)  # rounds to the other width; tapes know it
        return
    with np.errstate(all="ignore"):
        put(dest, on_host(source).astype(dest._info.numpy))


def _partial() -> Exception:
    return refused("array_cast: `count` works only with arrays of one dimension",
                   "cast a view: array_cast(a[:n], b[:n])")  # fmt: skip
