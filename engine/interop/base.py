"""Shared code of the exchange with frameworks; each framework is one file beside it.

An `Adapter` says where the memory of a framework's array lies and what may be done with it. All
else is here: vectors and matrices from the last axes, layouts, errors, and which adapter an object
belongs to.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any
from weakref import ref

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.interop.gradients import join, shared_gradient
from engine.itself import is_of_engine
from engine.itself import load as load_module
from engine.lang.foreign import Memory
from engine.lang.generics import Pattern
from engine.lang.strided import byte_range
from engine.lang.structs import StructType
from engine.lang.types import ArrayType, ScalarType, ValueType, scalar_of, with_scalar
from engine.lang.values import to_value_type, value_class
from engine.logger import log_warning
from engine.runtime import events
from engine.runtime.adopted import adopt, known_as
from engine.runtime.annotation import MAX_DIMS, ElementInfo, array_type, describe, element_info
from engine.runtime.array import array
from engine.runtime.device import HOST, get_device, is_device_available
from engine.runtime.pack import Mismatch
from engine.runtime.storage import Storage

__all__ = [
    "Adapter",
    "InteropError",
    "Memory",
    "Mismatch",
    "adapter_of",
    "compatible",
    "forget",
    "lend",
    "load",
    "names",
    "refused",
]


class InteropError(LaunchError, TypeError, RuntimeError):
    """What another library gave, or was to get, cannot be had without a copy, or not at all.

    It is a TypeError and a RuntimeError too, which programs written for Warp catch.
    """


def refused(code: str, message: str, *notes: str, help: str = "") -> InteropError:
    """An error at the user's call; the caller raises it."""
    return InteropError(Diagnostic(code, message, call_span(), help, notes))


