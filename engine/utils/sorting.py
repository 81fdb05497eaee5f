"""Sorting pairs by keys, and runs of equal numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from engine.lang.types import INT32
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.launch import launch
from engine.runtime.transfer import clone
from engine.utils.common import (
    NumpyArray,
    UtilityTypeError,
    check_arrays,
    flows,
    on_host,
    put,
    refused,
)

_KEYS = ("int32", "uint32", "float32", "int64", "uint64", "float64")
_LIMIT = (1 << 31) - 1


def radix_sort_pairs(
    keys: array, values: array, count: int, begin_bit: int = 0, end_bit: int | None = None
) -> None:
    """Sorts the first `count` keys in place, and values with them. Equal keys keep their order.

    On a tape gradients flow from what is in order to what was not, for the order that was found.

    Args:
        keys: int32, uint32, int64, uint64, float32 or float64, contiguous, 2 * count or more.
        values: elements of 4 or 8 bytes, contiguous, 2 * count or more.
        count: how many pairs.
        begin_bit: the lowest bit of keys that counts.
        end_bit: one behind the highest that counts; all bits above where left out.

    Raises UtilityError (a LaunchError and a RuntimeError) E202 for types, E206 for all else.
    """
    check_arrays("radix_sort_pairs", keys=keys, values=values)
    names = f"{keys.dtype.__name__}, {values.dtype.__name__}"
    if str(keys._ir.element) not in _KEYS or values._info.size not in (4, 8):
        raise refused(f"radix_sort_pairs cannot sort keys and values of {names}",
                      code="E202")  # fmt: skip
    for what, a in (("keys", keys), ("values", values)):
        if not a.is_contiguous:
            raise refused(f"radix_sort_pairs() requires a contiguous {what} array",
                          f"make it contiguous first: {what}.contiguous()")  # fmt: skip
    count = _count(count)
    width = 8 * keys._info.size
    begin, end = operator.index(begin_bit), width if end_bit is None else operator.index(end_bit)
    if not 0 <= begin <= end <= width:
        raise refused(f"radix_sort_pairs: bits [{begin}, {end}) do not fit {width}-bit keys")
    _check_room("radix_sort_pairs", keys, values, count)
    if not count or events.deferred(
        lambda: radix_sort_pairs(keys, values, count, begin_bit, end_bit)
    ):
        return
    bits = _ordered_bits(keys, count)
    if (begin, end) != (0, width):
        mask = np.array((1 << (end - begin)) - 1, bits.dtype)
        bits = bits >> np.array(min(begin, width - 1), bits.dtype) & mask
    _permute([keys, values], np.arange(count), np.argsort(bits, kind="stable"))


def segmented_sort_pairs(
    keys: array,
    values: array,
    count: int,
    segment_start_indices: array,
    segment_end_indices: array | None = None,
) -> None:
    """Sorts each segment of the first `count` keys in place, and values with them.

    Equal keys keep their order; pairs outside of all segments stay where they are. Gradients of
    keys flow as for `radix_sort_pairs`.

    Args:
        keys: int32 or float32, contiguous, 2 * count elements or more.
        values: int32, contiguous, 2 * count elements or more.
        count: how many pairs.
        segment_start_indices: int32, where segments begin.
        segment_end_indices: int32, where they end (exclusive); where the next one begins, if left
            out, and the last start is then only an end. Segments may not overlap.

    Raises UtilityError (a LaunchError, so a ValueError, and a RuntimeError) E202 for types, E206
    for all else; with TypeError among its bases for a count that is no integer.
    """
    given = {"keys": keys, "values": values, "segment_start_indices": segment_start_indices}
    if segment_end_indices is not None:
        given["segment_end_indices"] = segment_end_indices
    check_arrays("segmented_sort_pairs", **given)
    count = _count(count)
    if str(keys._ir.element) not in ("int32", "float32") or values._ir.element != INT32:
        raise refused("segmented_sort_pairs: keys are int32 or float32 and "
                      f"values int32, got {keys.dtype.__name__} and {values.dtype.__name__}",
                      code="E202")  # fmt: skip
    for name, a in given.items():
        if not a.is_contiguous:
            raise refused(f"segmented_sort_pairs() requires a contiguous {name} array",
                          f"make it contiguous first: {name}.contiguous()")  # fmt: skip
        if name.startswith("segment"):
            if a.ndim != 1:
                raise refused(f"segmented_sort_pairs: {name} must be one-dimensional, "
                              f"got shape {a.shape}")  # fmt: skip
            if a._ir.element != INT32:
                raise refused(f"segmented_sort_pairs: {name} are int32, got {a.dtype.__name__}",
                              code="E202")  # fmt: skip
    _check_room("segmented_sort_pairs", keys, values, count)
    segments = (segment_start_indices, segment_end_indices)
    if events.deferred(lambda: segmented_sort_pairs(keys, values, count, *segments)):
        return
    starts, ends = _segments(segment_start_indices, segment_end_indices, count)
    lengths = ends - starts
    if not lengths.sum():
        return
    number = np.repeat(np.arange(len(starts)), lengths)
    first = np.cumsum(lengths) - lengths
    places = np.arange(len(number)) - first[number] + starts[number]
    order = np.lexsort((_ordered_bits(keys, count)[places], number))
    _permute([keys, values], places, places[order])


def _segments(
    begin: array, end: array | None, count: int
) -> tuple[NumpyArray, NumpyArray]:  # fmt: skip
    starts = on_host(begin).astype(np.int64)
    if end is None:
        starts, ends = starts[:-1], starts[1:]
    else:
        ends = on_host(end).astype(np.int64)
        if len(starts) != len(ends):
            raise refused("segmented_sort_pairs: every segment needs a start and an end, got "
                          f"{len(starts)} and {len(ends)}")  # fmt: skip
    bad = np.flatnonzero((starts < 0) | (ends < starts) | (ends > count))
    if bad.size:
        k = int(bad[0])
        raise refused(f"segmented_sort_pairs: Invalid segment range at index {k}: "
                      f"[{starts[k]}, {ends[k]}) is no part of [0, {count})")  # fmt: skip
    filled = np.flatnonzero(ends > starts)
    order = filled[np.argsort(starts[filled], kind="stable")]
    shared = np.flatnonzero(starts[order][1:] < ends[order][:-1])
    if shared.size:
        j, k = sorted(int(i) for i in order[[shared[0], shared[0] + 1]])
        raise refused(f"segmented_sort_pairs: the segments at the indices {j} and {k} overlap: "
                      f"[{starts[j]}, {ends[j]}) and [{starts[k]}, {ends[k]})")  # fmt: skip
    return starts, ends


def runlength_encode(
    values: array,
    run_values: array,
    run_lengths: array,
    run_count: array | None = None,
    value_count: int | None = None,
) -> Any:
    """Writes the runs of equal numbers of an array: what repeats, and how often.

    Args:
        values: int32.
        run_values: int32, one element for each value at least; what is behind the last run stays
            as it is.
        run_lengths: the same.
        run_count: int32, receives the number of runs.
        value_count: how many values count, all where left out.

    Returns `run_count`, or the number of runs where that is left out.
    Raises UtilityError (a LaunchError and a RuntimeError) E202 for types, E206 for sizes.
    """
    given = {"values": values, "run_values": run_values, "run_lengths": run_lengths}
    if run_count is not None:
        given["run_count"] = run_count
    check_arrays("runlength_encode", **given)
    for name, a in given.items():
        if a._ir.element != INT32:
            raise refused(f"runlength_encode: {name} are int32, got {a.dtype.__name__}",
                          code="E202")  # fmt: skip
    count = values.size if value_count is None else operator.index(value_count)
    if not 0 <= count <= min(values.size, run_values.size, run_lengths.size):
        raise refused(f"runlength_encode: {count} values do not fit arrays of {values.size}, "
                      f"{run_values.size} and {run_lengths.size} elements")  # fmt: skip
    if run_count is not None and not run_count.size:
        raise refused("runlength_encode: run_count has no element")
    again = (values, run_values, run_lengths, run_count, value_count)
    if run_count is not None and events.deferred(lambda: runlength_encode(*again)):
        return run_count
    found = _host(values)[:count]
    begin = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]])) if count else _NONE
    if begin.size:
        put(run_values[: begin.size], found[begin])
        put(run_lengths[: begin.size], np.diff(begin, append=count).astype(np.int32))
    if run_count is None:
        return int(begin.size)
    put(run_count[:1], np.array([begin.size], np.int32))
    return run_count


_NONE = np.empty(0, np.int64)


def _host(a: array) -> NumpyArray:
    return on_host(a).reshape(-1)


def _count(count: Any) -> int:
    if isinstance(count, (bool, np.bool_)) or not hasattr(count, "__index__"):
        raise refused(f"count must be an integer, got {count!r}", kind=UtilityTypeError)
    whole = operator.index(count)
    if whole < 0:
        raise refused(f"count must be non-negative, got {whole}")
    if whole > _LIMIT:
        raise refused(f"count must not exceed {_LIMIT}, got {whole}")
    return whole


def _check_room(function: str, keys: array, values: array, count: int) -> None:
    if min(keys.size, values.size) < 2 * count:
        raise refused(f"{function}: keys and values need room for {2 * count} elements, twice the "
                      f"count, got {keys.size} and {values.size}")  # fmt: skip


def _ordered_bits(keys: array, count: int) -> NumpyArray:
    """Keys as unsigned integers in the same order."""
    found = _host(keys)[:count]
    size = found.dtype.itemsize
    bits: NumpyArray = np.ascontiguousarray(found).view(f"u{size}")
    top = np.array(1 << (8 * size - 1), bits.dtype)
    if found.dtype.kind == "i":
        flipped: NumpyArray = np.bitwise_xor(bits, top)
        return flipped
    if found.dtype.kind == "f":
        return np.where(bits & top, ~bits, bits | top)
    return bits


def _permute(arrays: list[array], to: NumpyArray, of: NumpyArray) -> None:
    """Element `of[i]` goes to `to[i]`, in each of the arrays."""
    if np.array_equal(to, of):
        return
    for a in arrays:
        flat = a.flatten()
        if flows(a):
            from engine.utils import kernels

            places = np.arange(len(flat))
            places[to] = of
            launch(kernels.gather, len(flat), outputs=[flat],
                   inputs=[clone(flat), array(places, dtype=INT32)])  # fmt: skip
            continue
        low, high = int(to.min()), int(to.max()) + 1  # no more is written than may change
        moved = on_host(flat)[low:high].copy()
        moved[to - low] = on_host(flat)[of]
        put(flat[low:high], moved)
