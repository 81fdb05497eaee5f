"""A function compiled by Numba and kernels of the engine, in one memory.

A chain of springs relaxes: a kernel adds up its energy, the tape gives the forces, and a function
by Numba moves the nodes, all in the memory of the same arrays.
"""

# needs: numba
# check: passes
import numba
import numpy as np

import engine as wp

NODES, REST = 24, 0.5


@wp.kernel
def energy(x: wp.array(dtype=wp.vec2), rest: float, total: wp.array(dtype=float)):
    i = wp.tid()
    stretch = wp.length(x[i + 1] - x[i]) - rest
    wp.atomic_add(total, 0, 0.5 * stretch * stretch)


@numba.njit
def move(x, force, rate):
    """One step downhill; the ends stay where they are."""
    for i in range(1, x.shape[0] - 1):
        for k in range(x.shape[1]):
            x[i, k] -= rate * force[i, k]


rng = np.random.default_rng(7)
start = np.stack([np.linspace(0.0, REST * (NODES - 1), NODES), rng.normal(0.0, 0.1, NODES)], axis=1)
x = wp.array(start, dtype=wp.vec2, requires_grad=True)
first = 0.0
for step in range(200):
    total = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(energy, dim=NODES - 1, inputs=[x, REST], outputs=[total])
    tape.backward(total)
    before = x.ptr
    move(x.numpy(), x.grad.numpy(), 0.4)
    assert x.ptr == before
    tape.zero()
    first = first or float(total.numpy()[0])
    if step % 50 == 0:
        print(f"step {step:3}: energy {total.numpy()[0]:.2e}")
assert total.numpy()[0] < 1e-2 * first
print("the chain is at rest:", f"{total.numpy()[0]:.2e}", "of", f"{first:.2e}")
