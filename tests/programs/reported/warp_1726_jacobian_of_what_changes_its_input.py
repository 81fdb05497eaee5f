"""The Jacobian of a function that moves its input before it reads it.

Issue: 1726
There: each evaluation started with the input that the previous one had left.
"""

# expect: exit=0
import numpy as np
import warp as wp
import warp.autograd


@wp.kernel
def drift(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel
def read(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def simulate(x):
    y = wp.zeros(3, dtype=float, requires_grad=True)
    wp.launch(drift, dim=3, inputs=[x])
    wp.launch(read, dim=3, inputs=[x], outputs=[y])
    return y


start = np.array([1.0, 2.0, 3.0])
x = wp.array(start, dtype=float, requires_grad=True)
found = wp.autograd.jacobian_fd(simulate, inputs=[x])
slopes = np.round(np.diag(found[0, 0].numpy()), 1)
x = wp.array(start, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    y = simulate(x)
tape.backward(grads={y: wp.ones(3, dtype=float)})
print("gradient", *slopes, *x.grad.numpy())
print("exact", *(2.0 * (start + 1.0)), *(2.0 * (start + 1.0)))
