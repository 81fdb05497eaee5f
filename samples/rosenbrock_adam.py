"""Rosenbrock's valley, descended from several starting points by Adam, itself a kernel."""

import numpy as np

import engine as wp

STARTS = 4
DIMENSIONS = 3
ITERATIONS = 200


@wp.kernel
def rosenbrock(x: wp.array2d(dtype=float), value: wp.array(dtype=float)):
    """The chained form: sum of 100 (x[k+1] - x[k]^2)^2 + (1 - x[k])^2."""
    s = wp.tid()
    total = float(0.0)
    for k in range(x.shape[1] - 1):
        a = x[s, k]
        valley = x[s, k + 1] - a * a
        slope = 1.0 - a
        total += 100.0 * valley * valley + slope * slope
    value[s] = total


@wp.kernel
def adam(
    x: wp.array2d(dtype=float),
    gradient: wp.array2d(dtype=float),
    mean: wp.array2d(dtype=float),
    square: wp.array2d(dtype=float),
    count: float,
    rate: float,
    beta1: float,
    beta2: float,
):
    s, k = wp.tid()
    g = gradient[s, k]
    m = beta1 * mean[s, k] + (1.0 - beta1) * g
    v = beta2 * square[s, k] + (1.0 - beta2) * g * g
    mean[s, k] = m
    square[s, k] = v
    unbiased_mean = m / (1.0 - wp.pow(beta1, count))
    unbiased_square = v / (1.0 - wp.pow(beta2, count))
    x[s, k] = x[s, k] - rate * unbiased_mean / (wp.sqrt(unbiased_square) + 1.0e-8)


def main() -> None:
    rng = np.random.default_rng(1)
    shape = (STARTS, DIMENSIONS)
    x = wp.array(rng.uniform(-0.5, 1.5, size=shape), dtype=float, requires_grad=True)
    mean, square = wp.zeros(shape, dtype=float), wp.zeros(shape, dtype=float)
    seed = wp.ones(STARTS, dtype=float)

    values = []
    for iteration in range(ITERATIONS):
        value = wp.zeros(STARTS, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(rosenbrock, dim=STARTS, inputs=[x], outputs=[value])
        # Each start is its own problem: a seed of ones gives all their gradients at once.
        tape.backward(grads={value: seed})
        values.append(value.numpy().copy())
        rate = 0.2 * 0.1 ** (iteration / ITERATIONS)
        wp.launch(
            adam,
            dim=shape,
            inputs=[x, x.grad, mean, square, float(iteration + 1), rate, 0.9, 0.9],
        )
        tape.zero()
        if iteration % 50 == 0:
            print(f"iteration {iteration:3d}  values {np.array2string(values[-1], precision=4)}")

    print(f"worst value {values[0].max():.3f} -> {values[-1].max():.6f}")
    print(f"x = {np.round(x.numpy(), 3).tolist()}")
    if not values[-1].max() < 0.05:
        raise SystemExit("Adam did not reach the bottom of the valley")


if __name__ == "__main__":
    main()
