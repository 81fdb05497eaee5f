"""CuPy: elementwise and reduction kernels, as users without an engine write them.

It has no derivatives. Where a backward pass is here, it was derived on paper; it adds to the
gradients of arguments, as an adjoint does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import cupy
import numpy as np

from benchmarks.case import Ready
from benchmarks.data import CAPTURED, Springs, edges, random_springs, springs, values
from benchmarks.frameworks import Rows

LONG = 5e-3  # seconds that a sample of copies takes at least
Call = Callable[[], Any]


def wait(result: Any) -> None:
    """For the current stream."""
    cupy.cuda.get_current_stream().synchronize()


_memory: dict[int, Any] = {}


def copies(size: int, repeat: int) -> list[float]:
    """Seconds of a copy of that many float32 values in the GPU's memory, `repeat` times."""
    if size not in _memory:
        _memory.clear()
        _memory[size] = (cupy.ones(size, np.float32), cupy.zeros(size, np.float32))
    source, target = _memory[size]
    stream = cupy.cuda.get_current_stream()

    def several(count: int) -> float:
        stream.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            target.data.copy_from_device_async(source.data, source.nbytes, stream)
        stream.synchronize()
        return (time.perf_counter() - start) / count

    several(2)
    count = max(1, min(2000, math.ceil(LONG / several(5))))
    return [several(count) for _ in range(repeat)]


def _on_gpu(*arrays: Any) -> list[Any]:
    return [cupy.asarray(a) for a in arrays]


def _ready(forward: Call, out: Any, backward: Call | None = None, grads: Any = ()) -> Ready:
    forward()
    if backward is not None:
        for g in grads:
            g.fill(0.0)
        backward()
    return Ready(
        forward, backward, [cupy.asnumpy(out).copy()], [cupy.asnumpy(g).copy() for g in grads]
    )


def _elementwise(given: str, out: str, body: str, name: str, before: str = "") -> Any:
    return cupy.ElementwiseKernel(given, out, body, name, preamble=before)


def _tiny(size: int) -> Ready:
    square = _elementwise("float32 x", "float32 y", "y = x * x", "square")
    x, y = _on_gpu(np.full(1, 3.0, np.float32), np.zeros(1, np.float32))
    return _ready(lambda: square(x, y), y)


def _captured(size: int) -> Ready:
    square = _elementwise("float32 x", "float32 y", "y = x * x", "square")
    x, y = _on_gpu(np.full(1, 3.0, np.float32), np.zeros(1, np.float32))
    square(x, y)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for _ in range(CAPTURED):
            square(x, y)
        graph = stream.end_capture()
    now = cupy.cuda.get_current_stream()
    return _ready(lambda: graph.launch(now), y)


def _saxpy(size: int) -> Ready:
    f = _elementwise("float32 a, float32 x, float32 y", "float32 z", "z = a * x + y", "saxpy")
    b = _elementwise(
        "float32 a, float32 s", "float32 gx, float32 gy",
        "gx += a * s; gy += s", "saxpy_adjoint",
    )  # fmt: skip
    x, y = _on_gpu(values(size), values(size, 2))
    z, gx, gy = (cupy.zeros(size, np.float32) for _ in range(3))
    seed, a = cupy.ones(size, np.float32), np.float32(2.5)
    return _ready(lambda: f(a, x, y, z), z, lambda: b(a, seed, gx, gy), [gx, gy])


def _wave(size: int) -> Ready:
    f = _elementwise(
        "float32 v", "float32 y", "y = sinf(v) * expf(-v * v) + sqrtf(v * v + 1.0f)", "wave"
    )
    b = _elementwise(
        "float32 v, float32 s", "float32 gx",
        "gx += s * (expf(-v * v) * (cosf(v) - 2.0f * v * sinf(v)) + v / sqrtf(v * v + 1.0f))",
        "wave_adjoint",
    )  # fmt: skip
    (x,) = _on_gpu(values(size))
    y, gx, seed = cupy.zeros_like(x), cupy.zeros_like(x), cupy.ones_like(x)
    return _ready(lambda: f(x, y), y, lambda: b(x, seed, gx), [gx])


def _nbody(size: int) -> Ready:
    f = _elementwise(
        "raw float32 x, raw float32 mass, int32 count", "raw float32 a",
        """
        float hx = x[3*i], hy = x[3*i+1], hz = x[3*i+2], ax = 0, ay = 0, az = 0;
        for (int j = 0; j < count; ++j) {
            float dx = x[3*j] - hx, dy = x[3*j+1] - hy, dz = x[3*j+2] - hz;
            float s = dx*dx + dy*dy + dz*dz + 0.01f, k = mass[j] / (s * sqrtf(s));
            ax += dx * k; ay += dy * k; az += dz * k;
        }
        a[3*i] = ax; a[3*i+1] = ay; a[3*i+2] = az;
        """, "nbody",
    )  # fmt: skip
    x, mass = _on_gpu(values(3 * size), values(size, 2) + np.float32(1.5))
    a, count = cupy.zeros_like(x), np.int32(size)
    return _ready(lambda: f(x, mass, count, a, size=size), a)


