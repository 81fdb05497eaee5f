"""`jax_kernel` as it was before JAX's foreign function interface."""

from __future__ import annotations

from typing import Any

from engine.interop.ffi.kernels import JaxKernel
from engine.interop.ffi.kernels import jax_kernel as _jax_kernel
from engine.runtime.kernel import Kernel
from engine.runtime.launch_errors import fail


def jax_kernel(wp_kernel: Any, launch_dims: Any = None, quiet: bool = False) -> Any:
    """A function of JAX arrays that launches a kernel, and returns a list of its outputs.

    Args:
        wp_kernel: what `@kernel` made. Its last parameters are outputs: as many as a call has
            fewer arguments.
        launch_dims: the grid, and the shape of outputs; the shape of the first input for None.
        quiet: accepted; nothing is told.

    JAX may differentiate it. Raises LaunchError as `engine.jax_kernel` does.
    """
    del quiet
    if not isinstance(wp_kernel, Kernel):
        raise fail("E202", f"jax_kernel takes a kernel, got {wp_kernel!r:.80}",
                   help="decorate the function with @kernel")  # fmt: skip
    count = len(wp_kernel.signature.types)
    made: dict[int, JaxKernel] = {}

    def call(*args: Any) -> list[Any]:
        n = len(args)
        if n >= count:
            raise fail("E201", f"kernel {wp_kernel.key!r} has {count} parameters, of which the "
                       f"last are outputs: got {n} inputs")  # fmt: skip
        if n not in made:
            made[n] = _jax_kernel(
                wp_kernel, num_outputs=count - n, launch_dims=launch_dims, enable_backward=True
            )
        return made[n](*args)

    call.__name__ = wp_kernel.__name__
    return call
