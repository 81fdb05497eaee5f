"""A clone serves as a new array of the same size: the program overwrites all its elements.

Issue: 272
There: gradients leaked from the clone to its source.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def contacts(height: wp.array(dtype=float), depth: wp.array(dtype=float)):
    i = wp.tid()
    depth[i] = wp.max(0.5 - height[i], 0.0)


@wp.kernel
def penalty(depth: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, 3.0 * depth[i] * depth[i])


at = np.array([0.1, 0.4, 0.9])
height = wp.array(at, dtype=float, requires_grad=True)
template = wp.array([7.0, 8.0, 9.0], dtype=float, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    depth = wp.clone(template)
    wp.launch(contacts, dim=3, inputs=[height], outputs=[depth])
    wp.launch(penalty, dim=3, inputs=[depth], outputs=[out])
tape.backward(out)
print("gradient", *height.grad.numpy(), *template.grad.numpy())
print("exact", *(-6.0 * np.maximum(0.5 - at, 0.0)), 0.0, 0.0, 0.0)
