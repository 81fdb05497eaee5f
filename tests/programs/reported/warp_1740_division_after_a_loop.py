"""A function sums in a loop and divides by the sum before it returns.

Issue: 1740
There: the derivative of the division used the sum from before the loop.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.func
def resistance(branch: wp.array(dtype=wp.float64), n: int) -> wp.float64:
    conductance = wp.float64(0.25)
    for k in range(n):
        conductance += wp.float64(1.0) / branch[k]
    return wp.float64(1.0) / conductance


@wp.kernel
def parallel(branch: wp.array(dtype=wp.float64), n: int, y: wp.array(dtype=wp.float64)):
    y[0] = resistance(branch, n)


at = np.array([2.0, 3.0, 5.0])
branch = wp.array(at, dtype=wp.float64, requires_grad=True)
y = wp.zeros(1, dtype=wp.float64, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(parallel, dim=1, inputs=[branch, 3], outputs=[y])
tape.backward(y)
total = 0.25 + (1.0 / at).sum()
print("gradient", *branch.grad.numpy())
print("exact", *(1.0 / total**2 / at**2))
