"""Broken on purpose: a fit that begins exactly on a corner, and stays there.

The absorption of three filters is fitted to the light that was measured behind them. It is not
negative, so the kernel takes max(absorption, 0); and the fit begins at 0, where max has a corner.
Its slope is 0 on one side and 1 on the other, and the gradient takes the 0: nothing ever moves
(finding G005). No gradient at a corner is wrong, and most corners do no harm. So that is a note:
`adtool check --gate note` fails on it.
"""

import numpy as np

import engine as wp

RAYS = 30
FILTERS = 3
ITERATIONS = 6


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
