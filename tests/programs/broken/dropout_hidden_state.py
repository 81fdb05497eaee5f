"""A layer with dropout, whose random numbers come from a C++ generator with a hidden state."""

# expect: exit=0
# expect: allow=G012 the tape as a whole cannot be compared with a run that draws other numbers
# expect: allow=G006 for the same reason
import numpy as np

import engine as wp

ROWS = 12
UNITS = 5

generator = """
    static unsigned state = 12345u;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 16777216.0f;
"""


@wp.func_native(generator)
def next_random() -> float: ...


@wp.kernel
def dropout_layer(  # expect: warning[G007] a
    x: wp.array2d(dtype=float), w: wp.array2d(dtype=float), out: wp.array2d(dtype=float)
):
    r, u = wp.tid()
    total = float(0.0)
    for k in range(x.shape[1]):
        total += x[r, k] * w[k, u]
    keep = wp.where(next_random() < 0.7, 1.0 / 0.7, 0.0)
    out[r, u] = keep * wp.tanh(total)  # expect: warning[G007] a


@wp.kernel
def mean_square(
    out: wp.array2d(dtype=float), y: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    r, u = wp.tid()
    d = out[r, u] - y[r]
    wp.atomic_add(loss, 0, d * d / float(out.shape[0] * out.shape[1]))


rng = np.random.default_rng(47)
x = wp.array(rng.normal(size=(ROWS, 3)), dtype=float)
y = wp.array(rng.normal(size=ROWS), dtype=float)
w = wp.array(rng.normal(size=(3, UNITS)), dtype=float, requires_grad=True)
for epoch in range(3):
    out = wp.zeros((ROWS, UNITS), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(
            dropout_layer, (ROWS, UNITS), inputs=[x, w], outputs=[out]
        )  # expect: warning[G007] a
        wp.launch(mean_square, (ROWS, UNITS), inputs=[out, y], outputs=[loss])
    tape.backward(loss)
    w.assign(w.numpy() - 0.05 * w.grad.numpy())
    tape.zero()
    print(epoch, loss.numpy()[0])
