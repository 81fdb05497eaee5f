"""Inverse kinematics of a six-joint arm with rigid transforms along the chain."""

# expect: exit=0
import numpy as np

import engine as wp

JOINTS = 6


@wp.kernel
def forward_kinematics(
    angle: wp.array(dtype=float),
    axis: wp.array(dtype=wp.vec3),
    link: wp.array(dtype=wp.vec3),
    tip: wp.array(dtype=wp.vec3),
):
    pose = wp.transform(wp.vec3(0.0, 0.0, 0.0), wp.quat_identity())
    for j in range(angle.shape[0]):
        turn = wp.quat_from_axis_angle(axis[j], angle[j])
        pose = wp.transform_multiply(pose, wp.transform(wp.vec3(0.0, 0.0, 0.0), turn))
        pose = wp.transform_multiply(pose, wp.transform(link[j], wp.quat_identity()))
    tip[0] = wp.transform_get_translation(pose)
    tip[1] = wp.transform_vector(pose, wp.vec3(1.0, 0.0, 0.0))


@wp.kernel
def task_error(
    tip: wp.array(dtype=wp.vec3),
    goal: wp.array(dtype=wp.vec3),
    angle: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    a = tip[0] - goal[0]
    b = tip[1] - goal[1]
    cost = wp.dot(a, a) + 0.2 * wp.dot(b, b)
    for j in range(angle.shape[0]):
        cost += 0.001 * angle[j] * angle[j]
    loss[0] = cost


axis = wp.array(np.eye(3)[[2, 1, 1, 0, 1, 0]], dtype=wp.vec3)
link = wp.array(
    [[0, 0, 0.3], [0.4, 0, 0], [0.3, 0, 0.1], [0.2, 0, 0], [0.1, 0, 0], [0, 0, 0.1]], dtype=wp.vec3
)
goal = wp.array([[0.5, 0.4, 0.5], [0.0, 0.0, 1.0]], dtype=wp.vec3)
angle = wp.array(np.linspace(0.1, 0.5, JOINTS), dtype=float, requires_grad=True)
for iteration in range(8):
    tip = wp.zeros(2, dtype=wp.vec3, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(forward_kinematics, dim=1, inputs=[angle, axis, link], outputs=[tip])
        wp.launch(task_error, dim=1, inputs=[tip, goal, angle], outputs=[loss])
    tape.backward(loss)
    angle.assign(angle.numpy() - 0.3 * angle.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
