"""Fit a line to batches; NumPy fills the batch and takes the steps through views of the arrays."""

# expect: exit=0
import numpy as np

import engine as wp

N = 16


@wp.kernel
def residual(
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    line: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    r = line[0] * x[i] + line[1] - y[i]
    wp.atomic_add(loss, 0, r * r / float(N))


def main() -> None:
    rng = np.random.default_rng(4)
    x, y = wp.zeros(N, dtype=float), wp.zeros(N, dtype=float)
    line = wp.zeros(2, dtype=float, requires_grad=True)
    for _ in range(60):
        batch = rng.uniform(-1.0, 1.0, N)
        x.numpy()[:] = batch
        y.numpy()[:] = 3.0 * batch - 0.5
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(residual, dim=N, inputs=[x, y, line], outputs=[loss])
        tape.backward(loss)
        line.numpy()[:] -= 0.5 * line.grad.numpy()
        tape.zero()
    print(line.numpy())
    assert np.allclose(line.numpy(), [3.0, -0.5], atol=0.1), line.numpy()


main()
