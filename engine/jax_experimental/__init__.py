"""Kernels inside JAX, by the names of Warp's older versions.

`jax_kernel(kernel, launch_dims=None)` here is of the time before JAX's foreign function interface:
what the kernel has more parameters than the call has arguments are outputs. With any other setting
it is `engine.jax_kernel`, as in `engine.jax_experimental.ffi`.
"""

from __future__ import annotations

from typing import Any

from engine.interop.ffi.callables import jax_callable
from engine.interop.ffi.callbacks import register_ffi_callback
from engine.interop.ffi.kernels import jax_kernel as _jax_kernel
from engine.jax_experimental.custom_call import jax_kernel as _of_custom_call


def jax_kernel(wp_kernel: Any, launch_dims: Any = None, **settings: Any) -> Any:
    """A function of JAX arrays that launches a kernel. It returns a list of outputs.

    settings: those of `engine.jax_kernel`, which it is then.
    """
    if settings:
        return _jax_kernel(wp_kernel, launch_dims=launch_dims, **settings)
    return _of_custom_call(wp_kernel, launch_dims)


__all__ = ["jax_callable", "jax_kernel", "register_ffi_callback"]
