"""PyTorch: tensors as arrays and arrays as tensors, in one memory and with one gradient."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

from engine.interop import exchange, gradients
from engine.interop.base import Adapter, InteropError, Memory, Mismatch, compatible, lend, refused
from engine.lang.types import BY_NAME, ScalarType, scalar_of
from engine.lang.values import to_value_type, value_class
from engine.runtime.adopted import adopt
from engine.runtime.annotation import MAX_DIMS, describe
from engine.runtime.array import array
from engine.runtime.descriptors import described
from engine.runtime.device import HOST, Device, DeviceLike, get_device, is_device_available
from engine.runtime.storage import Storage

if TYPE_CHECKING:
    import torch

    from engine.runtime.streams import Stream

# Types that PyTorch has hardly any arithmetic for.
_SIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


@cache
def _lib() -> Any:
    """PyTorch: faster than an import that has been made."""
    import torch

    return torch


@cache
def _scalars() -> dict[Any, ScalarType]:
    """The types that both have, by PyTorch's."""
    import torch

    return {getattr(torch, n): t for n, t in BY_NAME.items() if hasattr(torch, n)}


@cache
def _plain() -> frozenset[type]:
    """Classes of tensors that are nothing but tensors."""
    import torch

    return frozenset([torch.Tensor, torch.nn.Parameter])


class Torch(Adapter):
    """Tensors that are blocks of memory, of any class derived from `torch.Tensor`."""

    package = "torch"
    title = "PyTorch"
    thing = "tensor"

    def memory(self, value: Any) -> Memory | None:
        try:
            scalar = _scalars()[value.dtype]
            if value.__class__ not in _plain() and (why := _without_memory(value)):
                raise Mismatch(*why)
            address, steps = value.data_ptr(), value.stride()
            block = value.untyped_storage()
        except (AttributeError, KeyError, NotImplementedError, RuntimeError, ValueError):
            why = _unfit(value)
            if why is None:
                return None
            raise Mismatch(*why) from None
        shape, size = tuple(value.shape), scalar.size
        strides = tuple([s * size for s in steps])
        device = "cpu"
        if not value.is_cpu:
            if value.is_meta:
                raise Mismatch("E204", "a PyTorch tensor on device 'meta', which has no elements",
                               "make one that has: torch.empty_like(t, device='cpu')")  # fmt: skip
            device = str(value.device)
            if not value.is_cuda:
                return Memory(address, shape, strides, scalar, block, True, device)
        if value.is_neg():
            raise Mismatch("E202", "a PyTorch tensor that shows numbers with their signs changed",
                           "store the changed signs in memory: t.resolve_neg()")  # fmt: skip
        if not address and 0 not in shape:
            raise Mismatch("E202", "a PyTorch tensor without memory", "copy it: t.clone()")
        return Memory(address, shape, strides, scalar, block, True, device,
                      block.data_ptr(), block.nbytes())  # fmt: skip

    def untold(self, value: Any) -> bool:
        return bool(value.is_neg())

    def storage(self, found: Memory) -> Storage:
        made, block = super().storage(found), cast("Any", found.owner)
        if made.owner is found.owner and found.device == "cpu" and block.resizable():
            _stay(block)
        return made

    def convert(self, scalar: str) -> str:
        return f"convert it first: t.to(torch.{scalar})"

    # ---- gradients

    def wants_gradient(self, value: Any) -> bool:
        return bool(value.requires_grad and value.is_leaf)

    def lost(self, value: Any) -> str:
        if not value.requires_grad:
            return ""
        return (
            "a tensor that PyTorch computed is passed to a launch on a tape, and its gradient ends "
            "there. Pass an array, a = from_torch(t), and its gradient on to PyTorch: "
            "t.backward(to_torch(a.grad)); or pass t.detach()"
        )

    def asks_gradient(self, value: Any) -> bool:
        return bool(value.requires_grad)

    def has_place(self, tensor: Any) -> bool:
        return bool(tensor.is_leaf)

    def gradient_of(self, tensor: Any) -> Any:
        return tensor.grad

    def set_gradient(self, tensor: Any, gradient: Any) -> None:
        torch = _lib()
        if torch.is_inference_mode_enabled():  # whose tensors nobody may change later
            with torch.inference_mode(False):
                self.set_gradient(tensor, gradient)
            return
        tensor.grad = self.tensor(gradient) if isinstance(gradient, array) else gradient

    def new_gradient(self, tensor: Any) -> Any:
        torch = _lib()
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self.new_gradient(tensor)
        if tensor.is_cpu and tensor.is_contiguous():
            # Zeros that cost nothing until they are touched.
            kind = _scalars()[tensor.dtype]
            zeros = array._allocate((tensor.numel(),), kind, True, HOST)
            return self.tensor(zeros).view(tensor.shape)
        with torch.no_grad():
            return torch.zeros_like(tensor.detach())

    def address(self, tensor: Any) -> int:
        found: int = tensor.data_ptr()
        return found

    def tensor(self, a: array) -> Any:
        torch = _lib()
        if a.device.is_cuda:
            return self._on_gpu(a)
        try:
            if not a._info.opaque and a.storage.writable:
                return torch.from_numpy(lend(a))
            seen = exchange.parts(self, a)
            if seen.dtype.kind == "V":
                return torch.from_numpy(seen.view("int16")).view(torch.bfloat16)
            return torch.from_numpy(seen)
        except (TypeError, ValueError) as e:
            if isinstance(e, InteropError):  # which says better what it is
                raise
            raise exchange.unlike(self, a) from None

    def _on_gpu(self, a: array) -> Any:
        """The same on a GPU, where CuPy shows the memory to other libraries."""
        torch = _lib()
        info, steps = a._info, a.strides
        if any(s < 0 or s % scalar_of(a._ir.element).size for s in steps) and a.size:
            raise exchange.unlike(self, a)
        seen = torch.from_dlpack(exchange.parts(self, a))
        return seen.view(torch.bfloat16) if info.opaque else seen


