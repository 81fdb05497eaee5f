"""JAX: arrays in one memory, which stays immutable to JAX. Kernels in JAX are another module's.

What comes from JAX cannot be written. What went there cannot be as long as JAX holds it: the
capsule that it got says when it has let go (see `engine.runtime.guards`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from engine.diagnostics import LaunchError
from engine.interop.base import Adapter, Mismatch, adapter_of, refused
from engine.lang.foreign import Memory
from engine.lang.structs import StructType
from engine.lang.types import BFLOAT16, BY_NAME, ScalarType, scalar_of
from engine.lang.values import to_ir_type, value_class
from engine.logger import log_warning
from engine.runtime import capsules
from engine.runtime.array import array
from engine.runtime.device import Device, DeviceLike, get_device
from engine.runtime.guards import lend

_TITLE = "a JAX array"
_ALIGNMENT = 64  # bytes: JAX copies memory that does not begin at a multiple
_IN_JIT = "call a function of JAX in place of launch: jax_kernel(kernel), which can be traced"


@cache
def _scalars() -> dict[Any, ScalarType]:
    """The types that both have, by NumPy's."""
    return {t.numpy: t for t in BY_NAME.values()}


@cache
def _class() -> Any:
    """The class of arrays that are no tracers."""
    import jax
    import jax.numpy as jnp

    with jax.ensure_compile_time_eval():
        return type(jnp.zeros(1))


class Jax(Adapter):
    """Arrays on one device of the CPU."""

    package = "jax"
    title = "JAX"
    roots = ("jax", "jaxlib")
    immutable = True

    def memory(self, value: Any) -> Memory | None:
        if type(value) is not _class():
            _check(value)
            return None
        scalar = _scalars().get(value.dtype)
        if scalar is None:
            raise Mismatch("E202", f"{_TITLE} of {value.dtype}", "convert it to a type that arrays "
                           "have: x.astype(jax.numpy.float32)")  # fmt: skip
        try:
            address = value.unsafe_buffer_pointer()
            seen = np.asarray(value)  # waits until it is computed
        except (RuntimeError, ValueError) as e:
            raise _no_memory(value, e) from None
        if seen.__array_interface__["data"][0] != address and seen.size:
            raise _no_memory(value)
        return Memory(address, seen.shape, seen.strides, scalar, seen, False, "cpu", address,
                      seen.nbytes)  # fmt: skip

    def convert(self, scalar: str) -> str:
        return f"convert it first: x.astype(jax.numpy.{scalar})"


def _check(value: Any) -> None:
    """Raises Mismatch for arrays that have no memory."""
    import jax

    if isinstance(value, jax.core.Tracer):
        raise Mismatch("E202", f"{_TITLE} that is being traced, which has no numbers yet", _IN_JIT)
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        raise Mismatch("E202", f"{_TITLE} of random keys", "pass their numbers: "
                                                           "jax.random.key_data(keys)")  # fmt: skip


def _no_memory(value: Any, why: Exception | None = None) -> Mismatch:
    """Why there is no address of an array's elements in the order of rows."""
    if value.is_deleted():
        return Mismatch("E206", f"{_TITLE} that was deleted or donated",
                        "use the array that took its place")  # fmt: skip
    devices = value.sharding.device_set
    if len(devices) > 1:
        return Mismatch("E204", f"{_TITLE} on {len(devices)} devices", "take one part of it, "
                        "x.addressable_data(0), or put it on one: jax.device_put(x, "
                        "jax.devices()[0])")  # fmt: skip
    platform = next(iter(devices)).platform
    if platform != "cpu":
        return Mismatch("E204", f"{_TITLE} on a device of kind {platform!r}", "copy it to the CPU "
                        "first: jax.device_put(x, jax.devices('cpu')[0])")  # fmt: skip
    if why is not None:
        return Mismatch("E206", f"{_TITLE} without memory ({str(why).splitlines()[0]})")
    return Mismatch("E206", f"{_TITLE} that is not stored by rows",
                    "pass a copy: array(numpy.asarray(x))")  # fmt: skip


ADAPTER = Jax()


# ---- for programs


def from_jax(jax_array: Any, dtype: Any = None) -> array:
    """An array over the memory of a JAX array, which it keeps alive. No copy is made.

    Args:
        jax_array: an array on one device of the CPU; it is waited for. Anything else with
            `__dlpack__` is taken, too.
        dtype: the element type, the JAX array's where left out. Vectors and matrices take the
            last axes; integers of one width, and bool as 8 bits, may be taken for one another.

    Kernels that would write the array are refused (E206), since JAX takes it to be immutable: they
    can write a `clone` of it. Raises InteropError (a LaunchError, a TypeError and a RuntimeError):
    E202 for types that there are no arrays of, and for arrays that `jit` and its like trace, whose
    kernels have to be made functions of JAX (`jax_kernel`); E204 for other devices, and for arrays
    on several; E206 for layouts that would need a copy, and for deleted arrays.
    """
    kind: type = type(jax_array)
    if adapter_of(kind) is not ADAPTER and hasattr(jax_array, "__dlpack__"):
        from engine.interop.dlpack import from_dlpack

        return from_dlpack(jax_array, dtype)
    return ADAPTER.share(jax_array, dtype, "from_jax")