class Adapter:
    """One framework. A file of `engine/interop` has one, by the name `ADAPTER`.

    package: the module that has to be imported for there to be objects of it; the file is called
    so. roots: the first names of modules that its types are from. title: the framework's name for
    messages; thing: how they call an array of it. immutable: whether the framework takes memory to
    be so, once an array shows it.
    """

    package: str
    title: str
    roots: tuple[str, ...] = ()
    thing: str = "array"
    immutable: bool = False

    # ---- what a framework says itself

    def untold(self, value: Any) -> bool:
        """Whether DLPack does not tell what one has to know: that it is immutable, say."""
        del value
        return self.immutable

    def memory(self, value: Any) -> Memory | None:
        """Where the elements lie; None for an object of the framework that is no array.

        Raises Mismatch with a code, what it is, and the way out: for layouts and types that there
        are no addresses of. It need not look at device, read-only memory and sizes: that is done
        here.
        """
        raise NotImplementedError

    def convert(self, scalar: str) -> str:
        """How a program makes one of another scalar, for messages."""
        return f"convert it to {scalar} first"

    def address(self, tensor: Any) -> int:
        """The address of the first element; of a tensor that was looked at before."""
        found = self.memory(tensor)
        return 0 if found is None else found.address

    # ---- what frameworks with gradients say, too

    def wants_gradient(self, value: Any) -> bool:
        """Whether gradients flow to it, and it has a place for them (`has_place`)."""
        del value
        return False

    def asks_gradient(self, value: Any) -> bool:
        """Whether gradients flow to it, wherever they go."""
        return self.wants_gradient(value)

    def lost(self, value: Any) -> str:
        """Why gradients that should flow to it end here, with a way out; empty where none do."""
        del value
        return ""

    def has_place(self, tensor: Any) -> bool:
        """Whether a tensor has a gradient of its own now, or can be given one."""
        raise NotImplementedError

    def gradient_of(self, tensor: Any) -> Any:
        """The gradient, a tensor too; None where there is none."""
        raise NotImplementedError

    def set_gradient(self, tensor: Any, gradient: Any) -> None:
        """Gives it one: a tensor, or an array, whose memory it takes."""
        raise NotImplementedError

    def tensor(self, a: array) -> Any:
        """A tensor over an array's memory, which it keeps alive. Raises InteropError."""
        raise NotImplementedError

    def new_gradient(self, tensor: Any) -> Any:
        """Zeros that fit as its gradient, as a tensor."""
        raise NotImplementedError

    # ---- what the engine asks for

    def argument(self, value: Any, kind: ArrayType) -> array:
        """As an array for a parameter of type `kind`, sharing memory. Raises Mismatch."""
        found = self._found(value)
        info, n = element_info(kind.element), kind.ndim
        if found.scalar != scalar_of(kind):
            raise Mismatch("E202", f"{self._a} of {found.scalar}",
                           self.convert(describe(scalar_of(kind))))  # fmt: skip
        inner, shape = info.inner, found.shape
        if len(shape) != n + len(inner) or shape[n:] != inner:
            code = "E203" if shape[len(shape) - len(inner) :] == inner else "E202"
            raise Mismatch(code, f"{self._a} of shape {shape}", _shape_help(info, n))
        return self._joined(value, self._array(found, info, shape[:n]))

    def type_of(self, value: Any, pattern: Pattern) -> ArrayType | None:
        """The type that a generic kernel is compiled for. Raises Mismatch."""
        found = self.memory(value)
        if found is None or pattern.role != "array" or len(found.shape) != pattern.ndim:
            return None
        return array_type(found.scalar, len(found.shape))

    def share(self, value: Any, dtype: Any = None, what: str = "") -> array:
        """As an array that shares memory, with elements of a type (its own scalars for None).

        Trailing axes are the components of vectors and matrices; one element alone, or one number,
        is an array of one. Integers of one width, and bool as 8 bits, may be taken for one another.
        what: the function that the user called. Raises InteropError.
        """
        try:
            found = self._found(value)
            kind = found.scalar if dtype is None else to_value_type(dtype)
            return self._of(found, kind)
        except Mismatch as e:
            lead = f"{what}: " if what else ""
            raise refused(e.code, f"{lead}{e.got} cannot be shared", help=e.help) from None

    def with_gradient(self, value: Any, like: array | None = None) -> array:
        """The same, with value's gradient, and vectors and matrices as `like` has them if it can.

        Raises InteropError.
        """
        kind = None
        if like is not None and not isinstance(like._ir.element, (ScalarType, StructType)):
            inner = like._info.inner
            found = self.memory(value)
            if found is not None and found.shape[-len(inner) :] == inner:
                kind = value_class(with_scalar(like._ir.element, found.scalar))
        return self._joined(value, self.share(value, kind))

    def numpy(self, value: Any) -> Any:
        """As NumPy sees it, without a copy but from a GPU. Raises InteropError."""
        try:
            found = self._found(value)
        except Mismatch as e:
            raise refused(e.code, f"{e.got} cannot be shared", help=e.help) from None
        if not all(found.shape):
            found = found._replace(strides=(0,) * len(found.shape))
        storage = self.storage(found)
        seen = storage.view(found.address, found.shape, found.strides, found.scalar.numpy)
        seen = storage.device.backend.to_host(seen)
        return seen if seen.dtype.kind != "V" else seen.view(found.scalar.numpy)

    def number(self, value: Any) -> Any:
        """The one number of it, for a parameter that is a number; None for what is no array.

        Raises Mismatch.
        """
        if self.memory(value) is None:
            return None
        shape = self._found(value).shape
        if any(n != 1 for n in shape):
            raise Mismatch("E202", f"{self._a} of shape {shape}", "pass one of its numbers")
        if events.tape() is not None and self.asks_gradient(value):
            log_warning(f"{self._a} that requires a gradient is passed to a launch on a tape as a "
                        "number, which has none: make the parameter an array of one element, or "
                        "pass t.detach()")  # fmt: skip
        return self.numpy(value).reshape(())

    # ---- how

    def _joined(self, value: Any, made: array) -> array:
        """An array with the gradient of what it is made of; the one of former launches, if any."""
        if not self.wants_gradient(value):
            if events.tape() is not None and (why := self.lost(value)):
                log_warning(why)
            return made
        gradient = shared_gradient(self, value)
        kind = made._ir.element
        kept = gradient.arrays.get(kind)
        known = None if kept is None else kept()
        if known is not None and (known.ptr, known.shape, known.strides) == (
            made.ptr, made.shape, made.strides,
        ):  # fmt: skip
            return known
        gradient.arrays[kind] = ref(made)
        return join(made, gradient)

    @property
    def _a(self) -> str:
        return f"a {self.title} {self.thing}"

    def _found(self, value: Any) -> Memory:
        """The memory of an array on a device that kernels run on. Raises Mismatch."""
        found = self.memory(value)
        if found is None:
            raise Mismatch("E202", f"an object of type {type(value).__name__}",
                           f"pass {self._a}")  # fmt: skip
        if found.device != "cpu" and not is_device_available(found.device):
            raise Mismatch("E204", f"{self._a} on device {found.device!r}",
                           "copy it to the CPU first")  # fmt: skip
        return found

    def _of(self, found: Memory, kind: ValueType) -> array:
        info = element_info(kind)
        scalar = kind if isinstance(kind, ScalarType) else scalar_of(kind)
        if found.scalar is not scalar and not compatible(found.scalar, scalar):
            raise Mismatch("E202", f"{self._a} of {found.scalar} as {describe(kind)}",
                           self.convert(describe(scalar)))  # fmt: skip
        inner, shape = info.inner, found.shape
        if inner:
            n = len(shape) - len(inner)
            if n < 0 or shape[n:] != inner:
                raise Mismatch("E206", f"{self._a} of shape {shape} as {describe(kind)}",
                               _shape_help(info, None))  # fmt: skip
            shape = shape[:n]
        return self._array(found, info, shape)

    def _array(self, found: Memory, info: ElementInfo, shape: tuple[int, ...]) -> array:
        n = len(shape)
        strides = found.strides
        if found.address % found.scalar.size:
            raise Mismatch("E206", f"{self._a} at an address that is "
                                   "not a multiple of the "
                                   f"{found.scalar.size} bytes of "
                                   "its numbers", "pass a copy")  # fmt: skip
        if info.inner and strides[n:] != info.steps and all(found.shape):
            raise Mismatch("E206", f"{self._a} with strides {strides} (in bytes) as "
                           f"{describe(info.kind)}",
                           "components must lie side by side in memory: make it contiguous "
                           "first")  # fmt: skip
        if n > MAX_DIMS:
            raise Mismatch("E203", f"{self._a} of {n} dimensions",
                           f"an array has 1 to {MAX_DIMS}: reshape it")  # fmt: skip
        if n == 0:
            shape, strides = (1,), (info.size,)
        elif len(strides) != n:
            strides = strides[:n]
        return array._make(self.storage(found), found.address, shape, strides, info.kind)

    def storage(self, found: Memory) -> Storage:
        """The storage of memory: one for all arrays that show the same block."""
        lo, nbytes = found.lo, found.nbytes
        if not nbytes:
            lo, hi = byte_range(found.address, found.shape, found.strides, found.scalar.size)
            nbytes = hi - lo
        immutable = self._a if self.immutable else ""
        place = HOST if found.device == "cpu" else get_device(found.device)
        return adopt(found.owner, lo, nbytes, found.writable, immutable, place)


