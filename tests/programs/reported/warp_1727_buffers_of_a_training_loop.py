"""A training loop with a new tape for each step, and the same arrays.

Issue: 1727
There: from the second step on, stores to arrays of the first step were reported as overwrites.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


start = np.array([0.5, 0.9, -0.7])
x = wp.array(start, dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
z = wp.zeros(3, dtype=float, requires_grad=True)
for _ in range(3):
    with wp.Tape() as tape:
        wp.launch(square, dim=3, inputs=[x], outputs=[y])
        wp.launch(square, dim=3, inputs=[y], outputs=[z])
    tape.backward(grads={z: wp.ones(3, dtype=float)})
    slope = x.grad.numpy().copy()
    tape.zero()
    x.assign(x.numpy() - 0.1 * slope)
exact = start
for _ in range(3):
    last = 4.0 * exact**3
    exact = exact - 0.1 * last
print("gradient", *slope, *x.numpy())
print("exact", *last, *exact)
