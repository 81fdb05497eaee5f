"""A transform is made of seven numbers, one by one, and moves a point.

Issue: 1011
There: this constructor had no adjoint.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def place(q: wp.array(dtype=float), point: wp.array(dtype=wp.vec3)):
    half = 0.5 * q[3]
    pose = wp.transform(q[0], q[1], q[2], 0.0, 0.0, wp.sin(half), wp.cos(half))
    point[0] = wp.transform_point(pose, wp.vec3(2.0, 0.0, 1.0))


at = np.array([0.1, 0.2, 0.3, 0.7])
q = wp.array(at, dtype=float, requires_grad=True)
point = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(place, dim=1, inputs=[q], outputs=[point])
tape.backward(grads={point: wp.array([[1.0, 2.0, 3.0]], dtype=wp.vec3)})
print("gradient", *q.grad.numpy())
print("exact", 1.0, 2.0, 3.0, -2.0 * np.sin(0.7) + 4.0 * np.cos(0.7))
