"""Broken on purpose: a training loop that never clears its gradients.

A classifier is trained by logistic regression. backward() adds to the gradients, and nobody zeroes
them between the steps, so that each step follows the sum of all gradients so far, of which all but
the last were made at other weights (finding G013). The loss goes down all the same, and then up
again. The way out is tape.zero() after each step. It is an error, since the steps use the gradient;
where a program only reads such a gradient, it is a warning.
"""

import numpy as np

import engine as wp

ROWS = 60
INPUTS = 5
ITERATIONS = 24


@wp.kernel
def logistic_loss(
    x: wp.array2d(dtype=float),
    sign: wp.array(dtype=float),
    weights: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    r = wp.tid()
    score = float(0.0)
    for k in range(weights.shape[0]):
        score += x[r, k] * weights[k]
    wp.atomic_add(loss, 0, wp.log(1.0 + wp.exp(-sign[r] * score)) / float(x.shape[0]))


@wp.kernel
def descend(p: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * gradient[i]


def main() -> None:
    rng = np.random.default_rng(36)
    features = rng.normal(size=(ROWS, INPUTS))
    noisy = features @ np.array([1.0, -1.5, 0.5, 0.0, 2.0]) + rng.normal(size=ROWS)
    x = wp.array(features, dtype=float)
    sign = wp.array(np.where(noisy > 0.0, 1.0, -1.0), dtype=float)
    weights = wp.zeros(INPUTS, dtype=float, requires_grad=True)

    for iteration in range(ITERATIONS):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(logistic_loss, dim=ROWS, inputs=[x, sign, weights], outputs=[loss])
        tape.backward(loss)
        # The mistake: tape.zero() is missing after this.
        wp.launch(descend, dim=INPUTS, inputs=[weights, weights.grad, 1.0])
        if iteration % 4 == 0:
            size = np.abs(weights.grad.numpy()).max()
            print(f"iteration {iteration:2d}  loss {loss.numpy()[0]:.5f}  gradient {size:.4f}")


if __name__ == "__main__":
    main()
