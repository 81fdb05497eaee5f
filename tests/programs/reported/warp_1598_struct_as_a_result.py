"""A function returns a struct, with and without an array in it.

Issue: 1598
There: gradients ended at the struct.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.struct
class Contact:
    normal: wp.vec3
    depth: float


@wp.struct
class Shape:
    center: wp.vec3
    scale: wp.array(dtype=float)


@wp.func
def shape_of(center: wp.vec3, scale: wp.array(dtype=float)) -> Shape:
    s = Shape()
    s.center = 2.0 * center
    s.scale = scale
    return s


@wp.func
def touch(s: Shape) -> Contact:
    c = Contact()
    c.depth = s.scale[0] - wp.length(s.center)
    c.normal = wp.normalize(s.center)
    return c


@wp.kernel
def push(p: wp.array(dtype=wp.vec3), scale: wp.array(dtype=float), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    c = touch(shape_of(p[i], scale))
    y[i] = c.depth * c.normal


at = np.array([[0.3, -0.4, 1.2]])
p = wp.array(at, dtype=wp.vec3, requires_grad=True)
scale = wp.array([3.0], dtype=float, requires_grad=True)
y = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(push, dim=1, inputs=[p, scale], outputs=[y])
seed = np.array([1.0, 2.0, 3.0])
tape.backward(grads={y: wp.array([seed], dtype=wp.vec3)})
q = 2.0 * at[0]
n = q / np.linalg.norm(q)
jacobian = 3.0 / np.linalg.norm(q) * (np.eye(3) - np.outer(n, n)) - np.eye(3)
print("gradient", *p.grad.numpy().ravel(), *scale.grad.numpy())
print("exact", *(2.0 * jacobian @ seed), n @ seed)
