"""Inverse heat conduction: the initial temperature of a rod from its final one."""

# expect: exit=0
from itertools import pairwise

import numpy as np

import engine as wp

CELLS = 20
STEPS = 12


@wp.kernel
def diffuse(t: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    left = t[wp.max(i - 1, 0)]
    right = t[wp.min(i + 1, t.shape[0] - 1)]
    k = 0.1 + 0.02 * t[i] * t[i]
    out[i] = t[i] + k * (left - 2.0 * t[i] + right)


@wp.kernel
def mismatch(t: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (t[i] - seen[i]) * (t[i] - seen[i]))


def simulate(t):
    history = [t] + [wp.zeros_like(t, requires_grad=True) for _ in range(STEPS)]
    for before, after in pairwise(history):
        wp.launch(diffuse, dim=CELLS, inputs=[before], outputs=[after])
    return history[-1]


def main():
    x = np.linspace(0.0, 1.0, CELLS)
    seen = simulate(wp.array(np.exp(-30.0 * (x - 0.4) ** 2), dtype=float))
    start = wp.full(CELLS, 0.3, dtype=float, requires_grad=True)
    for iteration in range(6):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            final = simulate(start)
            wp.launch(mismatch, dim=CELLS, inputs=[final, seen], outputs=[loss])
        tape.backward(loss)
        start.assign(start.numpy() - 0.3 * start.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
