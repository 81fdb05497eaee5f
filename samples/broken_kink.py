"""Broken on purpose: a fit that begins exactly on the corner of abs, and stays there.

The coefficients of absorption of three filters are fitted to what was measured behind them. They
must not be negative, so the kernel takes their absolute value; and they begin at 0, where abs
has a corner. Its gradient there is 0, as good as any number between the slopes -1 and 1, and so
nothing ever moves (finding G005). That is a note, since a corner is often harmless:
`adtool check --gate note` fails on it.
"""

import numpy as np

import engine as wp

RAYS = 30
FILTERS = 3
ITERATIONS = 8


@wp.kernel
def transmit(
    thickness: wp.array2d(dtype=float),
    absorption: wp.array(dtype=float),
    light: wp.array(dtype=float),
):
    ray = wp.tid()
    depth = float(0.0)
    for k in range(absorption.shape[0]):
        # The mistake is in main(): a parameter under max must not begin at 0.
        depth += wp.max(absorption[k], 0.0) * thickness[ray, k]
    light[ray] = wp.exp(-depth)


@wp.kernel
def misfit(
    light: wp.array(dtype=float), measured: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    ray = wp.tid()
    d = light[ray] - measured[ray]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(p: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * gradient[i]


def main() -> None:
    rng = np.random.default_rng(31)
    millimetres = rng.uniform(0.2, 1.5, size=(RAYS, FILTERS))
    thickness = wp.array(millimetres, dtype=float)
    measured = wp.array(np.exp(-millimetres @ np.array([0.9, 0.2, 0.5])), dtype=float)
    absorption = wp.zeros(FILTERS, dtype=float, requires_grad=True)

    for iteration in range(ITERATIONS):
        light = wp.zeros(RAYS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(transmit, dim=RAYS, inputs=[thickness, absorption], outputs=[light])
            wp.launch(misfit, dim=RAYS, inputs=[light, measured], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=FILTERS, inputs=[absorption, absorption.grad, 0.02])
        if iteration % 3 == 0:
            size = np.abs(absorption.grad.numpy()).max()
            print(f"iteration {iteration:2d}  loss {loss.numpy()[0]:.5f}  gradient {size:.5f}")
        tape.zero()
    print(f"absorption {absorption.numpy()}")


if __name__ == "__main__":
    main()