def _stay(block: Any) -> None:
    """Makes memory stay where it is as long as it lives: `resize_` would free it under an array.

    PyTorch does so itself for memory that it shows to NumPy, and says what is wrong from then on.
    """
    torch = _lib()
    torch.empty(0, dtype=torch.uint8, device="cpu").set_(block).numpy()


def _without_memory(value: Any) -> tuple[str, str, str] | None:
    """Why a tensor of a class of its own has no memory; None where it has."""
    import torch
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    if not isinstance(value, torch.Tensor):
        return None
    if isinstance(value, torch._subclasses.FakeTensor):
        return ("E202", "a fake PyTorch tensor, which has no elements",
                "launch kernels in an operator of torch.library.custom_op: tracing "
                "does not look into it")  # fmt: skip
    if is_traceable_wrapper_subclass(value):
        return ("E202", f"a PyTorch tensor that is made of others ({type(value).__name__})",
                "pass the tensors in it")  # fmt: skip
    return None


def _unfit(value: Any) -> tuple[str, str, str] | None:
    """Why a tensor is no block of memory: a code, what it is and the way out. None for others."""
    import torch

    if not isinstance(value, torch.Tensor):
        return None
    name = str(value.dtype).removeprefix("torch.")
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return ("E202", "a PyTorch tensor inside of torch.func (vmap, grad, jvp ...)",
                "launch kernels in a torch.autograd.Function or an operator of "
                "torch.library.custom_op that defines the rules for vmap, grad and "
                "jvp")  # fmt: skip
    if value.is_quantized:
        return "E202", f"a quantized PyTorch tensor ({name})", "pass its numbers: t.dequantize()"
    if value.is_nested:
        return "E202", "a nested PyTorch tensor", "pass the tensors in it: t.unbind()"
    if value.layout is not torch.strided:
        layout = str(value.layout).removeprefix("torch.")
        return "E202", f"a PyTorch tensor of layout {layout}", "make a dense one: t.to_dense()"
    if value.is_complex():
        return ("E202", f"a PyTorch tensor of {name}",
                "arrays have no complex numbers: pass torch.view_as_real(t)")  # fmt: skip
    if value.dtype not in _scalars():
        return "E202", f"a PyTorch tensor of {name}", "convert it first: t.to(torch.float32)"
    return "E202", "a PyTorch tensor without memory of its own", "copy it: t.clone()"


ADAPTER = Torch()


# ---- what programs call


def from_torch(
    t: torch.Tensor,
    dtype: Any = None,
    requires_grad: bool | None = None,
    grad: Any = None,
    return_ctype: bool = False,
    retain_grad: bool = False,
) -> Any:
    """An array over the memory of a tensor. Nothing is copied; it is kept alive.

    On a GPU, `t.resize_` frees the memory that the array shows: PyTorch has no way to forbid it.

    Args:
        t: the tensor.
        dtype: the element type, the tensor's where left out. Vectors and matrices take the last
            axes; integers of one width, and bool as 8 bits, may be taken for one another.
        requires_grad: whether the array has a gradient, as the tensor where left out. It is the
            tensor's: `a.grad` is at any time what `t.grad` is. Where that is None (after
            `optimizer.zero_grad()`, say), a backward pass begins with zeros, and puts them there.
            A tensor that PyTorch computed has no such place, and the array a gradient of its own.
        grad: a gradient for the array, a tensor or an array, in place of the tensor's.
        return_ctype: gives the array as C sees it, a structure, which launches take as well.
        retain_grad: whether backward passes that consume the gradient keep it.

    Raises LaunchError: E202 for types, E203 for dimensions, E204 for devices, E206 for layouts.
    """
    if return_ctype:
        plain = dtype is None and grad is None and not requires_grad and type(t) in _plain()
        if plain and not t.requires_grad:
            return _quick_structure(t)
        return exchange.structure(ADAPTER, t, dtype, requires_grad, grad)
    return exchange.taken(ADAPTER, t, dtype, requires_grad, grad, retain_grad)


