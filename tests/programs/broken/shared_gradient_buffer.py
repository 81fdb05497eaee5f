"""A deep residual stack; to save memory, two activations share one gradient array."""

# expect: exit=1
import numpy as np

import engine as wp

N = 10
LAYERS = 4


@wp.kernel
def residual_block(
    x: wp.array(dtype=float), w: wp.array2d(dtype=float), layer: int, y: wp.array(dtype=float)
):
    i = wp.tid()
    left = x[wp.max(i - 1, 0)]
    y[i] = x[i] + 0.5 * wp.tanh(w[layer, 0] * x[i] + w[layer, 1] * left)


@wp.kernel
def fit(y: wp.array(dtype=float), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (y[i] - goal[i]) * (y[i] - goal[i]))


def activations():
    """Arrays for all layers; odd ones use the gradient memory of the ones before."""
    made = [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(LAYERS + 1)]
    for k in range(1, LAYERS, 2):
        made[k + 1].grad = made[k].grad  # expect: G010 a
    return made


rng = np.random.default_rng(48)
start = rng.normal(size=N)
goal = wp.array(rng.normal(size=N), dtype=float)
w = wp.array(rng.normal(scale=0.7, size=(LAYERS, 2)), dtype=float, requires_grad=True)
for iteration in range(3):
    a = activations()
    a[0].assign(start)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for k in range(LAYERS):
            wp.launch(residual_block, N, inputs=[a[k], w, k], outputs=[a[k + 1]])  # expect: G010 a
        wp.launch(fit, dim=N, inputs=[a[LAYERS], goal], outputs=[loss])  # expect: G010 a
    tape.backward(loss)  # expect: G010 a
    w.assign(w.numpy() - 0.05 * w.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
