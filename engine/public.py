"""The names of `engine` that every program needs, loaded with the first of them."""

from __future__ import annotations

import math

from engine import types
from engine.config import DeterministicMode
from engine.diagnostics import (
    CompilerError,
    Diagnostic,
    EngineError,
    GradcheckError,
    KernelError,
    KernelNameError,
    LaunchError,
    Span,
    TapeError,
)
from engine.frontend import grad, static
from engine.lang.generics import Float, Int, Scalar
from engine.lang.names import *  # noqa: F403  (vec3, mat44d, quat, ...: a table)
from engine.lang.names import __all__ as _type_names
from engine.lang.references import ref
from engine.lang.values import (
    bfloat16,
    constant,
    dtype_from_numpy,
    dtype_to_numpy,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from engine.lang.values import (
    bool as bool,
)
from engine.logger import (
    LOG_DEBUG,
    LOG_ERROR,
    LOG_INFO,
    LOG_WARNING,
    Logger,
    ScopedLogger,
    ScopedLogLevel,
    get_logger,
    set_logger,
)
from engine.runtime.annotation import fixedarray
from engine.runtime.array import array, array1d, array2d, array3d, array4d
from engine.runtime.creation import (
    empty,
    empty_like,
    from_numpy,
    from_ptr,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from engine.runtime.device import (
    Device,
    DeviceLike,
    ScopedDevice,
    get_cuda_device_count,
    get_device,
    get_devices,
    get_preferred_device,
    is_cpu_available,
    is_cuda_available,
    is_device_available,
    set_device,
    synchronize,
    synchronize_device,
)
from engine.runtime.gpus import *  # noqa: F403  (facts about GPUs: a table)
from engine.runtime.gpus import __all__ as _gpu_names
from engine.runtime.graphs import (
    CaptureMode,
    Graph,
    ScopedCapture,
    capture_begin,
    capture_end,
    capture_if,
    capture_launch,
    capture_while,
    is_conditional_graph_supported,
)
from engine.runtime.indexed import (
    indexedarray,
    indexedarray1d,
    indexedarray2d,
    indexedarray3d,
    indexedarray4d,
)
from engine.runtime.kernel import (
    Function,
    Kernel,
    adjoint,
    func,
    func_grad,
    func_native,
    func_replay,
    kernel,
    overload,
)
from engine.runtime.modules import (
    Module,
    force_load,
    get_module,
    get_module_options,
    load_module,
    set_module_options,
)
from engine.runtime.streams import (
    Event,
    ScopedStream,
    Stream,
    get_event_elapsed_time,
    get_stream,
    record_event,
    set_stream,
    synchronize_event,
    synchronize_stream,
    wait_event,
    wait_stream,
)
from engine.runtime.structs import struct
from engine.runtime.timer import ScopedTimer
from engine.runtime.transfer import clone, copy, stop_gradient

# The type of ids of meshes and other objects.
handle = uint64

# Warp's names of the errors that kernels raise when they are compiled.
WarpCodegenError = WarpCodegenTypeError = WarpCodegenValueError = KernelError
WarpCodegenIndexError = KernelError
WarpCodegenAttributeError = WarpCodegenKeyError = KernelNameError
WarpDeterminismError = KernelError

# ---- constants, usable in kernels
E = e = math.e
INF = inf = math.inf
NAN = nan = math.nan
PI = pi = math.pi
HALF_PI = half_pi = math.pi / 2.0
TAU = tau = math.tau
LN2 = ln2 = math.log(2.0)
LN10 = ln10 = math.log(10.0)
LOG2E = log2e = math.log2(math.e)
LOG10E = log10e = math.log10(math.e)
PHI = phi = (1.0 + math.sqrt(5.0)) / 2.0

__all__ = [
    "adjoint", "array", "array1d", "array2d", "array3d", "array4d", "bfloat16", "bool",
    "capture_begin", "capture_end", "capture_if", "capture_launch", "capture_while", "CaptureMode",
    "clone", "CompilerError", "constant", "copy", "DeterministicMode", "Device", "DeviceLike",
    "Diagnostic", "dtype_from_numpy", "dtype_to_numpy", "E", "e", "empty", "empty_like",
    "EngineError", "Event", "fixedarray", "Float", "float16", "float32", "float64",
    "force_load", "from_numpy", "from_ptr", "full", "full_like", "func", "func_grad",
    "func_native", "func_replay", "Function", "get_cuda_device_count", "get_device", "get_devices",
    "get_event_elapsed_time", "get_logger", "get_module", "get_module_options",
    "get_preferred_device", "get_stream", "grad", "GradcheckError", "Graph", "HALF_PI", "half_pi",
    "handle", "indexedarray", "indexedarray1d", "indexedarray2d", "indexedarray3d",
    "indexedarray4d", "INF", "inf", "Int", "int16", "int32", "int64", "int8",
    "is_conditional_graph_supported", "is_cpu_available", "is_cuda_available",
    "is_device_available", "Kernel", "kernel", "KernelError", "KernelNameError", "LaunchError",
    "LN10", "ln10", "LN2", "ln2", "load_module", "LOG10E", "log10e", "LOG2E", "log2e", "LOG_DEBUG",
    "LOG_ERROR", "LOG_INFO", "LOG_WARNING", "Logger", "Module", "NAN", "nan", "ones", "ones_like",
    "overload", "PHI", "phi", "PI", "pi", "record_event", "ref", "Scalar", "ScopedCapture",
    "ScopedDevice", "ScopedLogger", "ScopedLogLevel", "ScopedStream", "ScopedTimer", "set_device",
    "set_logger", "set_module_options", "set_stream", "Span", "static", "stop_gradient", "Stream",
    "struct", "synchronize", "synchronize_device", "synchronize_event", "synchronize_stream",
    "TapeError", "TAU", "tau", "types", "uint16", "uint32", "uint64", "uint8", "wait_event",
    "wait_stream", "WarpCodegenAttributeError", "WarpCodegenError", "WarpCodegenIndexError",
    "WarpCodegenKeyError", "WarpCodegenTypeError", "WarpCodegenValueError", "WarpDeterminismError",
    "zeros", "zeros_like",
]  # fmt: skip
__all__ += [*_type_names, *_gpu_names]
