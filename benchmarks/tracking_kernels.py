"""The kernels of `tracking.py`: particles on springs."""

import engine as wp

F = wp.array(dtype=float)


@wp.kernel
def advance(x: F, v: F, x_next: F, v_next: F):
    i = wp.tid()
    force = -wp.sin(x[i]) - 0.1 * v[i] * wp.abs(v[i])
    v_next[i] = v[i] + 0.01 * force
    x_next[i] = x[i] + 0.01 * v_next[i]


@wp.kernel
def advance_in_place(x: F, v: F):
    i = wp.tid()
    force = -wp.sin(x[i]) - 0.1 * v[i] * wp.abs(v[i])
    v[i] = v[i] + 0.01 * force
    x[i] = x[i] + 0.01 * v[i]


@wp.kernel
def forces(x: F, v: F, force: F):
    i = wp.tid()
    force[i] = -wp.sin(x[i]) - 0.1 * v[i] * wp.abs(v[i])


@wp.kernel
def kick(x: F, v: F, force: F, x_next: F, v_next: F):
    i = wp.tid()
    v_next[i] = v[i] + 0.01 * force[i] * x[i]
    x_next[i] = x[i] + 0.01 * v_next[i]


@wp.kernel
def total(x: F, out: F):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])
