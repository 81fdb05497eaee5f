"""Broken on purpose: a gradient through chaos, which no difference quotient can confirm.

Particles are stirred by the standard map, a kicked rotor, and the strength of the kicks is to be
found from where the particles end. After forty kicks the gradient is about 1e18: the derivative of
what was computed, and of no use to an optimiser. A step that is small enough to stay on so steep a
slope is lost in rounding, so that differences say nothing of the launch (finding G006). Fewer kicks
at a time are the way out. That is a warning: `adtool check --gate warning` fails on it.
"""

import numpy as np

import engine as wp

PARTICLES = 6
KICKS = 40


@wp.kernel
def stir(
    angle: wp.array(dtype=float),
    momentum: wp.array(dtype=float),
    strength: wp.array(dtype=float),
    kicks: int,
    end: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    q = angle[i]
    p = momentum[i]
    # The mistake: too many kicks for a gradient that means anything.
    for _ in range(kicks):
        p += strength[0] * wp.sin(q)
        q += p
    end[i] = wp.vec2(wp.cos(q), wp.sin(q))


@wp.kernel
def misfit(
    end: wp.array(dtype=wp.vec2), seen: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = end[i] - seen[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


def main() -> None:
    rng = np.random.default_rng(32)
    angle = wp.array(rng.uniform(0.0, 2.0 * np.pi, size=PARTICLES), dtype=float)
    momentum = wp.array(rng.uniform(-1.0, 1.0, size=PARTICLES), dtype=float)
    seen = wp.zeros(PARTICLES, dtype=wp.vec2)
    truth = wp.array([5.0], dtype=float)
    wp.launch(stir, dim=PARTICLES, inputs=[angle, momentum, truth, KICKS], outputs=[seen])

    strength = wp.array([4.9], dtype=float, requires_grad=True)
    end = wp.zeros(PARTICLES, dtype=wp.vec2, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(stir, dim=PARTICLES, inputs=[angle, momentum, strength, KICKS], outputs=[end])
        wp.launch(misfit, dim=PARTICLES, inputs=[end, seen], outputs=[loss])
    tape.backward(loss)
    print(f"loss {loss.numpy()[0]:.4f}, its gradient {strength.grad.numpy()[0]:.3e}")


if __name__ == "__main__":
    main()
