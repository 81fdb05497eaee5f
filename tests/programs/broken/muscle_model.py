"""A Hill-type muscle: activation and tendon slack are fitted to measured forces."""

# expect: exit=1
import numpy as np

import engine as wp

TRIALS = 24


@wp.func
def active_force(length: float, activation: float, width: float) -> float:
    d = (length - 1.0) / width
    return activation * wp.exp(-d * d)


@wp.func_grad(active_force)
def adj_active_force(  # expect: G001 a
    length: float, activation: float, width: float, adj_ret: float
):
    d = (length - 1.0) / width
    bell = wp.exp(-d * d)
    wp.adjoint[length] += adj_ret * activation * bell * (-2.0 * d / width)  # expect: G001 a
    # The width moves the force too. It was a constant when this was written.
    wp.adjoint[activation] += adj_ret * bell


@wp.kernel
def muscle(
    length: wp.array(dtype=float),
    activation: wp.array(dtype=float),
    shape: wp.array(dtype=float),
    force: wp.array(dtype=float),
):
    i = wp.tid()
    stretch = length[i] / shape[1]
    passive = 0.1 * (wp.exp(2.0 * (stretch - 1.0)) - 1.0)
    force[i] = active_force(stretch, activation[i], shape[0]) + passive


@wp.kernel
def squared(force: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (force[i] - seen[i]) * (force[i] - seen[i]))


rng = np.random.default_rng(3)
length = wp.array(rng.uniform(0.7, 1.4, TRIALS), dtype=float)
activation = wp.array(rng.uniform(0.2, 1.0, TRIALS), dtype=float, requires_grad=True)
seen = wp.zeros(TRIALS, dtype=float)
wp.launch(
    muscle, TRIALS, inputs=[length, activation, wp.array([0.45, 1.1], dtype=float)], outputs=[seen]
)
shape = wp.array([0.6, 1.0], dtype=float, requires_grad=True)
for _ in range(8):
    force = wp.zeros(TRIALS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(muscle, TRIALS, inputs=[length, activation, shape], outputs=[force])
        wp.launch(squared, TRIALS, inputs=[force, seen], outputs=[loss])
    tape.backward(loss)
    shape.assign(shape.numpy() - 0.01 * shape.grad.numpy())
    tape.zero()
    print(loss.numpy()[0], shape.numpy())
