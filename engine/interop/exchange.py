"""`from_NAME` and `to_NAME` for frameworks whose tensors have gradients."""

from __future__ import annotations

from typing import Any

from engine.interop import gradients
from engine.interop.base import Adapter, lend, refused
from engine.runtime.array import array
from engine.runtime.descriptors import described


def taken(
    adapter: Adapter, t: Any, dtype: Any, requires_grad: bool | None, grad: Any, retain_grad: bool
) -> array:
    """An array over a tensor; see `from_torch`. Raises InteropError."""
    made = adapter.share(t, dtype, f"from_{adapter.package}")
    if grad is not None:
        if requires_grad is False:
            raise refused("E206", f"from_{adapter.package}: a gradient is given, and requires_grad "
                          "is False")  # fmt: skip
        made.grad = grad if isinstance(grad, array) else adapter.share(grad, made.dtype)
    elif adapter.asks_gradient(t) if requires_grad is None else requires_grad:
        if made._info.floating and adapter.has_place(t):
            gradient = gradients.shared_gradient(adapter, t)
            gradients.join(made, gradient)
            if adapter.gradient_of(t) is None:
                gradient.of(made)
        else:
            made.requires_grad = True
    if retain_grad:
        made.retain_grad = True
    return made


def structure(adapter: Adapter, t: Any, dtype: Any, requires_grad: bool | None, grad: Any) -> Any:
    """The same as a structure of C. Raises InteropError."""
    made = taken(adapter, t, dtype, requires_grad, grad, False)
    own = made.existing_grad
    if own is not None and own.strides != made.strides and made.size:
        raise refused("E206", f"from_{adapter.package}: a structure has one set of strides, and "
                      f"the tensor {made.strides}, its gradient {own.strides} (in bytes)",
                      help="make both contiguous")  # fmt: skip
    address = 0 if own is None else own.ptr
    return described(made.ptr, address, made.shape, made.strides, lambda: made)


def given(adapter: Adapter, a: Any, requires_grad: bool | None) -> tuple[Any, bool]:
    """A tensor over an array, and whether it is to have a gradient. Raises InteropError."""
    if not isinstance(a, array):
        raise no_array(adapter, a)
    return adapter.tensor(a), a.requires_grad if requires_grad is None else requires_grad


def no_array(adapter: Adapter, a: Any) -> Exception:
    """The error for what is no array."""
    return refused("E202", f"to_{adapter.package} takes an array, got {type(a).__name__}",
                   help="make an array of it first: array(data), or indexed.contiguous()"
                   )  # fmt: skip


def parts(adapter: Adapter, a: array) -> Any:
    """The elements of an array as NumPy has them, for a tensor. Raises InteropError."""
    if a._info.numpy.names is not None:
        raise refused("E206", f"to_{adapter.package}: tensors have no elements of "
                      f"{a.dtype.__name__}", help="pass its fields: arrays of numbers")  # fmt: skip
    if not a.storage.writable:
        raise refused("E206", f"to_{adapter.package}: the array wraps read-only memory, and "
                      "tensors can be written", help="pass a copy: clone(a)")  # fmt: skip
    return lend(a)


def unlike(adapter: Adapter, a: array) -> Exception:
    """The error for steps that tensors do not have."""
    return refused("E206", f"to_{adapter.package}: tensors have no strides of {a.strides} bytes",
                   help="pass a copy: clone(a)")  # fmt: skip


def no_gradient(adapter: Adapter, a: array) -> Exception:
    """The error for elements that have no gradient."""
    return refused("E202", f"to_{adapter.package}: elements of type {a.dtype.__name__} have no "
                   "gradient", help="leave requires_grad out")  # fmt: skip


def no_stream(what: str, of: Any) -> Exception:
    """The error for streams of CUDA."""
    return refused("E208", f"{what}: kernels run on the CPU, where there are no streams of CUDA"
                   f"{'' if of is None else f' (got {of})'}",
                   help="leave it out: launches have ended when they return")  # fmt: skip