def compatible(have: ScalarType, want: ScalarType) -> bool:
    """Whether memory of one scalar may be read as another: only the sign differs, or bool."""
    return have == want or (have.bits == want.bits and have.kind in "iub" and want.kind in "iu")


def _shape_help(info: ElementInfo, ndim: int | None) -> str:
    if not info.inner:
        return f"pass one of {ndim} dimension{'s' * (ndim != 1)}"
    axes = f"{info.inner[0]}" if len(info.inner) == 1 else f"{info.inner}"
    what = f"its last dimension{'s' * (len(info.inner) > 1)} must be {axes}"
    return what if ndim is None else f"{what}, after {ndim} for the elements"


# ---- which adapter

_SEAM = frozenset({"base", "dlpack", "exchange", "gradients"})  # files that are no frameworks


def names() -> list[str]:
    """The frameworks that there are adapters for: the names of their files."""
    import pkgutil  # late: it takes a while

    import engine.interop as here

    found = {m.name for m in pkgutil.iter_modules(here.__path__) if not m.ispkg}
    return sorted(found - _SEAM)


def load(name: str) -> Adapter | None:
    """The adapter in a file; None where the file has none. The framework is not imported."""
    module = load_module(f"engine.interop.{name}")
    found: Adapter | None = getattr(module, "ADAPTER", None)
    return found


@lru_cache(maxsize=1024)
def adapter_of(cls: type) -> Adapter | None:
    """The adapter for objects of a type: the framework's own, or one that is derived from it."""
    roots = {base.__module__.partition(".")[0] for base in cls.__mro__[:-1]
             if isinstance(base.__module__, str) and not is_of_engine(base)}  # fmt: skip
    roots -= {"builtins", "numpy"}
    for name in names() if roots else ():
        # What is not imported has no objects.
        if name in sys.modules or name in roots:
            found = load(name)
            if found is not None and roots.intersection(found.roots or (found.package,)):
                return found
    return None


def forget() -> None:
    """To be called where a file was added: types are looked up anew."""
    adapter_of.cache_clear()


def lend(a: array) -> Any:
    """The elements of an array for another library: NumPy's view of them, components last.

    The view keeps the memory alive; as long as it lives, which an array that a library makes of it
    has to see to, the memory counts as one that may change unseen. An array that the library gives
    back has the storage that this one has.
    """
    if events.everywhere:
        a._lend()
    storage = a.storage
    if not storage.device.backend.on_host:
        storage.expose_for_ever()
        known_as(storage, a.lo, a.hi - a.lo)
        info = a._info
        kind = np.dtype(np.int16) if info.opaque else np.dtype(info.typestr)
        return storage.device.backend.export(
            storage, a.ptr, a.shape + info.inner, a.strides + info.steps, kind
        )
    view = a._fresh_view()
    # Types of more than one number are seen through a view, which holds on to what is below.
    below = view.base
    storage.expose(below if isinstance(below, np.ndarray) else view)
    known_as(storage, a.lo, a.hi - a.lo)
    return view
