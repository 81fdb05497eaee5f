"""The components of a vector in an array are stored one after the other.

Issue: 248
There: the gradient was zero.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def helix(angle: wp.array(dtype=float), point: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    point[i].x = wp.cos(angle[i])
    point[i].y = wp.sin(angle[i])
    point[i].z = 0.2 * angle[i]


at = np.array([0.3, 1.1, 2.5])
angle = wp.array(at, dtype=float, requires_grad=True)
point = wp.zeros(3, dtype=wp.vec3, requires_grad=True)
point.grad = wp.full(3, wp.vec3(1.0, 2.0, 3.0), dtype=wp.vec3)
wp.launch(helix, dim=3, inputs=[angle, point], adjoint=True, adj_inputs=[None, None])
manual = angle.grad.numpy()
angle.grad.zero_()
point.grad.zero_()
with wp.Tape() as tape:
    wp.launch(helix, dim=3, inputs=[angle], outputs=[point])
tape.backward(grads={point: wp.full(3, wp.vec3(1.0, 2.0, 3.0), dtype=wp.vec3)})
exact = -np.sin(at) + 2.0 * np.cos(at) + 0.6
print("gradient", *angle.grad.numpy(), *manual)
print("exact", *exact, *exact)
