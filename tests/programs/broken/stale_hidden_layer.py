"""A tape recorded once and used for every step; the hidden layer is not computed again."""

# expect: exit=0
import numpy as np

import engine as wp

POINTS = 20
HIDDEN = 6


@wp.kernel
def hidden_layer(x: wp.array(dtype=float), w: wp.array(dtype=float), h: wp.array2d(dtype=float)):
    i, k = wp.tid()
    h[i, k] = wp.tanh(w[k] * x[i] + 0.3 * float(k))


@wp.kernel
def output_error(
    h: wp.array2d(dtype=float),
    v: wp.array(dtype=float),
    y: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    total = float(0.0)
    for k in range(v.shape[0]):
        total += h[i, k] * v[k]
    wp.atomic_add(loss, 0, (total - y[i]) * (total - y[i]))


rng = np.random.default_rng(42)
grid = np.linspace(-1.0, 1.0, POINTS)
x, y = wp.array(grid, dtype=float), wp.array(np.sin(3.0 * grid), dtype=float)
w = wp.array(rng.normal(size=HIDDEN), dtype=float, requires_grad=True)
v = wp.array(rng.normal(size=HIDDEN), dtype=float, requires_grad=True)
h = wp.zeros((POINTS, HIDDEN), dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)

tape = wp.Tape()
with tape:
    wp.launch(
        hidden_layer, dim=(POINTS, HIDDEN), inputs=[x, w], outputs=[h]
    )  # expect: warning[G013] a
    wp.launch(output_error, dim=POINTS, inputs=[h, v, y], outputs=[loss])
for step in range(6):
    tape.zero()
    tape.backward(loss)  # expect: warning[G013] a
    for p in (w, v):
        p.assign(p.numpy() - 0.01 * p.grad.numpy())
    # Only the last launch is run again: `h` still belongs to the first weights.
    loss.zero_()
    wp.launch(output_error, dim=POINTS, inputs=[h, v, y], outputs=[loss])
    print(step, loss.numpy()[0])
