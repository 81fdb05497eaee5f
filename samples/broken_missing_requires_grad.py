"""Broken on purpose: a roll-out through which no gradient flows.

A ball is thrown at a target; the throw is to be optimised. The state arrays of
the steps are made without requires_grad, so the gradient stops at the first of
them and the initial velocity never moves. Nothing raises (finding G004).
"""

import numpy as np

import engine as wp

STEPS = 10
ITERATIONS = 15
DT = 0.1


@wp.kernel
def fly(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    dt: float,
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    drag = v[i] * wp.length(v[i]) * 0.05
    moved = v[i] + (wp.vec3(0.0, -9.81, 0.0) - drag) * dt
    v_next[i] = moved
    x_next[i] = x[i] + moved * dt


@wp.kernel
def miss(x: wp.array(dtype=wp.vec3), target: wp.vec3, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - target
    wp.atomic_add(loss, 0, wp.dot(d, d))


@wp.kernel
def descend(p: wp.array(dtype=wp.vec3), gradient: wp.array(dtype=wp.vec3), rate: float):
    i = wp.tid()
    p[i] = p[i] - gradient[i] * rate


def throw(balls: int, v: wp.array) -> wp.array:
    """Positions after STEPS steps."""
    x = wp.zeros(balls, dtype=wp.vec3)
    for _ in range(STEPS):
        # The mistake: these are on the path of the gradient and need requires_grad=True.
        x_next = wp.zeros(balls, dtype=wp.vec3)
        v_next = wp.zeros(balls, dtype=wp.vec3)
        wp.launch(fly, dim=balls, inputs=[x, v, DT], outputs=[x_next, v_next])
        x, v = x_next, v_next
    return x


def main() -> None:
    rng = np.random.default_rng(10)
    balls = 4
    start = np.array([4.0, 5.0, 0.0]) + rng.normal(scale=0.5, size=(balls, 3))
    v = wp.array(start, dtype=wp.vec3, requires_grad=True)
    target = wp.vec3(6.0, 0.0, 1.0)

    for iteration in range(ITERATIONS):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(miss, dim=balls, inputs=[throw(balls, v), target], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=balls, inputs=[v, v.grad, 0.2])
        if iteration % 5 == 0:
            size = np.abs(v.grad.numpy()).max()
            print(f"iteration {iteration:3d}  loss {loss.numpy()[0]:.5f}  gradient {size:.5f}")
        tape.zero()


if __name__ == "__main__":
    main()
