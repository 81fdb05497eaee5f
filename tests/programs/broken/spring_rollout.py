"""Throw a chain of masses: many steps, with a hand-tuned spring whose adjoint has a slip."""

# expect: exit=1
import numpy as np

import engine as wp

N = 8
STEPS = 15
DT = wp.constant(0.03)


@wp.func
def spring(d: wp.vec3, rest: float) -> wp.vec3:
    stretch = wp.length(d)
    return d * (30.0 * (stretch - rest) / stretch)


@wp.func_grad(spring)
def adj_spring(d: wp.vec3, rest: float, adj_ret: wp.vec3):  # expect: G001 a
    stretch = wp.length(d)
    n = d / stretch
    along = wp.dot(n, adj_ret)
    # The part across the spring should be scaled by (stretch - rest) / stretch.
    wp.adjoint[d] += 30.0 * (n * along + (adj_ret - n * along) * (stretch - rest))  # expect: G001 a
    wp.adjoint[rest] += -30.0 * along


@wp.kernel
def advance(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    force = wp.vec3(0.0, -9.81, 0.0)
    if i > 0:
        force += spring(x[i - 1] - x[i], 0.2)
    if i < x.shape[0] - 1:
        force += spring(x[i + 1] - x[i], 0.2)
    v_next[i] = v[i] + force * DT
    x_next[i] = x[i] + v_next[i] * DT


@wp.kernel
def tip_distance(x: wp.array(dtype=wp.vec3), goal: wp.vec3, loss: wp.array(dtype=float)):
    d = x[x.shape[0] - 1] - goal
    loss[0] = wp.dot(d, d)


class Chain:
    def __init__(self):
        rng = np.random.default_rng(4)
        start = np.stack([0.25 * np.arange(N), rng.normal(0, 0.05, N), np.zeros(N)], axis=1)
        self.x = wp.array(start, dtype=wp.vec3)
        self.v = wp.zeros(N, dtype=wp.vec3, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def run(self):
        x, v = self.x, self.v
        for _ in range(STEPS):
            x_next = wp.zeros(N, dtype=wp.vec3, requires_grad=True)
            v_next = wp.zeros(N, dtype=wp.vec3, requires_grad=True)
            wp.launch(advance, dim=N, inputs=[x, v], outputs=[x_next, v_next])
            x, v = x_next, v_next
        wp.launch(tip_distance, dim=1, inputs=[x, wp.vec3(2.0, 0.5, 0.3)], outputs=[self.loss])


chain = Chain()
with wp.Tape() as tape:
    chain.run()
tape.backward(chain.loss)
print("loss", chain.loss.numpy()[0])
print(chain.v.grad.numpy().round(4))