def _stencil(size: int) -> Ready:
    side = round(size**0.5)
    f = _elementwise(
        "raw float32 u, int32 side", "raw float32 out",
        """
        int r = (int)i / side, c = (int)i % side;
        if (r > 0 && c > 0 && r < side - 1 && c < side - 1)
            out[i] = u[i] + 0.1f * (u[i-side] + u[i+side] + u[i-1] + u[i+1] - 4.0f * u[i]);
        """, "stencil",
    )  # fmt: skip
    (u,) = _on_gpu(values(side * side))
    out, row = cupy.zeros_like(u), np.int32(side)
    return _ready(lambda: f(u, row, out, size=side * side), out)


def _springs(size: int, drawn: Springs = springs) -> Ready:
    particles, first, second = drawn(size)
    f = _elementwise(
        "raw float32 x, int32 p, int32 q", "raw float32 force",
        """
        float dx = x[3*q] - x[3*p], dy = x[3*q+1] - x[3*p+1], dz = x[3*q+2] - x[3*p+2];
        float length = sqrtf(dx*dx + dy*dy + dz*dz), k = 10.0f * (length - 0.5f) / length;
        atomicAdd(&force[3*p], dx*k); atomicAdd(&force[3*p+1], dy*k);
        atomicAdd(&force[3*p+2], dz*k);
        atomicAdd(&force[3*q], -dx*k); atomicAdd(&force[3*q+1], -dy*k);
        atomicAdd(&force[3*q+2], -dz*k);
        """, "springs",
    )  # fmt: skip
    x, p, q = _on_gpu(values(3 * particles), first, second)
    force = cupy.zeros_like(x)
    return _ready(lambda: f(x, p, q, force), force)


def _loop(size: int) -> Ready:
    f = _elementwise(
        "float32 x, int32 steps", "float32 y",
        "float v = x; for (int k = 0; k < steps; ++k) v += 0.1f * sinf(v); y = v", "looped_sine",
    )  # fmt: skip
    (x,) = _on_gpu(values(size))
    y, steps = cupy.zeros_like(x), np.int32(16)
    return _ready(lambda: f(x, steps, y), y)


def _cross(size: int) -> Ready:
    f = _elementwise(
        "raw float32 a, raw float32 b", "raw float32 unit",
        """
        float x = a[3*i+1]*b[3*i+2] - a[3*i+2]*b[3*i+1], y = a[3*i+2]*b[3*i] - a[3*i]*b[3*i+2];
        float z = a[3*i]*b[3*i+1] - a[3*i+1]*b[3*i], k = 1.0f / sqrtf(x*x + y*y + z*z);
        unit[3*i] = x*k; unit[3*i+1] = y*k; unit[3*i+2] = z*k;
        """, "unit_normal",
    )  # fmt: skip
    a, b = _on_gpu(*edges(size))
    n = cupy.zeros_like(a)
    return _ready(lambda: f(a, b, n, size=size), n)


def _sum(size: int) -> Ready:
    f = cupy.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = a", "0", "squares")
    b = _elementwise("float32 x, raw float32 s", "float32 gx", "gx += 2.0f * x * s[0]", "adjoint")
    (x,) = _on_gpu(values(size))
    out, gx, seed = cupy.zeros((), np.float32), cupy.zeros_like(x), cupy.ones(1, np.float32)
    return _ready(lambda: f(x, out), out, lambda: b(x, seed, gx), [gx])


def _maximum(size: int) -> Ready:
    # CuPy puts its own names in place of the parameters', in whatever has these in it (`expf`).
    f = cupy.ReductionKernel(
        "float32 of", "float32 most", "sinf(of) * expf(of) + sqrtf(of + 2.0f)", "a > b ? a : b",
        "most = a", "-1000.0f", "highest",
    )  # fmt: skip
    (x,) = _on_gpu(values(size))
    out = cupy.zeros((), np.float32)
    return _ready(lambda: f(x, out), out)


def rows() -> Rows:
    """What CuPy can do."""
    return {
        "launch": _tiny, "captured": _captured, "saxpy": _saxpy, "elementwise": _wave,
        "nbody": _nbody, "stencil": _stencil, "springs": _springs,
        "random_springs": partial(_springs, drawn=random_springs), "loop": _loop,
        "cross": _cross, "sum": _sum, "maximum": _maximum,
    }  # fmt: skip
