"""`jax_kernel`, `jax_callable` and others, by the name of the module in Warp's older versions."""

from __future__ import annotations

from engine.interop.ffi.callables import (
    clear_jax_callable_graph_cache,
    get_jax_callable_default_graph_cache_max,
    jax_callable,
    set_jax_callable_default_graph_cache_max,
)
from engine.interop.ffi.callbacks import ExecutionContext, register_ffi_callback
from engine.interop.ffi.kernels import jax_kernel
from engine.interop.ffi.modes import (
    GraphMode,
    JaxCallableGraphMode,
    JaxModulePreloadMode,
    ModulePreloadMode,
)

__all__ = [
    "ExecutionContext",
    "GraphMode",
    "JaxCallableGraphMode",
    "JaxModulePreloadMode",
    "ModulePreloadMode",
    "clear_jax_callable_graph_cache",
    "get_jax_callable_default_graph_cache_max",
    "jax_callable",
    "jax_kernel",
    "register_ffi_callback",
    "set_jax_callable_default_graph_cache_max",
]
