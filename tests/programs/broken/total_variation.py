"""Denoise a signal with total variation: neighbours that are equal make a kink."""

# expect: exit=0
import numpy as np

import engine as wp

N = 18


@wp.kernel
def objective(
    u: wp.array(dtype=float),
    data: wp.array(dtype=float),
    weight: float,
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    cost = (u[i] - data[i]) * (u[i] - data[i])
    if i > 0:
        cost += weight * wp.abs(u[i] - u[i - 1])  # expect: note[G005]
    wp.atomic_add(loss, 0, cost)


def main():
    rng = np.random.default_rng(51)
    data = wp.array(np.repeat([0.0, 1.0, 0.3], N // 3) + rng.normal(scale=0.1, size=N), dtype=float)
    u = wp.zeros(N, dtype=float, requires_grad=True)  # all neighbours are equal at first
    for iteration in range(5):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(objective, N, inputs=[u, data, 0.2], outputs=[loss])
        tape.backward(loss)
        u.assign(u.numpy() - 0.1 * u.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
