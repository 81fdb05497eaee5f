"""A module of three kernels, to measure what compiling it takes."""

import importlib
import os

wp = importlib.import_module(os.environ.get("BENCH_FRAMEWORK", "engine"))


@wp.kernel
def wave(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    y[i] = wp.sin(v) * wp.exp(-v * v) + wp.sqrt(v * v + 1.0)


@wp.kernel
def blend(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a * x[i] + y[i]


@wp.kernel
def energy(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])
