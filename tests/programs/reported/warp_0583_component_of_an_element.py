"""The kernel replaces one component of a vector in an array and keeps the others.

Issue: 583
There: no gradient reached the stored value.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def prepare(base: wp.array(dtype=wp.vec3), p: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    p[i] = 2.0 * base[i]


@wp.kernel
def drop(height: wp.array(dtype=float), p: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    p[i].y = height[i] * height[i]


at = np.array([1.0, -2.0, 0.5])
base = wp.array(np.ones((3, 3)), dtype=wp.vec3, requires_grad=True)
height = wp.array(at, dtype=float, requires_grad=True)
p = wp.zeros(3, dtype=wp.vec3, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(prepare, dim=3, inputs=[base], outputs=[p])
    wp.launch(drop, dim=3, inputs=[height], outputs=[p])
tape.backward(grads={p: wp.full(3, wp.vec3(1.0, 5.0, 7.0), dtype=wp.vec3)})
print("gradient", *height.grad.numpy(), *base.grad.numpy().ravel())
print("exact", *(10.0 * at), *([2.0, 0.0, 14.0] * 3))
