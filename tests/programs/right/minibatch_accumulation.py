"""Gradients of four mini-batches are summed at unchanged weights, then one step is made."""

# expect: exit=0
import numpy as np

import engine as wp

BATCH = 8
INPUTS = 4


@wp.kernel
def logistic_batch(
    x: wp.array2d(dtype=float),
    label: wp.array(dtype=float),
    w: wp.array(dtype=float),
    first: int,
    loss: wp.array(dtype=float),
):
    r = first + wp.tid()
    margin = float(0.0)
    for k in range(w.shape[0]):
        margin += x[r, k] * w[k]
    wp.atomic_add(loss, 0, wp.log(1.0 + wp.exp(-label[r] * margin)))


def main():
    rng = np.random.default_rng(65)
    data = rng.normal(size=(4 * BATCH, INPUTS))
    x = wp.array(data, dtype=float)
    label = wp.array(np.sign(data @ [1.0, -2.0, 0.5, 0.0] + 0.1), dtype=float)
    w = wp.zeros(INPUTS, dtype=float, requires_grad=True)
    for epoch in range(5):
        total = 0.0
        w.grad.zero_()
        for first in range(0, 4 * BATCH, BATCH):
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(logistic_batch, BATCH, inputs=[x, label, w, first], outputs=[loss])
            tape.backward(loss)  # adds to the gradient of the batches before
            total += float(loss.numpy()[0])
        w.assign(w.numpy() - 0.02 * w.grad.numpy())
        print(epoch, total)


if __name__ == "__main__":
    main()
