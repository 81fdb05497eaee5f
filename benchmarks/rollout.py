"""A roll-out of 64 particles, a launch and a set of controls a step: what `long_tapes.py` checks.

python benchmarks/rollout.py STEPS LAYOUT, where the layout is `arrays` (each step has arrays of its
own), `rows` (of one array of the whole trajectory) or `turns` (two arrays that take turns).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import engine as wp

PARTICLES = 64
F = wp.array(dtype=float)


@wp.kernel
def step(x: F, v: F, u: F, dt: float, x1: F, v1: F):
    i = wp.tid()
    a = u[i] - wp.sin(x[i]) - 0.1 * v[i]
    v1[i] = v[i] + dt * a
    x1[i] = x[i] + dt * (v[i] + dt * a)


@wp.kernel
def cost(x: F, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


def states(rng: np.random.Generator, count: int, layout: str) -> list[Any]:
    """Positions or velocities of every step; the first are random."""
    first = rng.standard_normal(PARTICLES)
    if layout == "rows":
        values = np.zeros((count, PARTICLES))
        values[0] = first
        whole = wp.array(values, dtype=float, requires_grad=True)
        return [whole[t] for t in range(count)]
    made = [wp.array(first, dtype=float, requires_grad=True)]
    made += [wp.zeros(PARTICLES, dtype=float, requires_grad=True)
             for _ in range(1 if layout == "turns" else count - 1)]  # fmt: skip
    return [made[t % len(made)] for t in range(count)]


def main() -> None:
    """Records the roll-out and runs it backward."""
    steps, layout = int(sys.argv[1]), sys.argv[2]
    rng = np.random.default_rng(1)
    u = states(rng, steps, "rows" if layout == "rows" else "arrays")
    x, v = states(rng, steps + 1, layout), states(rng, steps + 1, layout)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for t in range(steps):
            wp.launch(step, PARTICLES, [x[t], v[t], u[t], 0.01], [x[t + 1], v[t + 1]])
        wp.launch(cost, PARTICLES, [x[steps]], [loss])
    tape.backward(loss)


if __name__ == "__main__":
    main()
