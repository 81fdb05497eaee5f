"""A differentiable kernel engine: Python functions become native kernels with exact gradients.

::

    import engine as wp

    @wp.kernel
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i]

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(square, dim=len(x), inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones_like(y)})
    print(x.grad)  # [2. 4. 6.]

PYTEST_DONT_REWRITE: pytest leaves its assertions alone, and does not warn where it is there first.
"""

# ruff: noqa: F405  (names that type checkers find in `engine.public`)

from __future__ import annotations

import builtins as _python
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from engine import config, hooks
from engine import forks as _forks  # noqa: F401  (which wait for imports from here on)
from engine import late as _late  # noqa: F401  (the first: it notes when)
from engine.accelerator import accelerator as _accelerator
from engine.itself import load as _load

if TYPE_CHECKING:
    from engine import autograd
    from engine.builtins.names import *  # noqa: F403  (stubs, for editors)
    from engine.compile.cache import clear_kernel_cache
    from engine.compile.environment import Environment, environment, print_diagnostics, processors
    from engine.interop.dlpack import from_dlpack, to_dlpack
    from engine.interop.ffi.callables import clear_jax_callable_graph_cache, jax_callable
    from engine.interop.ffi.callbacks import register_ffi_callback
    from engine.interop.ffi.kernels import jax_kernel
    from engine.interop.ffi.modes import JaxCallableGraphMode, JaxModulePreloadMode
    from engine.interop.jax import (
        device_from_jax,
        device_to_jax,
        dtype_from_jax,
        dtype_to_jax,
        from_jax,
        to_jax,
    )
    from engine.interop.ops.stretches import record_jax, record_torch
    from engine.interop.ops.torch_kernel import torch_kernel
    from engine.interop.paddle import (
        device_from_paddle,
        device_to_paddle,
        dtype_from_paddle,
        dtype_to_paddle,
        from_paddle,
        stream_from_paddle,
        to_paddle,
    )
    from engine.interop.torch import (
        device_from_torch,
        device_to_torch,
        dtype_from_torch,
        dtype_to_torch,
        from_torch,
        stream_from_torch,
        stream_to_torch,
        to_torch,
    )
    from engine.lang.names import *  # noqa: F403
    from engine.public import *  # noqa: F403
    from engine.runtime.command import Launch
    from engine.runtime.faults import Fault
    from engine.runtime.geometry.bvh import Bvh, BvhConstructor, BvhQuery
    from engine.runtime.geometry.hash_grid import HashGrid, HashGridQuery
    from engine.runtime.geometry.mesh import (
        Mesh,
        MeshQuery,
        MeshQueryAABB,
        MeshQueryPoint,
        MeshQueryRay,
    )
    from engine.runtime.gpus import *  # noqa: F403
    from engine.runtime.launch import launch
    from engine.runtime.stages import KernelStage, StageLine, kernel_stage
    from engine.runtime.tiled import launch_tiled
    from engine.runtime.watch import watching
    from engine.tape.capture import Capture, CapturedTape, capturing
    from engine.tape.tape import Tape

__version__ = "0.1.0"

