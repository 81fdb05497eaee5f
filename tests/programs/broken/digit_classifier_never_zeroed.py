"""A linear classifier trained for a few epochs; its gradients are never cleared."""

# expect: exit=1
import numpy as np

import engine as wp

ROWS = 24
INPUTS = 6
CLASSES = 3


@wp.kernel
def scores(x: wp.array2d(dtype=float), w: wp.array2d(dtype=float), z: wp.array2d(dtype=float)):
    r, c = wp.tid()
    total = float(0.0)
    for k in range(x.shape[1]):
        total += x[r, k] * w[k, c]
    z[r, c] = total


@wp.kernel
def cross_entropy(
    z: wp.array2d(dtype=float), label: wp.array(dtype=int), loss: wp.array(dtype=float)
):
    r = wp.tid()
    total = float(0.0)
    for c in range(z.shape[1]):
        total += wp.exp(z[r, c])
    wp.atomic_add(loss, 0, (wp.log(total) - z[r, label[r]]) / float(z.shape[0]))


@wp.kernel
def sgd(w: wp.array2d(dtype=float), g: wp.array2d(dtype=float), rate: float):
    i, j = wp.tid()
    w[i, j] = w[i, j] - rate * g[i, j]


rng = np.random.default_rng(39)
x = wp.array(rng.normal(size=(ROWS, INPUTS)), dtype=float)
label = wp.array(rng.integers(0, CLASSES, ROWS), dtype=int)
w = wp.zeros((INPUTS, CLASSES), dtype=float, requires_grad=True)
for epoch in range(6):
    z = wp.zeros((ROWS, CLASSES), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scores, dim=(ROWS, CLASSES), inputs=[x, w], outputs=[z])
        wp.launch(cross_entropy, dim=ROWS, inputs=[z, label], outputs=[loss])
    tape.backward(loss)  # expect: G013
    wp.launch(sgd, dim=w.shape, inputs=[w, w.grad, 0.3])
    print(epoch, loss.numpy()[0])
