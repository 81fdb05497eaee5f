"""A chain whose activations take turns with two gradient arrays; leaves have parts of one array."""

# expect: exit=0
import numpy as np

import engine as wp

N, LAYERS = 6, 5


@wp.kernel
def layer(x: wp.array(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.tanh(w[i] * x[i])


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


rng = np.random.default_rng(3)
flat = wp.zeros(N * LAYERS, dtype=float)
weights = [wp.array(rng.normal(size=N), dtype=float, requires_grad=True) for _ in range(LAYERS)]
for k, w in enumerate(weights):
    w.grad = flat[k * N : (k + 1) * N]
turns = [wp.zeros(N, dtype=float), wp.zeros(N, dtype=float)]
x = wp.array(rng.normal(size=N), dtype=float, requires_grad=True)
values = [x]
for k in range(LAYERS):
    y = wp.zeros(N, dtype=float, requires_grad=True)
    y.grad = turns[k % 2]
    values.append(y)
loss = wp.zeros(1, dtype=float, requires_grad=True)
for _ in range(2):
    loss.zero_()
    with wp.Tape() as tape:
        for k, w in enumerate(weights):
            wp.launch(layer, dim=N, inputs=[values[k], w], outputs=[values[k + 1]])
        wp.launch(total, dim=N, inputs=[values[-1]], outputs=[loss])
    tape.backward(loss)
    print(loss.numpy(), flat.numpy(), x.grad.numpy())
    for w in weights:
        w.assign(w.numpy() - 0.1 * w.grad.numpy())
    tape.zero()
