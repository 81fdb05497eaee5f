"""Trajectory optimisation: torques that swing pendulums up and hold them there.

One thread simulates one pendulum from start to end: its whole roll-out is a
single dynamic loop inside a kernel, so the gradient of the torques depends on
reverse mode going back through every iteration of that loop.
"""

import numpy as np

import engine as wp

PENDULUMS = 3
STEPS = 40
ITERATIONS = 150
DT = 0.05


@wp.kernel
def swing(
    torque: wp.array2d(dtype=float),
    length: wp.array(dtype=float),
    steps: int,
    dt: float,
    final: wp.array(dtype=wp.vec2),
    effort: wp.array(dtype=float),
):
    p = wp.tid()
    angle = float(0.0)
    speed = float(0.0)
    spent = float(0.0)
    for t in range(steps):
        u = torque[p, t]
        speed += (u - 0.1 * speed - 9.81 / length[p] * wp.sin(angle)) * dt
        angle += speed * dt
        spent += u * u * dt
    final[p] = wp.vec2(angle, speed)
    effort[p] = spent


@wp.kernel
def cost(
    final: wp.array(dtype=wp.vec2), effort: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    p = wp.tid()
    state = final[p]
    # Upright is an angle of pi; the rest is the price of torque.
    off = state[0] - 3.14159265
    wp.atomic_add(loss, 0, 10.0 * off * off + state[1] * state[1] + 0.002 * effort[p])


@wp.kernel
def adam(
    p: wp.array2d(dtype=float),
    gradient: wp.array2d(dtype=float),
    mean: wp.array2d(dtype=float),
    square: wp.array2d(dtype=float),
    count: float,
    rate: float,
):
    i, j = wp.tid()
    g = gradient[i, j]
    m = 0.9 * mean[i, j] + 0.1 * g
    s = 0.99 * square[i, j] + 0.01 * g * g
    mean[i, j] = m
    square[i, j] = s
    unbiased = m / (1.0 - wp.pow(0.9, count))
    scale = wp.sqrt(s / (1.0 - wp.pow(0.99, count))) + 1.0e-8
    p[i, j] = p[i, j] - rate * unbiased / scale


def main() -> None:
    rng = np.random.default_rng(4)
    shape = (PENDULUMS, STEPS)
    torque = wp.array(rng.normal(scale=0.5, size=shape), dtype=float, requires_grad=True)
    length = wp.array([0.8, 1.0, 1.3], dtype=float)
    mean, square = wp.zeros(shape, dtype=float), wp.zeros(shape, dtype=float)

    losses = []
    final = wp.zeros(PENDULUMS, dtype=wp.vec2)
    for iteration in range(ITERATIONS):
        final = wp.zeros(PENDULUMS, dtype=wp.vec2, requires_grad=True)
        effort = wp.zeros(PENDULUMS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(
                swing,
                dim=PENDULUMS,
                inputs=[torque, length, STEPS, DT],
                outputs=[final, effort],
            )
            wp.launch(cost, dim=PENDULUMS, inputs=[final, effort], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        wp.launch(
            adam,
            dim=shape,
            inputs=[torque, torque.grad, mean, square, float(iteration + 1), 0.3],
        )
        tape.zero()
        if iteration % 20 == 0:
            print(f"iteration {iteration:3d}  cost {losses[-1]:.4f}")

    degrees = np.degrees(final.numpy()[:, 0])
    print(f"cost {losses[0]:.2f} -> {losses[-1]:.4f}, final angles {np.round(degrees, 1)} degrees")
    if not (losses[-1] < 0.02 * losses[0] and np.all(np.abs(degrees - 180.0) < 5.0)):
        raise SystemExit("the pendulums were not swung up")


if __name__ == "__main__":
    main()
