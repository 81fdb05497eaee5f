"""Logistic regression on the unit ball: weights are projected before the gradient is taken."""

# expect: exit=1
import numpy as np

import engine as wp

ROWS = 30
COLUMNS = 3


@wp.kernel
def predict(x: wp.array2d(dtype=float), w: wp.array(dtype=float), margin: wp.array(dtype=float)):
    r = wp.tid()
    total = float(0.0)
    for c in range(w.shape[0]):
        total += x[r, c] * w[c] * w[c]  # expect: G003 a
    margin[r] = total


@wp.kernel
def logistic(
    margin: wp.array(dtype=float), label: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    r = wp.tid()
    wp.atomic_add(loss, 0, wp.log(1.0 + wp.exp(-label[r] * margin[r])))


@wp.kernel
def project_to_ball(w: wp.array(dtype=float), radius: float):
    total = float(0.0)
    for c in range(w.shape[0]):
        total += w[c] * w[c]
    scale = wp.min(1.0, radius / wp.sqrt(total))
    for c in range(w.shape[0]):
        w[c] = w[c] * scale  # expect: G003 a


rng = np.random.default_rng(20)
x = wp.array(rng.normal(size=(ROWS, COLUMNS)), dtype=float)
label = wp.array(np.sign(rng.normal(size=ROWS)), dtype=float)
w = wp.array([1.5, -1.0, 0.8], dtype=float, requires_grad=True)
for step in range(3):
    margin = wp.zeros(ROWS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(predict, dim=ROWS, inputs=[x, w], outputs=[margin])  # expect: G003 a
        wp.launch(logistic, dim=ROWS, inputs=[margin, label], outputs=[loss])
    wp.launch(project_to_ball, dim=1, inputs=[w, 1.0])  # expect: G003 a
    tape.backward(loss)
    w.assign(w.numpy() - 0.05 * w.grad.numpy())
    tape.zero()
    print(step, loss.numpy()[0], w.numpy())
