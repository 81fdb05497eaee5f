"""Allocate a budget over channels: cost plus an entropy term, by projected descent."""

# expect: exit=1
import numpy as np

import engine as wp

CHANNELS = 6


@wp.kernel
def allocation_cost(
    share: wp.array(dtype=float), price: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    c = wp.tid()
    p = share[c]
    # The unused side of `where` has log(0), whose derivative is infinite.
    entropy = wp.where(p > 0.0, p * wp.log(p), 0.0)  # expect: G002
    wp.atomic_add(loss, 0, price[c] * p + 0.1 * entropy)


def project(values):
    """The nearest point of the simplex."""
    ordered = np.sort(values)[::-1]
    sums = np.cumsum(ordered) - 1.0
    k = np.nonzero(ordered - sums / (np.arange(len(values)) + 1.0) > 0.0)[0][-1]
    return np.maximum(values - sums[k] / (k + 1.0), 0.0)


def main():
    price = wp.array([0.3, 0.9, 0.1, 0.5, 2.5, 0.7], dtype=float)
    share = wp.array([0.4, 0.2, 0.2, 0.1, 0.0, 0.1], dtype=float, requires_grad=True)
    for iteration in range(4):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(allocation_cost, dim=CHANNELS, inputs=[share, price], outputs=[loss])
        tape.backward(loss)
        gradient = np.nan_to_num(share.grad.numpy())
        share.assign(project(share.numpy() - 0.1 * gradient))
        tape.zero()
        print(iteration, loss.numpy()[0], share.numpy().round(3))


if __name__ == "__main__":
    main()
