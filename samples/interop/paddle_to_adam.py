"""A curve is fitted to points: its coefficients are an array, which Paddle's Adam moves.

One call of `to_paddle` is all: the tensor is the array's memory, its `grad` the array's gradient.
"""
# needs: paddle
# check: passes

import numpy as np
import paddle

import engine as wp

SAMPLES = 200
ITERATIONS = 400
TRUTH = (0.5, -1.0, 2.0)


@wp.kernel
def misfit(
    coefficients: wp.array(dtype=float),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    """The mean of the squares of what a parabola is off."""
    i = wp.tid()
    at = coefficients[0] + x[i] * (coefficients[1] + x[i] * coefficients[2])
    off = at - y[i]
    wp.atomic_add(loss, 0, off * off / float(x.shape[0]))


def main() -> None:
    x = np.linspace(-1.0, 1.0, SAMPLES, dtype=np.float32)
    noise = np.random.default_rng(2).normal(scale=0.05, size=SAMPLES)
    y = TRUTH[0] + TRUTH[1] * x + TRUTH[2] * x**2 + noise

    coefficients = wp.zeros(3, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    data = [wp.array(x, dtype=float), wp.array(y, dtype=float)]
    tensors = [wp.to_paddle(coefficients)]
    optimizer = paddle.optimizer.Adam(learning_rate=0.05, parameters=tensors)

    with wp.Tape() as tape:
        wp.launch(misfit, dim=SAMPLES, inputs=[coefficients, *data], outputs=[loss])
    for _ in range(ITERATIONS):
        tape.zero()
        tape.backward(loss=loss)
        optimizer.step()

    found = coefficients.numpy()
    print("found " + " ".join(f"{c:.3f}" for c in found))
    if not np.allclose(found, TRUTH, atol=0.05):
        raise SystemExit("these are not the coefficients of the curve")


if __name__ == "__main__":
    main()
