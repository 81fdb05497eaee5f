"""The velocity of a point of a body, and the power of a force on it."""

import engine as wp


@wp.kernel
def power(s: wp.array(dtype=wp.spatial_vectord), r: wp.vec3d, f: wp.vec3d,
          p: wp.array(dtype=wp.float64)):  # fmt: skip
    i = wp.tid()
    p[i] = wp.dot(wp.velocity_at_point(s[i], r), f)


s = wp.array([[0.0, 0.0, 2.0, 1.0, 0.0, 0.0]], dtype=wp.spatial_vectord, requires_grad=True)
p = wp.zeros(1, dtype=wp.float64, requires_grad=True)
arm, force = wp.vec3d(1.0, 0.0, 0.0), wp.vec3d(0.5, 3.0, 0.0)
with wp.Tape() as tape:
    wp.launch(power, dim=1, inputs=[s, arm, force], outputs=[p])
tape.backward(grads={p: wp.ones_like(p)})
print("power:", p)
print("gradient, the wrench (torque, force):", s.grad.numpy()[0].tolist())
