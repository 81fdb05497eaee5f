"""Paddle: tensors as arrays and arrays as tensors, in one memory and with one gradient."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from engine.interop import exchange, gradients
from engine.interop.base import Adapter, Memory, Mismatch, compatible, refused
from engine.lang.types import BY_NAME, UINT16, ScalarType, scalar_of
from engine.lang.values import to_value_type, value_class
from engine.runtime.annotation import MAX_DIMS, describe
from engine.runtime.array import array
from engine.runtime.descriptors import described
from engine.runtime.device import HOST, Device, DeviceLike, get_device

if TYPE_CHECKING:
    import paddle

    from engine.runtime.streams import Stream

# What Paddle has no type or hardly any arithmetic for; its uint16 is bfloat16.
_SIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


@cache
def _lib() -> Any:
    """Paddle: faster than an import that has been made."""
    import paddle

    return paddle


@cache
def _scalars() -> dict[Any, ScalarType]:
    """The types that both have, by Paddle's."""
    found = {n: getattr(_lib(), n, None) for n in BY_NAME if n != UINT16.name}
    return {t: BY_NAME[n] for n, t in found.items() if t is not None}


@cache
def _kinds() -> dict[int, tuple[Any, ScalarType]]:
    """The same by the identity of Paddle's types, which takes less time than their hashes."""
    return {id(t): (t, scalar) for t, scalar in _scalars().items()}


@cache
def _marks() -> bool:
    """Whether this version of Paddle marks gradients that were set to zero."""
    return hasattr(_lib().Tensor, "_unset_fake_empty")


class Paddle(Adapter):
    """Dense tensors on the CPU."""

    package = "paddle"
    title = "Paddle"
    thing = "tensor"

    def memory(self, value: Any) -> Memory | None:
        if not isinstance(value, _lib().Tensor):
            return None
        kind = _kinds().get(id(value.dtype))
        if kind is None or not value.is_dense():
            raise Mismatch(*_unfit(value))
        scalar, shape = kind[1], tuple(value.shape)
        size = scalar.size
        address = _address(value)
        if not address and 0 not in shape:
            raise Mismatch("E202", "a Paddle tensor without memory", "give it values first")
        place = value.place
        strides = tuple([s * size for s in value.strides])
        device = "cpu"
        if not place.is_cpu_place() and not place.is_cuda_pinned_place():
            device = str(place).removeprefix("Place(").removesuffix(")")
        # What it keeps alive is the memory, whatever happens to the tensor.
        return Memory(address, shape, strides, scalar, value.detach(), True, device)

    def convert(self, scalar: str) -> str:
        return f"convert it first: t.astype({scalar!r})"

    # ---- gradients

    def asks_gradient(self, value: Any) -> bool:
        return not value.stop_gradient

    def wants_gradient(self, value: Any) -> bool:
        return bool(not value.stop_gradient and value.is_leaf)

    def lost(self, value: Any) -> str:
        if value.stop_gradient:
            return ""
        return (
            "a tensor that Paddle computed is passed to a launch on a tape, and its gradient ends "
            "there. Pass an array, a = from_paddle(t), and its gradient on to Paddle: "
            "t.backward(to_paddle(a.grad)); or pass t.detach()"
        )

    def has_place(self, tensor: Any) -> bool:
        return bool(tensor.is_leaf)

    def gradient_of(self, tensor: Any) -> Any:
        found = tensor.grad
        if found is not None and _marks():
            # After `clear_grad` it is zeros, and marked: Paddle's next backward pass would put its
            # own in their place, whatever has been added to them.
            tensor._unset_fake_empty()
        return found

    def set_gradient(self, tensor: Any, gradient: Any) -> None:
        tensor.grad_ = self.tensor(gradient) if isinstance(gradient, array) else gradient

    def new_gradient(self, tensor: Any) -> Any:
        kind = _scalars()[tensor.dtype]
        shape = tuple(tensor.shape)
        if not 0 < len(shape) <= MAX_DIMS:
            return _lib().zeros_like(tensor.detach())
        return self.tensor(array._allocate(shape, kind, True, HOST))

    def address(self, tensor: Any) -> int:
        return tensor.data_ptr() or 0

    def tensor(self, a: array) -> Any:
        seen = exchange.parts(self, a)
        if seen.dtype.kind == "V":
            seen = seen.view("uint16")  # Paddle reads it as bfloat16
        elif seen.dtype.name in _SIGNED and seen.itemsize == 2:
            seen = seen.view("int16")
        paddle = _lib()
        if any(s < 0 for s in seen.strides):
            raise exchange.unlike(self, a)
        own = _part_of(a, seen)
        if own is not None:
            return own
        try:
            block = paddle.base.core.from_dlpack(seen.__dlpack__())
        except (BufferError, RuntimeError, ValueError):
            raise exchange.unlike(self, a) from None
        return paddle.Tensor(block, place=paddle.CPUPlace())


