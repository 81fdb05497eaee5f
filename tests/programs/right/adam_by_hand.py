"""Fit a small network with Adam, written as a kernel that changes its arrays in place."""

# expect: exit=0
import numpy as np

import engine as wp

POINTS = 24
HIDDEN = 8


@wp.kernel
def network(
    x: wp.array(dtype=float),
    w1: wp.array(dtype=float),
    b1: wp.array(dtype=float),
    w2: wp.array(dtype=float),
    y: wp.array(dtype=float),
):
    i = wp.tid()
    total = float(0.0)
    for k in range(w1.shape[0]):
        total += w2[k] * wp.tanh(w1[k] * x[i] + b1[k])
    y[i] = total


@wp.kernel
def squared_error(
    y: wp.array(dtype=float), data: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = y[i] - data[i]
    wp.atomic_add(loss, 0, d * d / float(y.shape[0]))


@wp.kernel
def adam_kernel(
    p: wp.array(dtype=float),
    g: wp.array(dtype=float),
    m: wp.array(dtype=float),
    v: wp.array(dtype=float),
    t: float,
    rate: float,
):
    i = wp.tid()
    m[i] = 0.9 * m[i] + 0.1 * g[i]
    v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i]
    p[i] -= (
        rate * (m[i] / (1.0 - wp.pow(0.9, t))) / (wp.sqrt(v[i] / (1.0 - wp.pow(0.99, t))) + 1e-8)
    )


class Adam:
    def __init__(self, parameters, rate):
        self.parameters, self.rate, self.t = parameters, rate, 0
        self.moments = [(wp.zeros_like(p), wp.zeros_like(p)) for p in parameters]

    def step(self):
        self.t += 1
        for p, (m, v) in zip(self.parameters, self.moments, strict=True):
            wp.launch(adam_kernel, p.size, inputs=[p, p.grad, m, v, float(self.t), self.rate])


rng = np.random.default_rng(62)
grid = np.linspace(-1.0, 1.0, POINTS)
x, data = wp.array(grid, dtype=float), wp.array(np.sin(3.0 * grid), dtype=float)
parameters = [wp.array(rng.normal(size=HIDDEN), dtype=float, requires_grad=True) for _ in range(3)]
optimizer = Adam(parameters, 0.05)
for epoch in range(12):
    y = wp.zeros(POINTS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(network, dim=POINTS, inputs=[x, *parameters], outputs=[y])
        wp.launch(squared_error, dim=POINTS, inputs=[y, data], outputs=[loss])
    tape.backward(loss)
    optimizer.step()
    tape.zero()
    print(epoch, loss.numpy()[0])
