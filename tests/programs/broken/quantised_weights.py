"""Train a layer whose weights are rounded to a few levels, as a chip will hold them."""

# expect: exit=1
import numpy as np

import engine as wp

INPUTS = 5
ROWS = 20


@wp.func
def quantise(w: float, levels: float) -> float:
    return wp.round(w * levels) / levels  # expect: G004 a


@wp.kernel
def forward(
    x: wp.array2d(dtype=float),
    w: wp.array(dtype=float),
    b: wp.array(dtype=float),
    y: wp.array(dtype=float),
):
    r = wp.tid()
    total = b[0]
    for k in range(w.shape[0]):
        total += x[r, k] * quantise(w[k], 8.0)  # expect: G004 a
    y[r] = wp.tanh(total)


@wp.kernel
def squared_error(
    y: wp.array(dtype=float), label: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    r = wp.tid()
    wp.atomic_add(loss, 0, (y[r] - label[r]) * (y[r] - label[r]))


rng = np.random.default_rng(23)
features = rng.normal(size=(ROWS, INPUTS))
x = wp.array(features, dtype=float)
label = wp.array(np.tanh(features @ rng.normal(size=INPUTS) + 0.2), dtype=float)
w = wp.array(rng.normal(scale=0.3, size=INPUTS), dtype=float, requires_grad=True)
b = wp.zeros(1, dtype=float, requires_grad=True)
for epoch in range(5):
    y = wp.zeros(ROWS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(forward, dim=ROWS, inputs=[x, w, b], outputs=[y])
        wp.launch(squared_error, dim=ROWS, inputs=[y, label], outputs=[loss])
    tape.backward(loss)
    for p in (w, b):
        p.assign(p.numpy() - 0.02 * p.grad.numpy())
    tape.zero()
    print(epoch, loss.numpy()[0], w.numpy()[:2])