def _address(t: Any) -> int:
    """Of the first element; 0 where there is none."""
    try:
        return t.data_ptr() or 0
    except (RuntimeError, ValueError):  # it has no memory yet
        return 0


def _part_of(a: array, seen: Any) -> Any:
    """Memory of a tensor of Paddle as another one of its tensors; None for other memory.

    By DLPack, the last of them would free one tensor while it frees another: if the first came by
    DLPack too, Paddle (3.3) would wait for itself there, for ever.
    """
    owner, paddle = a.storage.owner, _lib()
    if not isinstance(owner, paddle.Tensor) or not a.size:
        return None
    if _scalars().get(owner.dtype) is not scalar_of(a._ir.element):
        return None
    size = seen.itemsize
    try:
        with paddle.no_grad():
            # Bytes from the beginning of the block, in which the tensor may lie anywhere.
            start = paddle.as_strided(owner, [1], [1], 0).data_ptr()
            steps = [s // size for s in seen.strides]
            made = paddle.as_strided(owner, list(seen.shape), steps, a.ptr - start)
    except (RuntimeError, ValueError):
        return None
    return made if made.data_ptr() == a.ptr else None


def _unfit(value: Any) -> tuple[str, str, str]:
    """Why a tensor is no block of memory: a code, what it is and the way out."""
    if value.is_sparse():
        return "E202", "a sparse Paddle tensor", "make a dense one: t.to_dense()"
    if not value.is_dense():
        return "E202", "a Paddle tensor that is made of others", "pass the tensors in it"
    name = str(value.dtype).removeprefix("paddle.")
    if name.startswith("complex"):
        return ("E202", f"a Paddle tensor of {name}",
                "arrays have no complex numbers: pass paddle.as_real(t)")  # fmt: skip
    return "E202", f"a Paddle tensor of {name}", "convert it first: t.astype('float32')"


ADAPTER = Paddle()


# ---- what programs call


def from_paddle(
    t: paddle.Tensor,
    dtype: Any = None,
    requires_grad: bool | None = None,
    grad: Any = None,
    return_ctype: bool = False,
    retain_grad: bool = False,
) -> Any:
    """An array over the memory of a tensor on the CPU. Nothing is copied; it is kept alive.

    Args:
        t: the tensor.
        dtype: the element type, the tensor's where left out. Vectors and matrices take the last
            axes; integers of one width, and bool as 8 bits, may be taken for one another.
        requires_grad: whether the array has a gradient; where left out, unless the tensor says
            `stop_gradient`. It is the tensor's: `a.grad` is at any time what `t.grad` is. Where
            that is None, a backward pass begins with zeros, and puts them there. A tensor that
            Paddle computed has no such place, and the array a gradient of its own.
        grad: a gradient for the array, a tensor or an array, in place of the tensor's.
        return_ctype: gives the array as C sees it, a structure, which launches take as well.
        retain_grad: whether backward passes that consume the gradient keep it.

    Raises LaunchError: E202 for types, E203 for dimensions, E204 for devices, E206 for layouts.
    """
    if return_ctype:
        plain = dtype is None and grad is None and not requires_grad
        if plain and isinstance(t, _lib().Tensor) and t.stop_gradient:
            return _quick_structure(t)
        return exchange.structure(ADAPTER, t, dtype, requires_grad, grad)
    return exchange.taken(ADAPTER, t, dtype, requires_grad, grad, retain_grad)


def _quick_structure(t: Any) -> Any:
    """A tensor without a gradient as a structure. What it is, a launch looks at."""
    found, shape = _kinds().get(id(t.dtype)), t.shape
    if found is None or not 0 < len(shape) <= MAX_DIMS or not t.place.is_cpu_place():
        return exchange.structure(ADAPTER, t, None, False, None)
    size = found[1].size
    steps = [s * size for s in t.strides]
    return described(t.data_ptr() or 0, 0, shape, steps, ADAPTER.share, t)


def to_paddle(a: array, requires_grad: bool | None = None) -> paddle.Tensor:
    """A tensor over the memory of an array on the CPU. Nothing is copied; it is kept alive.

    Args:
        a: the array. Components of vectors and matrices are the last axes; numbers of uint16 are
            int16 to Paddle, which has none of the former.
        requires_grad: whether the tensor has a gradient (`stop_gradient` is False), as the array
            where left out. Where the array has one, both are one memory. Where Paddle forgets it,
            it is zero, and given to the tensor again by the next backward pass of a tape.

    Raises LaunchError (E206) for arrays of structs, read-only memory, and steps that tensors do not
    have (`a[::-1]`).
    """
    t, wanted = exchange.given(ADAPTER, a, requires_grad)
    t.stop_gradient = not wanted
    if wanted and a.requires_grad:
        gradients.give(ADAPTER, a, t)
    return t


def dtype_from_paddle(paddle_dtype: Any) -> Any:
    """The scalar type of a Paddle type. Raises LaunchError (E202), a TypeError, for others."""
    found = _scalars().get(paddle_dtype)
    if found is None:
        raise refused("E202", f"there are no arrays of {paddle_dtype}")
    return value_class(found)


def dtype_to_paddle(warp_dtype: Any) -> Any:
    """The Paddle type for a scalar type; for unsigned ones above 8 bits the signed one.

    Raises LaunchError (E202), a TypeError, for vectors and the like.
    """
    kind = to_value_type(warp_dtype)
    if not isinstance(kind, ScalarType):
        raise refused("E202", f"Paddle has no type for {describe(kind)}",
                      help="tensors have scalars; components are their last axes")  # fmt: skip
    return getattr(_lib(), _SIGNED.get(kind.name, kind.name))


def dtype_is_compatible(paddle_dtype: Any, warp_dtype: Any) -> bool:
    """Whether tensors of one type can be arrays of another; of its scalars, for vectors."""
    have = _scalars().get(paddle_dtype)
    return have is not None and compatible(have, scalar_of(to_value_type(warp_dtype)))


def device_from_paddle(paddle_device: Any) -> Device:
    """The device of a Paddle place, or of its name. Raises LaunchError (E208) for others."""
    name = str(paddle_device).removeprefix("Place(").removesuffix(")")
    if name in ("cpu", "gpu_pinned"):
        return HOST
    raise refused("E208", f"Paddle's device {name!r} cannot run kernels",
                  help='use "cpu"')  # fmt: skip


def device_to_paddle(warp_device: DeviceLike = None) -> str:
    """The name of a device for Paddle. Raises LaunchError (E208) for an unknown one."""
    return str(get_device(warp_device))


def stream_from_paddle(stream_or_device: Any = None) -> Stream:
    """The stream of Paddle's CUDA stream. Raises LaunchError (E208): there is none on the CPU."""
    raise exchange.no_stream("stream_from_paddle", stream_or_device)
