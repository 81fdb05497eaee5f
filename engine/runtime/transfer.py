"""Writes to arrays from the host: fill, assign, copy, clone. All can be recorded on a tape."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.compile.cpu import CPU, FEW
from engine.compile.cpu import VAST as VAST
from engine.lang.structs import StructType
from engine.logger import log_warning
from engine.runtime import data as d
from engine.runtime import events, views
from engine.runtime.annotation import describe
from engine.runtime.bare_copies import copied, take, take_list
from engine.runtime.base import ArrayBase
from engine.runtime.deferred import DeferredWrite
from engine.runtime.device import HOST, DeviceLike, get_device
from engine.runtime.foreign import follows, plain, shared
from engine.runtime.guards import in_one_place, objection
from engine.runtime.launch_errors import fail

if TYPE_CHECKING:
    from engine.runtime.array import array


def check_writable(dest: array) -> None:
    """Raises LaunchError (E206) for memory that cannot be written: read-only memory, that which

    others take to be immutable, and elements that lie in one place.
    """
    storage = dest.storage
    if storage.guard is not None and storage.guard.objects(dest.lo, dest.hi):
        found = objection(dest)
        if found is not None:
            raise fail("E206", f"the array cannot be written: it has {found[0]}", help=found[1])
    if not storage.writable:
        raise fail("E206", "the array wraps read-only memory and cannot be written",
                   help="make a copy of it first: array(data, copy=True)")  # fmt: skip
    if in_one_place(dest):
        raise fail("E206", "the array cannot be written: two of its elements lie in one place",
                   help="make a copy of it first: clone(a)")  # fmt: skip


def _later(
    dest: array, write: Callable[[], object], src: array | None = None, element: Any = None
) -> bool:
    """Notes a write where a graph is captured, to be checked again each time it runs.

    src: what is copied; None where all elements become `element`.
    """

    def checked() -> None:
        check_writable(dest)
        write()

    return events.deferred(DeferredWrite(dest, src, element, checked))


def fill(dest: array, value: Any, what: str) -> None:
    """Sets every element to one value, or one number in all components."""
    zero = type(value) is int and value == 0  # as gradients are, again and again
    element = _zero(dest) if zero else d.element_value(value, dest._ir.element)
    check_writable(dest)
    if events.graph() is None:  # first, since gradients are filled again and again
        _fill(dest, element, what)
        return
    kept = element if zero else np.array(element)  # a vector may change before the graph runs
    if (
        _later(dest, lambda: _fill(dest, kept, what), None, kept)
        and (tape := events.tape()) is not None
    ):
        tape.sketch_write("write", what, dest)


def zero(dest: array) -> None:
    """Sets every element to zero, as `fill` does: gradients, again and again."""
    storage = dest.storage
    if (
        dest.is_contiguous and storage.writable and storage.guard is None and not events.everywhere
        and storage.device is HOST and events.graph() is None and events.tape() is None
        and not dest._info.linked
    ):  # fmt: skip
        storage.before_write(dest.lo, dest.hi)
        view = dest._own_view
        nbytes = dest.hi - dest.lo
        if view is None and nbytes <= FEW:
            CPU.clear(dest.lo, nbytes)
            return
        (dest._parts if view is None else view)[...] = _zero(dest)
        return
    fill(dest, 0, "zero_")


def put_one(dest: array) -> None:
    """Writes 1 to an array of one number, of which nobody is told: the seed of a backward pass."""
    info = dest._info
    if dest.storage.device is not HOST or info.opaque:
        dest._put(1.0)
        return
    if info.unit is None:
        info.unit = np.ones((), info.numpy)
    view = dest._own_view
    if view is not None:
        view[...] = info.unit
    else:
        CPU.write(dest._ptr, info.unit.tobytes())


def _zero(dest: array) -> Any:
    info = dest._info
    if info.zero is None:
        info.zero = d.element_value(0, info.kind)
    return info.zero


def _fill(dest: array, element: Any, what: str) -> None:
    tape = events.tape()
    written = None if tape is None else tape.record_write("write", what, dest)
    if tape is None or not dest.requires_grad:
        if events.everywhere:
            events.tell("filled", dest)
    dest.storage.before_write(dest.lo, dest.hi)
    dest._put(element)
    if written is not None:
        written()


def store(dest: array, value: Any) -> None:
    """`a[index] = value`: fills with one element's value, else copies.

    Raises LaunchError (E207) for shapes that NumPy would not broadcast.
    """
    from engine.runtime.array import array

    given = None
    if follows(value):
        value = shared(value, dest)
    if not isinstance(value, array):
        value = plain(value)
        try:
            shape = np.shape(value)
        except ValueError:  # not rectangular: making an array of it tells
            shape = (-1,)
        structs = dest._info.numpy.names is not None
        if shape in ((), dest._info.inner) and not (structs and isinstance(value, (list, tuple))):
            fill(dest, value, "item assignment")
            return
        value = _array_like(array, given := value, dest)
    copy(dest, value if value.shape == dest.shape else _spread(value, dest))
    if given is not None:
        _wait(dest, value)


def _wait(dest: array, src: array) -> None:
    """Waits for a copy of what has come as numbers, which may be changed now, unlike arrays."""
    if dest.storage.device is not HOST and src.pinned and events.graph() is None:
        dest.device.backend.synchronize()


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
        if events.tape() is not None and src.requires_grad:
            problem = f"no gradient can flow from shape {src.shape} to shape {dest.shape}"
            help_text = "on a tape, assign an array with a gradient to one row at a time"
    if problem:
        raise fail("E207", f"item assignment: {problem}", help=help_text)
    return type(src)(parts, dtype=src.dtype, shape=dest.shape)


def _array_like(make: Any, data: Any, dest: array) -> array:
    """An array of data, with elements as `dest` has them. Raises LaunchError (E206)."""
    if data is None:
        raise fail("E206", "data cannot be made into an array", "got None")
    out: array = make(data, dtype=dest.dtype, copy=None)
    return out


def assign(dest: array, src: Any) -> None:
    """Copies an array, or anything that an array can be made from, to `dest`."""
    numbers = src.__class__ is np.ndarray
    if numbers and take(dest, src):
        return
    if (src.__class__ is list or src.__class__ is tuple) and take_list(dest, src):
        return
    from engine.runtime.array import array

    if follows(src):
        src = shared(src, dest)
    if not isinstance(src, array):
        src = _array_like(array, src, dest)
    if src.shape != dest.shape and src.size == dest.size and src.is_contiguous:
        src = src.reshape(dest.shape)
    copy(dest, src)
    if numbers:
        _wait(dest, src)


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
    if (
        dest.__class__ is src.__class__ and isinstance(dest, ArrayBase)
        and type(dest_offset) is type(src_offset) is type(count) is int
        and copied(dest, src, dest_offset, src_offset, count)
    ):  # fmt: skip
        return
    from engine.runtime.array import array
    from engine.runtime.indexed import indexedarray

    del stream
    src = shared(src, dest if isinstance(dest, array) else None)
    dest = shared(dest, src if isinstance(src, array) else None)
    for name, a in (("dest", dest), ("src", src)):
        if not isinstance(a, (array, indexedarray)):
            raise fail("E206", f"copy takes arrays, but {name} is {a!r:.80}",
                       help="use dest.assign(data) for other data")  # fmt: skip
    dest_offset = _number("dest_offset", "the destination offset", dest_offset)
    src_offset = _number("src_offset", "the source offset", src_offset)
    count = _number("count", "the count", count)
    if isinstance(dest, indexedarray) or isinstance(src, indexedarray):
        numbers = {"dest_offset": dest_offset, "src_offset": src_offset, "count": count}
        _copy_indexed(dest, src, {name: n for name, n in numbers.items() if n})
        return
    src = _fitting(dest, src)
    if src_offset > src.size:
        raise _too_far("source", src, src_offset, count)
    part = dest_offset or src_offset or count
    if part or dest.shape != src.shape:
        n = count or src.size - src_offset
        if n <= 0:
            return
        if src_offset + n > src.size:
            raise _too_far("source", src, src_offset, n)
        if dest_offset + n > dest.size:
            raise _too_far("destination", dest, dest_offset, n)
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
    store_linear("copy", "copy", dest, src, partial(move, dest, src))


def store_linear(
    kind: str, name: str, dest: array, src: array, put: Callable[[], object],
    numbers: Sequence[float] = (),
) -> None:  # fmt: skip
    """Stores a linear function of `src` in all of `dest`, now, or when the captured graph runs.

    kind, numbers: the record of tapes, and its constants (see `engine.tape.records.linear`). name:
    what messages call it. put: writes the values.
    Raises LaunchError (E206) where `dest` is read-only.
    """

    def run() -> None:
        check_writable(dest)
        events.reading((src,))
        tape = events.tape()
        written = None if tape is None else tape.record_write(kind, name, dest, src, numbers)
        if events.everywhere and (tape is None or not (dest.requires_grad or src.requires_grad)):
            events.tell("copied", dest, src, False, False)
        dest.storage.before_write(dest.lo, dest.hi)
        put()
        if written is not None:
            written()

    if events.graph() is None:
        run()
        return
    check_writable(dest)
    # A copy can be part of a native call, of which no other kind is.
    events.deferred(DeferredWrite(dest, src, None, run) if kind == "copy" else run)
    if (tape := events.tape()) is not None:
        tape.sketch_write(kind, name, dest, src, numbers)


def _number(name: str, what: str, value: Any) -> int:
    """An offset or count. Raises LaunchError (E206)."""
    try:
        found = operator.index(value)
    except TypeError:
        raise fail("E206", "the offsets and the count of a copy must be integers, but "
                   f"{name} is {value!r:.80}") from None  # fmt: skip
    if found < 0:
        raise fail("E206", f"{what} of a copy must be non-negative, but {name} is {found}")
    return found


def _too_far(what: str, a: array, offset: int, count: int) -> Exception:
    begin = f" from {offset} on" if offset else ""
    return fail("E207", f"a copy of {count} elements{begin} exceeds the {what} size",
                f"the {what} has {a.size} elements, of shape {a.shape}")  # fmt: skip


def move(dest: array, src: array) -> None:
    """Copies elements, from one device to another if need be. Nobody is told of the write."""
    if src.device != dest.device:
        if src.pinned and not dest._info.linked:
            dest.device.backend.put_later(dest._parts, src._host(), src.storage.owner)
        else:
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
        if src.requires_grad and not out.requires_grad and events.tape() is not None:
            log_warning(
                f"no gradient flows through a copy that takes {describe(of.kind)} as "
                f"{describe(to.kind)}, byte by byte"
            )
        return out
    convertible = to.inner == of.inner and np.can_cast(of.numpy, to.numpy, "same_kind")
    if structs or not convertible:
        raise fail(
            "E206", "a copy cannot convert elements: "
            f"destination dtype={describe(to.kind)}, source dtype={describe(of.kind)}",
            help="make the conversion in a kernel, or by `utils.array_cast`",
        )  # fmt: skip
    return src


def _copy_indexed(dest: Any, src: Any, part: dict[str, int]) -> None:
    """A copy from an indexed array, to one, or both. Raises LaunchError E206, E207."""
    from engine.runtime.array import array

    if part:
        raise fail("E206", "a copy from or to an indexed array takes no offsets and no count",
                   "got " + ", ".join(f"{name}={n}" for name, n in part.items()),
                   help="index the part: a[indices[2:5]]")  # fmt: skip
    if dest.shape != src.shape:
        raise fail("E207", "a copy from or to an indexed array needs one shape: "
                   f"destination shape={dest.shape}, source shape={src.shape}")  # fmt: skip
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
        remake(converted)
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
    own = src.pinned if pinned is None else pinned
    out: array = type(src)._allocate(src.shape, src._ir.element, False, place, own)
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
    if events.graph() is not None:
        kept = None if values is None else np.array(values)
        events.deferred(lambda: _remake(out, kept))


def _remake(out: array, values: Any) -> None:
    for a, new in ((out, values), (out.existing_grad, 0)):
        if a is not None and new is not None:
            check_writable(a)
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
    if _later(dest, lambda: _cut_off(dest, src, meant), src):
        return
    events.reading((src,))
    if events.everywhere:
        events.tell("copied", dest, src, meant, True)
    move(dest, src)