# All names come when they are asked for, so that what stands on the engine can have parts of it
# without the rest, and without NumPy: those of `engine.public` all at once, with the first of
# them; these with their modules, since a program that launches nothing needs neither passes nor
# code generation nor a compiler; and the builtins.
_LATE = {
    "autograd": "engine.autograd",
    "from_dlpack": "engine.interop.dlpack",
    "to_dlpack": "engine.interop.dlpack",
    "torch_kernel": "engine.interop.ops.torch_kernel",
    "record_torch": "engine.interop.ops.stretches",
    "record_jax": "engine.interop.ops.stretches",
    "dlpack": "engine.dlpack",
    "jax": "engine.jax",
    "device_from_jax": "engine.interop.jax",
    "device_to_jax": "engine.interop.jax",
    "dtype_from_jax": "engine.interop.jax",
    "dtype_to_jax": "engine.interop.jax",
    "from_jax": "engine.interop.jax",
    "to_jax": "engine.interop.jax",
    "JaxCallableGraphMode": "engine.interop.ffi.modes",
    "JaxModulePreloadMode": "engine.interop.ffi.modes",
    "clear_jax_callable_graph_cache": "engine.interop.ffi.callables",
    "jax_callable": "engine.interop.ffi.callables",
    "jax_experimental": "engine.jax_experimental",
    "jax_kernel": "engine.interop.ffi.kernels",
    "register_ffi_callback": "engine.interop.ffi.callbacks",
    "from_torch": "engine.interop.torch",
    "to_torch": "engine.interop.torch",
    "dtype_from_torch": "engine.interop.torch",
    "dtype_to_torch": "engine.interop.torch",
    "device_from_torch": "engine.interop.torch",
    "device_to_torch": "engine.interop.torch",
    "stream_from_torch": "engine.interop.torch",
    "stream_to_torch": "engine.interop.torch",
    "torch": "engine.torch",
    "device_from_paddle": "engine.interop.paddle",
    "device_to_paddle": "engine.interop.paddle",
    "dtype_from_paddle": "engine.interop.paddle",
    "dtype_to_paddle": "engine.interop.paddle",
    "from_paddle": "engine.interop.paddle",
    "stream_from_paddle": "engine.interop.paddle",
    "to_paddle": "engine.interop.paddle",
    "paddle": "engine.paddle",
    "optim": "engine.optim",
    "utils": "engine.utils",
    "transform_expand": "engine.utils",
    "Fault": "engine.runtime.faults",
    "launch": "engine.runtime.launch",
    "map": "engine.runtime.mapping",
    "Launch": "engine.runtime.command",
    "launch_tiled": "engine.runtime.tiled",
    "HashGrid": "engine.runtime.geometry.hash_grid",
    "HashGridQuery": "engine.runtime.geometry.hash_grid",
    "Bvh": "engine.runtime.geometry.bvh",
    "BvhConstructor": "engine.runtime.geometry.bvh",
    "BvhQuery": "engine.runtime.geometry.bvh",
    "Mesh": "engine.runtime.geometry.mesh",
    "MeshQuery": "engine.runtime.geometry.mesh",
    "MeshQueryAABB": "engine.runtime.geometry.mesh",
    "MeshQueryPoint": "engine.runtime.geometry.mesh",
    "MeshQueryRay": "engine.runtime.geometry.mesh",
    "watching": "engine.runtime.watch",
    "Tape": "engine.tape.tape",
    "Capture": "engine.tape.capture",
    "CapturedTape": "engine.tape.capture",
    "capturing": "engine.tape.capture",
    "KernelStage": "engine.runtime.stages",
    "StageLine": "engine.runtime.stages",
    "kernel_stage": "engine.runtime.stages",
    "Environment": "engine.compile.environment",
    "clear_kernel_cache": "engine.compile.cache",
    "environment": "engine.compile.environment",
    "print_diagnostics": "engine.compile.environment",
    "processors": "engine.compile.environment",
}


def _builtins() -> Mapping[str, Any]:
    """The builtins by name, which are names of this module from then on."""
    from engine.builtins.stubs import BUILTINS

    _put(BUILTINS)
    return BUILTINS


def _adapter(cls: type) -> Any:
    """Finds adapters of other frameworks from now on, at the first array that is none of ours."""
    from engine.interop.base import adapter_of

    hooks.adapter = adapter_of
    return adapter_of(cls)


def _instantiate(composite: Any, types: Any) -> Any:
    """Lowers builtins that are written in the kernel language from now on."""
    from engine.frontend import lower_composite

    hooks.instantiate = lower_composite
    return lower_composite(composite, types)


def _product(a: Any, b: Any) -> Any:
    """Multiplies quaternions and transforms by the builtin from now on."""
    hooks.product = _builtins()["mul"]
    return hooks.product(a, b)


def _prepare() -> None:
    """Loads what launches need."""
    hooks.prepare = _nothing
    _load("engine.ready")
    _expect("kernels")


def _prepare_gradients() -> None:
    hooks.prepare_gradients = _nothing
    _expect("gradients")


_there: set[str] = set()


def _expect(what: str) -> None:
    """Loads tapes once there is all that is put on them."""
    _there.add(what)
    if len(_there) == 2:
        _load("engine.tape.tape")
        _accelerator.expect_passes()


def _nothing() -> None:
    pass


hooks.instantiate = _instantiate
hooks.adapter = _adapter
hooks.product = _product
hooks.prepare = _prepare
hooks.prepare_gradients = _prepare_gradients


