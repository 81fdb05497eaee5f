"""Two launches store to one array: at the end, it holds only the values of the second.

Issue: 1062
There: gradients went to both launches.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def store(x: wp.array(dtype=float), factor: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = factor * x[i]


first = wp.ones(3, dtype=float, requires_grad=True)
second = wp.ones(3, dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(store, dim=3, inputs=[first, 2.0], outputs=[y])
    wp.launch(store, dim=2, inputs=[second, 5.0], outputs=[y])
tape.backward(grads={y: wp.ones(3, dtype=float)})
print("gradient", *first.grad.numpy(), *second.grad.numpy())
print("exact", 0.0, 0.0, 2.0, 5.0, 5.0, *np.zeros(1))
