"""Scripts of one kernel, one for each framework, as a user would write them: cold and warm starts.

Each prints the seconds from its first launch to what it gave, imports not counted. With an argument
it computes a gradient too.
"""

from __future__ import annotations

import os

from benchmarks.place import VARIABLE

_WP = """
import sys, time
import numpy as np
import {name} as wp

@wp.kernel
def wave(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    y[i] = wp.sin(v) * wp.exp(-v * v) + wp.sqrt(v * v + 1.0)

x = wp.array(np.linspace(0.0, 1.0, 1000), dtype=float, requires_grad=True)
y = wp.zeros(1000, dtype=float, requires_grad=True)
start = time.perf_counter()
if len(sys.argv) > 1:
    with wp.Tape() as tape:
        wp.launch(wave, dim=1000, inputs=[x], outputs=[y])
    tape.backward(grads={{y: wp.ones_like(y)}})
    found = x.grad.numpy()
else:
    wp.launch(wave, dim=1000, inputs=[x], outputs=[y])
    found = y.numpy()
print(time.perf_counter() - start, float(found.sum()))
"""
_JAX = """
import sys, time
import numpy as np
import jax
import jax.numpy as jnp

def wave(v):
    return jnp.sin(v) * jnp.exp(-v * v) + jnp.sqrt(v * v + 1.0)

x = jnp.asarray(np.linspace(0.0, 1.0, 1000, dtype=np.float32))
start = time.perf_counter()
if len(sys.argv) > 1:
    found = jax.jit(jax.grad(lambda v: wave(v).sum()))(x)
else:
    found = jax.jit(wave)(x)
found = np.asarray(found)
print(time.perf_counter() - start, float(found.sum()))
"""
_TORCH = """
import sys, time
import numpy as np
import torch

x = torch.linspace(0.0, 1.0, 1000, requires_grad=True)
start = time.perf_counter()
y = torch.sin(x) * torch.exp(-x * x) + torch.sqrt(x * x + 1.0)
if len(sys.argv) > 1:
    y.sum().backward()
    found = x.grad
else:
    found = y.detach()
found = found.numpy()
print(time.perf_counter() - start, float(found.sum()))
"""
_NUMBA = """
import math, sys, time
import numpy as np
from numba import njit, prange

@njit(parallel=True, cache=True)
def wave(x, y):
    for i in prange(x.size):
        v = x[i]
        y[i] = math.sin(v) * math.exp(-v * v) + math.sqrt(v * v + np.float32(1.0))

if len(sys.argv) > 1:
    sys.exit(3)
x = np.linspace(0.0, 1.0, 1000, dtype=np.float32)
y = np.zeros_like(x)
start = time.perf_counter()
wave(x, y)
print(time.perf_counter() - start, float(y.sum()))
"""
_TAICHI = """
import sys, time
import numpy as np
import taichi as ti

ti.init(arch=ti.cpu, log_level=ti.ERROR)
x = ti.ndarray(ti.f32, 1000, needs_grad=True)
y = ti.ndarray(ti.f32, 1000, needs_grad=True)

@ti.kernel
def wave(x: ti.types.ndarray(dtype=ti.f32, ndim=1), y: ti.types.ndarray(dtype=ti.f32, ndim=1)):
    for i in x:
        v = x[i]
        y[i] = ti.sin(v) * ti.exp(-v * v) + ti.sqrt(v * v + 1.0)

x.from_numpy(np.linspace(0.0, 1.0, 1000, dtype=np.float32))
start = time.perf_counter()
wave(x, y)
found = y.to_numpy()
if len(sys.argv) > 1:
    y.grad.fill(1.0)
    wave.grad(x, y)
    found = x.grad.to_numpy()
print(time.perf_counter() - start, float(found.sum()))
"""
SCRIPTS = {
    "engine": _WP.format(name="engine"),
    "warp": _WP.format(name="warp"),
    "jax": _JAX,
    "torch": _TORCH,
    "numba": _NUMBA,
    "taichi": _TAICHI,
}


# What is put behind the import where a GPU is measured, and what else differs there.
_ON_GPU = {
    "engine": ("import engine as wp\n", 'import engine as wp\nwp.set_device("cuda:0")\n'),
    "torch": ("import torch\n", 'import torch\ntorch.set_default_device("cuda")\n'),
}


def script(name: str) -> str:
    """The script of a framework, for the device that is measured."""
    text = SCRIPTS[name]
    if os.environ.get(VARIABLE, "cpu") == "cpu":
        return text
    return text.replace(*_ON_GPU.get(name, ("", ""))).replace(
        "found.numpy()", "found.cpu().numpy()" if name == "torch" else "found.numpy()"
    )
