"""Settings of JAX functions: when to compile, and how graphs of a GPU are captured."""

from __future__ import annotations

from enum import IntEnum

# What `jax_callable` keeps of captured graphs where it is not told.
DEFAULT_GRAPH_CACHE_MAX = 32


class JaxCallableGraphMode(IntEnum):
    """How the launches of a `jax_callable` become a graph of a GPU; on the CPU there are none.

    NONE and JAX mean the same there. WARP, WARP_STAGED and WARP_STAGED_EX capture the launches
    by themselves: a call on the CPU is refused.
    """

    NONE = 0
    JAX = 1
    WARP = 2
    WARP_STAGED = 3
    WARP_STAGED_EX = 4


class JaxModulePreloadMode(IntEnum):
    """When kernels are compiled: NONE, at the first run; else, while JAX traces the call."""

    NONE = 0
    CURRENT_DEVICE = 1
    ALL_DEVICES = 2


GraphMode = JaxCallableGraphMode
ModulePreloadMode = JaxModulePreloadMode
