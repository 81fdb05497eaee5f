"""Broken on purpose: a layer that draws other random numbers each time it runs.

A linear readout is trained with noise on its inputs, so that it does not rely on single ones. The
noise comes from a generator in C++ with a state of its own, which nobody can set back: a launch is
no function of its arguments, and the backward pass draws other numbers than the forward pass
(finding G007). The way out is a seed among the arguments, and wp.rand_init(seed, i). That is a
warning: `adtool check --gate warning` fails on it.
"""

import numpy as np

import engine as wp

ROWS = 16
INPUTS = 4
ITERATIONS = 6

GENERATOR = """
    static unsigned state = 12345u;
    state = state * 1664525u + 1013904223u;
    return (int)(state >> 8);
"""


@wp.func_native(GENERATOR)
def next_random() -> int: ...


@wp.kernel
def noisy_scores(
    x: wp.array2d(dtype=float), weights: wp.array(dtype=float), score: wp.array(dtype=float)
):
    r = wp.tid()
    total = float(0.0)
    for k in range(weights.shape[0]):
        # The mistake: a hidden state decides what this is.
        noise = 0.8 + 0.4 * float(next_random()) / 16777216.0
        total += noise * x[r, k] * weights[k]
    score[r] = total


@wp.kernel
def mean_square(
    score: wp.array(dtype=float), y: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    r = wp.tid()
    d = score[r] - y[r]
    wp.atomic_add(loss, 0, d * d / float(score.shape[0]))


@wp.kernel
def descend(p: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * gradient[i]


def main() -> None:
    rng = np.random.default_rng(33)
    features = rng.normal(size=(ROWS, INPUTS))
    x = wp.array(features, dtype=float)
    y = wp.array(features @ np.array([1.0, -2.0, 0.5, 1.5]), dtype=float)
    weights = wp.array(rng.normal(size=INPUTS), dtype=float, requires_grad=True)

    for iteration in range(ITERATIONS):
        score = wp.zeros(ROWS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(noisy_scores, dim=ROWS, inputs=[x, weights], outputs=[score])
            wp.launch(mean_square, dim=ROWS, inputs=[score, y], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=INPUTS, inputs=[weights, weights.grad, 0.1])
        tape.zero()
        if iteration % 2 == 0:
            print(f"iteration {iteration}  loss {loss.numpy()[0]:.5f}")


if __name__ == "__main__":
    main()
