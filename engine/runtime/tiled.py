"""`launch_tiled`: a grid of blocks of threads, of one thread each on the CPU."""

from __future__ import annotations

from typing import Any

from engine.runtime.kernel import Kernel
from engine.runtime.launch import grid, launch
from engine.runtime.launch_errors import fail


def launch_tiled(
    kernel: Kernel,
    dim: Any,
    inputs: Any = (),
    *args: Any,
    block_dim: int | None = None,
    **options: Any,
) -> Any:
    """Runs a kernel for every block of a grid; `tid()` has the thread's place in it as last value.

    Args:
        kernel: a function decorated with `@kernel`.
        dim: the grid of blocks, an int or up to 3 of them.
        inputs: the first arguments.
        *args: what `launch` takes after them.
        **options: what `launch` takes by name.
        block_dim: threads of a block on a GPU. On the CPU a block has one, as in Warp.

    Raises:
        LaunchError: E205 without `block_dim`, or for a grid that is none; else as `launch`.
    """
    if isinstance(block_dim, bool) or not isinstance(block_dim, int) or block_dim < 1:
        raise fail("E205", f"launch_tiled needs the threads of a block, got {block_dim!r}",
                   help="name it: block_dim=64")  # fmt: skip
    shape = (*grid(dim, kernel), 1)
    return launch(kernel, shape, inputs, *args, **options)
