"""A state that is cloned, copied and assigned before a kernel uses it.

Issue: 183
There: none of the three operations was differentiable.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def energy(q: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, 0.5 * q[i] * q[i])


start = np.array([1.0, -2.0, 0.5])
q = wp.array(start, dtype=float, requires_grad=True)
copied = wp.zeros(3, dtype=float, requires_grad=True)
assigned = wp.zeros(3, dtype=float, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    cloned = wp.clone(q)
    wp.copy(copied, cloned)
    assigned.assign(copied)
    wp.launch(energy, dim=3, inputs=[assigned], outputs=[out])
tape.backward(out)
print("gradient", *q.grad.numpy())
print("exact", *start)