def to_jax(a: array) -> Any:
    """A JAX array over the memory of an array. Components of vectors and matrices come last.

    No copy is made of an array whose elements lie side by side, as those of all new arrays do.
    Views that do not begin at a multiple of 64 bytes, or have gaps, are copied: JAX takes no other
    memory. To JAX the memory is immutable, so that kernels which would write it are refused (E206)
    as long as the JAX array, or something that shares its memory, is alive. 64-bit numbers become
    32-bit ones, in a copy and with a warning, unless `jax_enable_x64` is set.

    Raises InteropError: E202 for structs, which JAX has not, and for what is no array.
    """
    if not isinstance(a, array):
        raise refused("E202", f"to_jax takes an array, got {type(a).__name__}")
    element = a._ir.element
    if isinstance(element, StructType):
        raise refused("E202", f"JAX has no arrays of {a.dtype.__name__}",
                      help="give it the fields of structs")  # fmt: skip
    scalar = scalar_of(element)
    a._lend()
    if scalar.bits == 64 and not _wide():
        return _narrowed(a, scalar)
    if not a.is_contiguous or a.ptr % _ALIGNMENT:
        made = array._allocate(a.shape, element, False, a.device)
        made._put(a._host())
        a = made
    view = lend(a, _TITLE)
    capsule = view.__dlpack__()
    if scalar == BFLOAT16:
        capsules.rename(capsule, "dltensor", capsules.BFLOAT)
    return _taker()(capsule)


def _wide() -> bool:
    import jax

    return bool(jax.config.jax_enable_x64)


def _narrowed(a: array, scalar: ScalarType) -> Any:
    """A copy with 32 bits, as JAX has them without x64."""
    import jax.numpy as jnp

    log_warning(f"to_jax makes a copy with 32 bits of an array of {scalar}: JAX has no others "
                "unless jax.config.update('jax_enable_x64', True) is called first")  # fmt: skip
    return jnp.array(a._host(), dtype=scalar.name.replace("64", "32"))


@cache
def _taker() -> Callable[[Any], Any]:
    """What makes a JAX array of a capsule.

    The function of JAX's own library, below `jax.dlpack.from_dlpack`, which takes ten times as
    long; that one where the other is not there, or not as it was.
    """
    import jax

    def ask(capsule: Any) -> Any:
        return jax.dlpack.from_dlpack(_Given(capsule))

    try:
        from jaxlib import _jax

        inner = _jax.dlpack_managed_tensor_to_buffer
        (device, *_) = jax.local_devices(backend="cpu")

        def take(capsule: Any) -> Any:
            return inner(capsule, device, None)

        room = np.zeros(2 * _ALIGNMENT, np.uint8)
        begin = -room.__array_interface__["data"][0] % _ALIGNMENT
        probe = room[begin : begin + _ALIGNMENT]
        found = take(probe.__dlpack__())
        same = found.unsafe_buffer_pointer() == probe.__array_interface__["data"][0]
        if type(found) is _class() and found.shape == probe.shape and same:
            return take
    except Exception:  # whatever another version of JAX does
        return ask
    return ask


class _Given:
    """Something with `__dlpack__` for a capsule, as JAX asks for it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def device_from_jax(jax_device: Any) -> Device:
    """The device that a JAX device is. Raises InteropError (E208) for others than CPUs."""
    platform = getattr(jax_device, "platform", None)
    if platform == "cpu":
        return get_device("cpu")
    raise refused("E208", f"there is no device for the JAX device {jax_device!r}",
                  help="arrays and kernels are on the CPU: jax.devices('cpu')[0]")  # fmt: skip


def device_to_jax(device: DeviceLike = None) -> Any:
    """The JAX device of this process that a device is, the current one for None.

    Raises InteropError (E208) where JAX has none.
    """
    import jax

    place = get_device(device)
    try:
        return jax.local_devices(backend=place.backend.kind)[0]
    except RuntimeError:
        raise refused("E208", f"JAX has no device for {str(place)!r}", help="its setting "
                      "jax_platforms leaves it out: add 'cpu' to it") from None  # fmt: skip


def get_jax_device() -> Any:
    """The device that JAX puts new arrays on: that of `jax.default_device`, or its first."""
    import jax

    found = jax.config.jax_default_device
    if isinstance(found, str):
        return jax.local_devices(backend=found)[0]
    return jax.local_devices()[0] if found is None else found


def dtype_from_jax(jax_dtype: Any) -> type:
    """The scalar class of a JAX dtype, such as `jax.numpy.float32` or a NumPy dtype.

    Raises InteropError (E202), a TypeError, where there is none.
    """
    try:
        found = None if jax_dtype is None else _scalars().get(np.dtype(jax_dtype))
    except TypeError:
        found = None
    if found is None:
        raise refused("E202", f"there is no type for the JAX dtype {jax_dtype!r}",
                      help="arrays have bool, int8 to int64, uint8 to uint64, float16, bfloat16, "
                      "float32 and float64")  # fmt: skip
    return value_class(found)


def dtype_to_jax(dtype: Any) -> Any:
    """The JAX dtype of a scalar type: `jax.numpy.float32`.

    Raises InteropError (E202), a TypeError, for vectors and all else.
    """
    import jax.numpy as jnp

    try:
        kind = to_ir_type(dtype)
    except LaunchError:
        kind = None
    if not isinstance(kind, ScalarType):
        raise refused("E202", f"there is no JAX dtype for {getattr(dtype, '__name__', dtype)!s}",
                      help="vectors and matrices are further axes in JAX")  # fmt: skip
    return jnp.bool_ if kind.kind == "b" else getattr(jnp, kind.name)


__all__ = [
    "device_from_jax",
    "device_to_jax",
    "dtype_from_jax",
    "dtype_to_jax",
    "from_jax",
    "get_jax_device",
    "to_jax",
]
