"""A tape of kernels and JAX: links of the engine, and an energy that JAX computes.

A chain hangs between two nails. A kernel computes where its links are, from the angles between
them; JAX the energy of that shape, by a function under `jit` that `record_jax` puts on the tape.
"""

# needs: jax
# check: passes
import jax
import jax.numpy as jnp
import numpy as np

import engine as wp

LINKS = 12


@wp.kernel
def shape(angle: wp.array(dtype=float), place: wp.array(dtype=wp.vec2)):
    k = wp.tid()
    p = wp.vec2(0.0, 0.0)
    for j in range(k + 1):
        p += wp.vec2(wp.cos(angle[j]), wp.sin(angle[j]))
    place[k] = p


@jax.jit
def energy(place):
    """Of gravity, and of a stiff spring between the last link and the second nail."""
    apart = place[-1] - jnp.array([8.0, 0.0])
    return place[:, 1].sum() + 50.0 * (apart @ apart)


def main():
    angle = wp.array(np.linspace(-0.9, 0.9, LINKS) + 0.1, dtype=float, requires_grad=True)
    place = wp.zeros(LINKS, dtype=wp.vec2, requires_grad=True)
    total = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(shape, dim=LINKS, inputs=[angle], outputs=[place])
        wp.record_jax(energy, [place], [total])
    first = float(total.numpy()[0])
    speed = np.zeros(LINKS, np.float32)
    for _ in range(300):
        tape.zero()
        tape.backward(total)
        speed = 0.95 * speed - 2e-4 * angle.grad.numpy()
        angle.assign(angle.numpy() + speed)
        # What the stretch reads is computed anew from the present angles.
        wp.launch(shape, dim=LINKS, inputs=[angle], outputs=[place])
    last = float(energy(jnp.array(place.numpy())))
    slope = float(np.abs(angle.grad.numpy()).max())
    found = angle.numpy()
    print(f"energy {first:.2f} -> {last:.2f}, slope {slope:.1e}")
    assert last < first and slope < 0.5
    assert np.abs(found + found[::-1]).max() < 0.1  # a hanging chain is symmetric


if __name__ == "__main__":
    main()
