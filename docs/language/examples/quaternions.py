"""A point turned by an angle, and the derivative by the angle."""

import math

import engine as wp


@wp.kernel
def turn(angle: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    q = wp.quat_from_axis_angle(wp.vec3d(0.0, 0.0, 1.0), angle[i])
    y[i] = wp.quat_rotate(q, wp.vec3d(1.0, 0.0, 0.0))


angle = wp.array([0.0, math.pi / 2], dtype=wp.float64, requires_grad=True)
y = wp.zeros(2, dtype=wp.vec3d, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(turn, dim=2, inputs=[angle], outputs=[y])
tape.backward(grads={y: wp.array([[0.0, 1.0, 0.0]] * 2, dtype=wp.vec3d)})
print("turned:", (y.numpy().round(6) + 0.0).tolist())
print("d y.y / d angle:", (angle.grad.numpy().round(6) + 0.0).tolist())
half = wp.quat_slerp(wp.quatd(0.0, 0.0, 0.0, 1.0), wp.quatd(0.0, 0.0, 1.0, 0.0), wp.float64(0.5))
axis, size = wp.quat_to_axis_angle(half)
print("half of half a turn:", [round(x, 6) for x in axis], round(size, 6))
