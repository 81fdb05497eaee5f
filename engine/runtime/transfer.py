"""Writes to arrays from the host: fill, assign, copy, clone. All can be recorded on a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.lang.structs import StructType
from engine.logger import log_warning
from engine.runtime import data as d
from engine.runtime import views
from engine.runtime.annotation import describe
from engine.runtime.device import DeviceLike, get_device
from engine.runtime.launch_errors import fail
from engine.runtime.recording import active, bystanders, deferred, graph, reading

if TYPE_CHECKING:
    from engine.runtime.array import array


def check_writable(dest: array) -> None:
    """Raises LaunchError (E206) for read-only memory."""
    if not dest.storage.writable:
        raise fail("E206", "the array wraps read-only memory and cannot be written",
                   help="make a copy of it first: array(data, copy=True)")  # fmt: skip


def fill(dest: array, value: Any, what: str) -> None:
    """Sets every element to one value, or one number in all components."""
    element = d.element_value(value, dest._ir.element)
    check_writable(dest)
    if not deferred(lambda: _fill(dest, element, what)):
        _fill(dest, element, what)
    elif (tape := active.get()) is not None:
        tape.sketch_write(dest, None, what)


def _fill(dest: array, element: Any, what: str) -> None:
    tape = active.get()
    written = None if tape is None else tape.record_overwrite(dest, what)
    if tape is None or not dest.requires_grad:
        for b in bystanders:
            b.filled(dest)
    dest.storage.before_write(dest.lo, dest.hi)
    dest._put(element)
    if written is not None:
        written()


def store(dest: array, value: Any) -> None:
    """`a[index] = value`: fills with one element's value, else copies.

    Raises LaunchError (E207) for shapes that NumPy would not broadcast.
    """
    from engine.runtime.array import array

    if not isinstance(value, array):
        try:
            shape = np.shape(value)
        except ValueError:  # not rectangular: making an array of it tells
            shape = (-1,)
        structs = dest._info.numpy.names is not None
        if shape in ((), dest._info.inner) and not (structs and isinstance(value, (list, tuple))):
            fill(dest, value, "item assignment")
            return
        value = _array_like(array, value, dest)
    copy(dest, value if value.shape == dest.shape else _spread(value, dest))


def _spread(src: array, dest: array) -> array:
    """`src` repeated to the shape of `dest`, as NumPy broadcasts. Raises LaunchError (E207)."""
    shape = src.shape
    while len(shape) > dest.ndim and shape[0] == 1:
        shape = shape[1:]
    inner = src._info.inner
    if shape == dest.shape:
        return src.reshape(shape) if src.is_contiguous else src.contiguous().reshape(shape)
    problem, help_text = "", "to write only some elements, index them: a[0, :2] = [1, 2]"
    try:
        parts = np.broadcast_to(src._host().reshape(shape + inner), dest.shape + inner)
    except ValueError:
        problem = f"the values have shape {src.shape}, but the elements have shape {dest.shape}"
    else:
        if active.get() is not None and src.requires_grad:
            problem = f"no gradient can flow from shape {src.shape} to shape {dest.shape}"
            help_text = "on a tape, assign an array with a gradient to one row at a time"
    if problem:
        raise fail("E207", f"item assignment: {problem}", help=help_text)
    return type(src)(parts, dtype=src.dtype, shape=dest.shape)


def _array_like(make: Any, data: Any, dest: array) -> array:
    """An array of data, with elements as `dest` has them. Raises LaunchError (E206)."""
    if data is None:
        raise fail("E206", "data cannot be made into an array", "got None")
    out: array = make(data, dtype=dest.dtype, copy=False)
    return out


def assign(dest: array, src: Any) -> None:
    """Copies an array, or anything that an array can be made from, to `dest`."""
    from engine.runtime.array import array

    if not isinstance(src, array):
        src = _array_like(array, src, dest)
    if src.shape != dest.shape and src.size == dest.size and src.is_contiguous:
        src = src.reshape(dest.shape)
    copy(dest, src)


def copy(
    dest: Any,
    src: Any,
    dest_offset: int = 0,
    src_offset: int = 0,
    count: int = 0,
    stream: object = None,
) -> None:
    """Copies elements from `src` to `dest`. Recorded on the active tape, and differentiable.

    Args:
        dest: where to; an array, or an indexed array.
        src: the same, of the same element type. Elements of another type of the same size are
            taken as they are, byte by byte, and gradients flow where both consist of the same
            scalars; numbers of another width are converted.
        dest_offset: first element, counted in row-major order.
        src_offset: the same for `src`.
        count: number of elements, 0 for all of `src`.
        stream: accepted for GPU code; there is one stream on the CPU.

    Raises LaunchError E206 for types or layouts that do not fit, E207 for sizes.
    """
    from engine.runtime.array import array
    from engine.runtime.indexed import indexedarray

    del stream
    for a in (dest, src):
        if not isinstance(a, (array, indexedarray)):
            raise fail("E206", f"copy takes arrays, got {type(a).__name__}",
                       help="use dest.assign(data) for other data")  # fmt: skip
    numbers = {"dest_offset": dest_offset, "src_offset": src_offset, "count": count}
    for name, value in numbers.items():
        if not hasattr(value, "__index__") or value < 0:
            raise fail("E206", "offsets and count of a copy must be integers, and not negative",
                       f"got {name}={value!r}")  # fmt: skip
    if isinstance(dest, indexedarray) or isinstance(src, indexedarray):
        _copy_indexed(dest, src, bool(dest_offset or src_offset or count))
        return
    src = _fitting(dest, src)
    part = dest_offset or src_offset or count
    if part or dest.shape != src.shape:
        n = count or src.size - src_offset
        if n <= 0:
            return
        for x, offset, name in ((src, src_offset, "src"), (dest, dest_offset, "dest")):
            if offset + n > x.size:
                raise fail("E207", f"the copy does not fit {name}",
                           f"expected at most {x.size} elements, got {offset} + {n}")  # fmt: skip
        check_writable(dest)
        if not dest.is_contiguous and dest.ndim > 1:
            # Row by row no view holds such a part: it is written to a copy of the whole.
            whole = clone(dest, requires_grad=dest.requires_grad or src.requires_grad)
            copy(whole, src, dest_offset, src_offset, n)
            copy(dest, whole)
            return
        if not src.is_contiguous and src.ndim > 1:
            src = clone(src)
        src, dest = _part(src, src_offset, n), _part(dest, dest_offset, n)
    check_writable(dest)
    if not deferred(lambda: _copy(dest, src)):
        _copy(dest, src)
    elif (tape := active.get()) is not None:
        tape.sketch_write(dest, src, "copy")


def _copy(dest: array, src: array) -> None:
    reading((src,))
    tape = active.get()
    written = None if tape is None else tape.record_copy(dest, src)
    if bystanders and (tape is None or not (dest.requires_grad or src.requires_grad)):
        for b in bystanders:
            b.copied(dest, src, False, False)
    dest.storage.before_write(dest.lo, dest.hi)
    move(dest, src)
    if written is not None:
        written()


def move(dest: array, src: array) -> None:
    """Copies elements, from one device to another if need be. Nobody is told of the write."""
    if src.device != dest.device:
        dest._put(src._host())
    elif src.storage is dest.storage and src.lo < dest.hi and dest.lo < src.hi:
        dest._put(src._parts.copy())  # NumPy reads what it wrote where the steps differ
    else:
        dest._put(src._parts)


def _fitting(dest: array, src: array) -> array:
    """`src` with elements that can be copied to `dest`. Raises LaunchError (E206)."""
    to, of = dest._info, src._info
    if to.kind == of.kind:
        return src
    structs = to.numpy.names is not None or of.numpy.names is not None  # they are not converted
    if not structs and to.size == of.size:
        assert not isinstance(to.kind, StructType)
        out = views.retyped(src, to.kind)
        if src.requires_grad and not out.requires_grad and active.get() is not None:
            log_warning(
                f"no gradient flows through a copy that takes {describe(of.kind)} as "
                f"{describe(to.kind)}, byte by byte"
            )
        return out
    convertible = to.inner == of.inner and np.can_cast(of.numpy, to.numpy, "same_kind")
    if structs or not convertible:
        raise fail(
            "E206", "copy between arrays whose elements do not fit",
            f"expected {describe(dest._ir.element)}, got {describe(src._ir.element)}",
        )  # fmt: skip
    return src


def _copy_indexed(dest: Any, src: Any, part: bool) -> None:
    """A copy from an indexed array, to one, or both. Raises LaunchError E206, E207."""
    from engine.runtime.array import array

    if part:
        raise fail("E206", "a part of an indexed array cannot be copied",
                   help="index the part: a[indices[2:5]]")  # fmt: skip
    if dest.shape != src.shape:
        raise fail("E207", "the copy does not fit dest",
                   f"expected shape {dest.shape}, got {src.shape}")  # fmt: skip
    if not isinstance(src, array):
        fits = isinstance(dest, array) and dest._ir.element == src._ir.element
        if fits:
            src._copy_to(dest)
            return
        src = src.contiguous()
    if isinstance(dest, array):
        copy(dest, src)
        return
    whole = _fitting(dest.data, src)
    if whole._ir.element != dest._ir.element:
        converted = array._allocate(src.shape, dest._ir.element, False, src.device)
        converted.requires_grad = src.requires_grad
        copy(converted, src)
        whole = converted
    dest._copy_from(whole)


def _part(a: array, offset: int, count: int) -> array:
    """`count` elements from `offset` of an array that is contiguous or has one dimension."""
    flat = a.flatten() if a.ndim > 1 else a
    if offset == 0 and count == a.size:
        return flat
    out: array = flat[offset : offset + count]
    return out


def clone(
    src: Any,
    device: DeviceLike = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """A contiguous copy. Recorded on the active tape, and differentiable.

    requires_grad: as in `src` where left out; False cuts the gradient off.
    """
    from engine.runtime.array import array
    from engine.runtime.indexed import indexedarray

    del pinned
    if isinstance(src, indexedarray):
        if requires_grad is None or requires_grad == src.requires_grad:
            seen = src.contiguous()
            seen.retain_grad = retain_grad and seen.requires_grad
            return seen
        src = src.contiguous()
    if not isinstance(src, array):
        raise fail("E206", f"clone takes an array, got {type(src).__name__}",
                   help="make an array of other data: array(data, dtype=...)")  # fmt: skip
    place = src.device if device is None else get_device(device)
    out: array = type(src)._allocate(src.shape, src._ir.element, False, place)
    wanted = src.requires_grad if requires_grad is None else requires_grad
    out.requires_grad = wanted and src._info.floating
    out.retain_grad = retain_grad and out.requires_grad
    remake(out)
    if out.requires_grad or requires_grad is None:
        copy(out, src)
    else:
        _cut_off(out, src, False)
    return out


def remake(out: array, values: Any = None) -> None:
    """To be called where an array was made: a captured graph makes it anew each time it runs.

    values: what it is filled with then, None for nothing. Its gradient becomes zero.
    """
    if graph.get() is not None:
        deferred(lambda: _remake(out, values))


def _remake(out: array, values: Any) -> None:
    for a, new in ((out, values), (out.existing_grad, 0)):
        if a is not None and new is not None:
            a.storage.before_write(a.lo, a.hi)
            a._put(new)


def stop_gradient(src: array) -> array:
    """A contiguous copy that is a constant to everything that reads it: no gradient flows back.

    So does `clone(src, requires_grad=False)`; this says that it is meant, to those who look for
    paths that gradients should take. Raises LaunchError (E206) for what is no array.
    """
    from engine.runtime.array import array

    if not isinstance(src, array):
        raise fail("E206", f"stop_gradient takes an array, got {type(src).__name__}")
    out: array = type(src)._allocate(src.shape, src._ir.element, False, src.device)
    remake(out)
    _cut_off(out, src, True)
    return out


def _cut_off(dest: array, src: array, meant: bool) -> None:
    if deferred(lambda: _cut_off(dest, src, meant)):
        return
    reading((src,))
    for b in bystanders:
        b.copied(dest, src, meant, True)
    move(dest, src)
