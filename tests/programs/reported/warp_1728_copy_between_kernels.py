"""A kernel reads an array, and a copy of it overwrites another array.

Issue: 1728
There: the copy's adjoint replaced the source's gradient, and left that of its target.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def add(x: wp.array(dtype=float), weight: float, out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, weight * x[i])


x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
dead = wp.array([5.0, 6.0], dtype=float, requires_grad=True)
kept = wp.zeros(2, dtype=float, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(double, dim=2, inputs=[dead], outputs=[kept])
    wp.copy(kept, x)
    wp.launch(add, dim=2, inputs=[x, 3.0], outputs=[out])
    wp.launch(add, dim=2, inputs=[kept, 10.0], outputs=[out])
tape.backward(out)
print("gradient", *x.grad.numpy(), *dead.grad.numpy())
print("exact", *np.full(2, 13.0), 0.0, 0.0)