def _quick_structure(t: Any) -> Any:
    """A tensor without a gradient as a structure, of which a launch makes the array."""
    scalar = _scalars().get(t.dtype)
    shape = t.shape
    if scalar is None or not t.is_cpu or not 0 < len(shape) <= MAX_DIMS or t.is_neg():
        return exchange.structure(ADAPTER, t, None, False, None)
    try:
        address, steps = t.data_ptr(), t.stride()
        block = t.untyped_storage()
    except RuntimeError:
        return exchange.structure(ADAPTER, t, None, False, None)
    size = scalar.size
    strides = [s * size for s in steps]
    if block.resizable():
        _stay(block)
    return described(address, 0, shape, strides, _made, block, address, shape, strides, scalar)


def _made(block: Any, address: int, shape: Any, strides: Any, scalar: ScalarType) -> array:
    storage = adopt(block, block.data_ptr(), block.nbytes())
    return array._make(storage, address, tuple(shape), tuple(strides), scalar)


def to_torch(a: array, requires_grad: bool | None = None) -> torch.Tensor:
    """A tensor over the memory of an array, on its device. Nothing is copied; it is kept alive.

    Args:
        a: the array. Components of vectors and matrices are the last axes.
        requires_grad: whether the tensor is a leaf with a gradient, as the array where left out.
            Where the array has one, both are one memory. After `optimizer.zero_grad()` it is zero,
            and given to the tensor again by the next backward pass of a tape.

    Raises LaunchError (E206) for arrays of structs, read-only memory, and steps that tensors do not
    have (`a[::-1]`).
    """
    if not isinstance(a, array):
        raise exchange.no_array(ADAPTER, a)
    t, own = ADAPTER.tensor(a), a.requires_grad
    if own if requires_grad is None else requires_grad:
        if not a._info.floating:
            raise exchange.no_gradient(ADAPTER, a)
        t.requires_grad_(True)
        if own:
            gradients.give(ADAPTER, a, t)
    return t


def dtype_from_torch(torch_dtype: torch.dtype) -> Any:
    """The scalar type of a PyTorch type. Raises LaunchError (E202), a TypeError, for others."""
    found = _scalars().get(torch_dtype)
    if found is None:
        raise refused("E202", f"there are no arrays of {torch_dtype}")
    return value_class(found)


def dtype_to_torch(warp_dtype: Any) -> torch.dtype:
    """The PyTorch type for a scalar type; for unsigned ones above 8 bits the signed one.

    Raises LaunchError (E202), a TypeError, for vectors and the like.
    """
    import torch

    kind = to_value_type(warp_dtype)
    name = kind.name if isinstance(kind, ScalarType) else ""
    found = getattr(torch, _SIGNED.get(name, name), None)
    if not isinstance(found, torch.dtype):
        raise refused("E202", f"PyTorch has no type for {describe(kind)}",
                      help="tensors have scalars; components are their last axes")  # fmt: skip
    return found


def dtype_is_compatible(torch_dtype: torch.dtype, warp_dtype: Any) -> bool:
    """Whether tensors of one type can be arrays of another; of its scalars, for vectors."""
    have = _scalars().get(torch_dtype)
    return have is not None and compatible(have, scalar_of(to_value_type(warp_dtype)))


def device_from_torch(torch_device: torch.device | str) -> Device:
    """The device of a PyTorch device. Raises LaunchError (E208), a RuntimeError, for others."""
    name = str(torch_device)
    if name == "cpu" or name.startswith("cpu:"):
        return HOST
    if name == "cuda":
        import torch

        name = f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else name
    if is_device_available(name):
        return get_device(name)
    raise refused("E208", f"PyTorch's device {name!r} cannot run kernels",
                  help='use "cpu"')  # fmt: skip


def device_to_torch(warp_device: DeviceLike = None) -> str:
    """The name of a device for PyTorch. Raises LaunchError (E208) for an unknown one."""
    return str(get_device(warp_device))


def stream_from_torch(stream_or_device: Any = None) -> Stream:
    """The stream of PyTorch's CUDA stream. Raises LaunchError (E208): there is none on the CPU."""
    raise exchange.no_stream("stream_from_torch", stream_or_device)


def stream_to_torch(stream_or_device: Any = None) -> Any:
    """PyTorch's CUDA stream of a stream. Raises LaunchError (E208): there is none on the CPU."""
    raise exchange.no_stream("stream_to_torch", stream_or_device)
