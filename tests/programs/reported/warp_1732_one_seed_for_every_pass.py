"""One array of ones is the seed of every backward pass of a training loop.

Issue: 1732
There: a pass cleared its seed, and the next one started with zeros.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


at = np.array([1.0, -2.0])
x = wp.array(at, dtype=float, requires_grad=True)
seed = wp.ones(2, dtype=float)
found = []
for _ in range(3):
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, dim=2, inputs=[x], outputs=[y])
    tape.backward(grads={y: seed})
    found += [*x.grad.numpy()]
    tape.zero()
print("gradient", *found, *seed.numpy())
print("exact", *np.tile(3.0 * at**2, 3), 1.0, 1.0)