class _Finder:
    """The last finder of imports, for modules of Warp that are not here."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not fullname.startswith("engine."):
            return None
        features = _load("engine.frontend.features")
        found: ModuleSpec | None = features.Finder.find_spec(fullname, path, target)
        return found


if not any(getattr(f, "__name__", "") == _Finder.__name__ for f in sys.meta_path):
    sys.meta_path.append(_Finder)


def init() -> None:
    """Gets the engine ready. Nothing needs it: programs written for Warp call it."""


_known: dict[str, Any] = {}


def _public() -> Mapping[str, Any]:
    """What `engine.public` has, by names that are names of this module from then on."""
    if not _known:
        public = _load("engine.public")
        _known.update({name: getattr(public, name) for name in public.__all__})  # at once
        _put(_known)
    return _known


def _put(found: Mapping[str, Any]) -> None:
    """Makes names of this module, but for those that a program has put there itself."""
    names = globals()
    for name, value in found.items():
        names.setdefault(name, value)


def _tables() -> list[str]:
    """Names of types and of facts about GPUs, which are tables."""
    from engine.lang.names import __all__ as types
    from engine.runtime.gpus import __all__ as gpus

    return [*types, *gpus]


def __getattr__(name: str) -> Any:
    if name in _LATE:
        module = _load(_LATE[name])
        found = module if _LATE[name] == f"engine.{name}" else getattr(module, name)
        globals()[name] = found
        return found
    if name == "__all__":
        # Names of Python's own are left out: `from engine import *` must not change `max`.
        return [*_names, *_tables(), *(n for n in _builtins() if not hasattr(_python, n))]
    if name.startswith("__"):
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    # A name may have been there, and be deleted: who replaces names for a while does so.
    if name in (found := _public()):
        return globals().setdefault(name, found[name])
    if name in globals():
        return globals()[name]
    if not name.startswith("_") and name in (found := _builtins()):
        return globals().setdefault(name, found[name])
    features = _load("engine.frontend.features")
    if features.is_missing_module(name):
        return _load(f"engine.{name}")
    if (stand_in := features.stand_in(name)) is not None:
        return stand_in  # fails where it is used
    raise AttributeError(f"module 'engine' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, *_public(), *_builtins()})


__all__ = [
    # arrays
    "array", "array1d", "array2d", "array3d", "array4d",
    "clone", "copy", "empty", "empty_like", "from_numpy", "from_ptr", "full", "full_like",
    "ones", "ones_like", "zeros", "zeros_like",
    "fixedarray", "indexedarray", "indexedarray1d", "indexedarray2d", "indexedarray3d",
    "indexedarray4d",
    "ref", "struct",
    # kernels and tapes
    "Function", "Kernel", "Launch", "Module", "Tape", "adjoint", "func", "func_grad", "func_native",
    "func_replay", "grad",
    "force_load", "get_module", "get_module_options", "init", "kernel", "launch", "launch_tiled",
    "load_module",
    "overload", "set_module_options", "static", "stop_gradient", "clear_kernel_cache",
    "Capture", "CapturedTape", "Environment", "Fault", "KernelStage", "ScopedTimer", "StageLine",
    "autograd", "capturing", "config", "environment", "kernel_stage", "processors", "watching",
    "print_diagnostics",
    # captured sequences, streams and events
    "CaptureMode", "Graph", "ScopedCapture", "capture_begin", "capture_end", "capture_if",
    "capture_launch", "capture_while", "is_conditional_graph_supported",
    "Event", "ScopedStream", "Stream", "get_event_elapsed_time", "get_stream", "record_event",
    "set_stream", "synchronize_event", "synchronize_stream", "wait_event", "wait_stream",
    # messages
    "LOG_DEBUG", "LOG_ERROR", "LOG_INFO", "LOG_WARNING", "Logger", "ScopedLogger",
    "ScopedLogLevel", "get_logger", "set_logger",
    # geometry
    "Bvh", "BvhConstructor", "BvhQuery", "HashGrid", "HashGridQuery", "Mesh", "MeshQuery",
    "MeshQueryAABB", "MeshQueryPoint", "MeshQueryRay",
    # other frameworks
    "record_jax", "record_torch", "torch_kernel",
    # devices
    "Device", "DeviceLike", "ScopedDevice", "get_cuda_device_count", "get_device", "get_devices",
    "get_preferred_device", "is_cpu_available", "is_cuda_available", "is_device_available",
    "set_device",
    "synchronize", "synchronize_device",
    # kernels inside JAX
    "JaxCallableGraphMode", "JaxModulePreloadMode", "clear_jax_callable_graph_cache",
    "jax_callable", "jax_kernel", "register_ffi_callback",
    # types
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bfloat16", "float16", "float32", "float64", "handle", "Float", "Int", "Scalar", "constant",
    "dtype_from_numpy", "dtype_to_numpy", "types",
    # other frameworks
    "from_dlpack", "to_dlpack",
    "device_from_torch", "device_to_torch", "dtype_from_torch", "dtype_to_torch", "from_torch",
    "stream_from_torch", "stream_to_torch", "to_torch",
    "device_from_paddle", "device_to_paddle", "dtype_from_paddle", "dtype_to_paddle",
    "from_paddle", "stream_from_paddle", "to_paddle",
    "device_from_jax", "device_to_jax", "dtype_from_jax", "dtype_to_jax", "from_jax", "to_jax",
    # constants
    "E", "HALF_PI", "INF", "LN2", "LN10", "LOG2E", "LOG10E", "NAN", "PHI", "PI", "TAU",
    "e", "half_pi", "inf", "ln2", "ln10", "log2e", "log10e", "nan", "phi", "pi", "tau",
    # errors
    "CompilerError", "Diagnostic", "EngineError", "GradcheckError", "KernelError",
    "LaunchError", "Span", "TapeError",
    "DeterministicMode", "WarpCodegenAttributeError", "WarpCodegenError", "WarpCodegenIndexError",
    "WarpCodegenKeyError", "WarpCodegenTypeError", "WarpCodegenValueError", "WarpDeterminismError",
]  # fmt: skip
# For editors and type checkers. Programs get types and builtins too, from `__getattr__`.
_names: list[str] = globals().pop("__all__")
