"""A small rectified network started with zero biases on inputs that hold exact zeros."""

# expect: exit=0
import numpy as np

import engine as wp

ROWS = 8
HIDDEN = 4


@wp.kernel
def rectify(
    x: wp.array(dtype=float),
    w: wp.array(dtype=float),
    b: wp.array(dtype=float),
    h: wp.array2d(dtype=float),
):
    r, k = wp.tid()
    h[r, k] = wp.max(w[k] * x[r] + b[k], 0.0)  # expect: note[G005]


@wp.kernel
def linear_readout(
    h: wp.array2d(dtype=float),
    v: wp.array(dtype=float),
    y: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    r = wp.tid()
    total = float(0.0)
    for k in range(v.shape[0]):
        total += h[r, k] * v[k]
    wp.atomic_add(loss, 0, (total - y[r]) * (total - y[r]))


rng = np.random.default_rng(50)
values = rng.integers(-2, 3, ROWS).astype(np.float32)
values[0] = 0.0
x = wp.array(values, dtype=float)
y = wp.array(np.abs(values) + 0.5, dtype=float)
w = wp.array(rng.normal(size=HIDDEN), dtype=float, requires_grad=True)
b = wp.zeros(HIDDEN, dtype=float, requires_grad=True)
v = wp.array(rng.normal(size=HIDDEN), dtype=float, requires_grad=True)
for epoch in range(4):
    h = wp.zeros((ROWS, HIDDEN), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(rectify, dim=(ROWS, HIDDEN), inputs=[x, w, b], outputs=[h])
        wp.launch(linear_readout, dim=ROWS, inputs=[h, v, y], outputs=[loss])
    tape.backward(loss)
    for p in (w, b, v):
        p.assign(p.numpy() - 0.01 * p.grad.numpy())
    tape.zero()
    print(epoch, loss.numpy()[0])
