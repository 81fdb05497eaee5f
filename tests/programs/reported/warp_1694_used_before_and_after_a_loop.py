"""A variable is computed before a loop with an unknown bound, and used after it.

Issue: 1694
There: that part of the gradient was lost.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def shell(x: wp.array(dtype=float), layer: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    area = x[i] * x[i]
    stiffness = float(0.0)
    for k in range(n):
        stiffness += layer[k] * layer[k]
    y[i] = area * stiffness


at, thick = np.array([2.0, -1.5]), np.array([0.5, 0.7, 1.1])
x = wp.array(at, dtype=float, requires_grad=True)
layer = wp.array(thick, dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(shell, dim=2, inputs=[x, layer, 3], outputs=[y])
tape.backward(grads={y: wp.ones(2, dtype=float)})
print("gradient", *x.grad.numpy(), *layer.grad.numpy())
print("exact", *(2.0 * at * (thick**2).sum()), *(2.0 * thick * (at**2).sum()))
