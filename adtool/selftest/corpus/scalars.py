"""Functions of one number that are steep, tiny, huge, oscillating, or near a singular point."""

from __future__ import annotations

from typing import Any

import numpy as np

import engine as wp
from adtool.selftest.case import Case, elementwise, spread

F: Any = wp.array(dtype=float)


@wp.kernel
def steep_exp(x: F, y: F):
    i = wp.tid()
    y[i] = wp.exp(30.0 * x[i])


@wp.kernel
def steep_sigmoid(x: F, y: F):
    i = wp.tid()
    y[i] = 1.0 / (1.0 + wp.exp(-200.0 * (x[i] - 0.5)))


@wp.kernel
def steep_power(x: F, y: F):
    i = wp.tid()
    y[i] = wp.pow(x[i], 9.0)


@wp.kernel
def steep_tanh(x: F, y: F):
    i = wp.tid()
    y[i] = wp.tanh(50.0 * x[i])


@wp.kernel
def bump(x: F, y: F):
    i = wp.tid()
    d = (x[i] - 0.5) * 40.0
    y[i] = wp.exp(-d * d)


@wp.kernel
def contact_barrier(x: F, y: F):
    i = wp.tid()
    d = x[i]
    if d < 1.0:
        y[i] = -(d - 1.0) * (d - 1.0) * wp.log(d)
    else:
        y[i] = 0.0


@wp.kernel
def lennard_jones(x: F, y: F):
    i = wp.tid()
    s = 1.0 / (x[i] * x[i])
    s3 = s * s * s
    y[i] = 4.0 * (s3 * s3 - s3)


@wp.kernel
def stiff_penalty(x: F, y: F):
    i = wp.tid()
    d = wp.max(0.1 - x[i], 0.0)
    y[i] = 1.0e6 * d * d + x[i]


@wp.kernel
def tiny_square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def tiny_scale(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * 1.0e-12


@wp.kernel
def tiny_beside_one(x: F, y: F):
    i = wp.tid()
    y[i] = 1.0 + x[i] * x[i] * 1.0e-3


@wp.kernel
def tiny_ratio(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] / (1.0e-6 + x[i])


@wp.kernel
def huge_square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def huge_offset(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i]) + 1.0e8


@wp.kernel
def huge_root(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i] * 3.0)


@wp.kernel
def huge_and_small(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i] + wp.sin(x[i] * 1.0e-3)


@wp.kernel
def huge_constant(x: F, y: F):
    i = wp.tid()
    y[i] = 6.674e11 * x[i] / (x[i] * x[i] + 1.0)


@wp.kernel
def wave(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(100.0 * x[i])


@wp.kernel
def chirp(x: F, y: F):
    i = wp.tid()
    y[i] = wp.cos(20.0 * x[i] * x[i]) * x[i]


@wp.kernel
def beats(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(31.0 * x[i]) * wp.cos(29.0 * x[i])


@wp.kernel
def ripple_on_slope(x: F, y: F):
    i = wp.tid()
    y[i] = 10.0 * x[i] + 0.01 * wp.sin(500.0 * x[i])


@wp.kernel
def far_wave(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(x[i])


@wp.kernel
def root_near_zero(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])


@wp.kernel
def log_near_zero(x: F, y: F):
    i = wp.tid()
    y[i] = wp.log(x[i]) * x[i]


@wp.kernel
def pole(x: F, y: F):
    i = wp.tid()
    y[i] = 1.0 / (1.0 - x[i])


@wp.kernel
def tan_near_pole(x: F, y: F):
    i = wp.tid()
    y[i] = wp.tan(x[i])


@wp.kernel
def acos_near_one(x: F, y: F):
    i = wp.tid()
    y[i] = wp.acos(x[i])


@wp.kernel
def atan_ratio(x: F, y: F):
    i = wp.tid()
    y[i] = wp.atan2(x[i], 1.0e-3)


@wp.kernel
def cube_root(x: F, y: F):
    i = wp.tid()
    y[i] = wp.pow(x[i], 1.0 / 3.0)


@wp.kernel
def smooth_mix(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * wp.exp(-x[i] * x[i]) + wp.sqrt(x[i] * x[i] + 1.0)


CASES: list[Case] = [
    *elementwise(
        "steep",
        [
            (steep_exp, spread(-0.5, 0.5)),
            (steep_sigmoid, spread(0.48, 0.52)),
            (steep_power, spread(0.5, 2.5)),
            (steep_tanh, spread(-0.05, 0.05)),
            (bump, spread(0.45, 0.55)),
            (contact_barrier, spread(0.01, 1.5)),
            (lennard_jones, spread(0.8, 2.0)),
            (stiff_penalty, spread(-0.3, 0.3)),
        ],
    ),
    *elementwise(
        "tiny",
        [
            (tiny_square, spread(1e-6, 2e-5)),
            (tiny_scale, spread(-1.0, 1.0)),
            (tiny_beside_one, spread(0.1, 1.0)),
            (tiny_ratio, spread(1e-7, 1e-5)),
        ],
    ),
    *elementwise(
        "huge",
        [
            (huge_square, spread(1e5, 1e8)),
            (huge_offset, spread(1.0, 5.0)),
            (huge_root, spread(1e9, 1e12)),
            (huge_and_small, spread(1e2, 1e3)),
            (huge_constant, spread(-3.0, 3.0)),
        ],
    ),
    *elementwise(
        "oscillating",
        [
            (wave, spread(0.0, 1.0)),
            (chirp, spread(0.5, 3.0)),
            (beats, spread(-2.0, 2.0)),
            (ripple_on_slope, spread(0.0, 1.0)),
            (far_wave, spread(900.0, 1100.0)),
        ],
    ),
    *elementwise(
        "near singular",
        [
            (root_near_zero, np.concatenate([spread(1e-8, 1e-6, 6), spread(1e-4, 1.0, 6)])),
            (log_near_zero, spread(1e-6, 1e-3)),
            (pole, 1.0 - spread(1e-4, 1e-2)),
            (tan_near_pole, 1.5707 - spread(1e-3, 1e-1)),
            (acos_near_one, 1.0 - spread(1e-4, 1e-2)),
            (atan_ratio, spread(-2e-3, 2e-3)),
            (cube_root, spread(1e-5, 1e-2)),
        ],
    ),
    *elementwise("smooth", [(smooth_mix, spread(-2.0, 2.0))]),
]
