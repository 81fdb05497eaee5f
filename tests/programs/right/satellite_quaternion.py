"""Attitude control: torques turn a satellite; quaternions, vectors and an inertia matrix."""

# expect: exit=0
import numpy as np

import engine as wp

STEPS = 10
DT = 0.1


@wp.kernel
def rotate_step(
    q: wp.array(dtype=wp.quat),
    w: wp.array(dtype=wp.vec3),
    torque: wp.array(dtype=wp.vec3),
    inertia: wp.mat33,
    k: int,
    q_next: wp.array(dtype=wp.quat),
    w_next: wp.array(dtype=wp.vec3),
):
    spin = w[0]
    gyro = wp.cross(spin, inertia @ spin)
    turned = spin + DT * (wp.inverse(inertia) @ (torque[k] - gyro))
    half = wp.quat(0.5 * DT * turned[0], 0.5 * DT * turned[1], 0.5 * DT * turned[2], 1.0)
    w_next[0] = turned
    q_next[0] = wp.normalize(q[0] * half)


@wp.kernel
def pointing_error(
    q: wp.array(dtype=wp.quat),
    w: wp.array(dtype=wp.vec3),
    goal: wp.vec3,
    loss: wp.array(dtype=float),
):
    d = wp.quat_rotate(q[0], wp.vec3(0.0, 0.0, 1.0)) - goal
    loss[0] = wp.dot(d, d) + 0.1 * wp.dot(w[0], w[0])


def main():
    inertia = wp.mat33(2.0, 0.1, 0.0, 0.1, 1.5, 0.0, 0.0, 0.0, 1.0)
    goal = wp.normalize(wp.vec3(0.6, -0.3, 0.7))
    torque = wp.array(np.full((STEPS, 3), 0.1), dtype=wp.vec3, requires_grad=True)
    for iteration in range(4):
        q = wp.array([[0.0, 0.0, 0.0, 1.0]], dtype=wp.quat)
        w = wp.array([[0.1, 0.0, 0.2]], dtype=wp.vec3)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for k in range(STEPS):
                q_next = wp.zeros(1, dtype=wp.quat, requires_grad=True)
                w_next = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
                wp.launch(rotate_step, 1, [q, w, torque, inertia, k], [q_next, w_next])
                q, w = q_next, w_next
            wp.launch(pointing_error, dim=1, inputs=[q, w, goal], outputs=[loss])
        tape.backward(loss)
        torque.assign(torque.numpy() - 0.5 * torque.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
