"""The largest of several products, found by a loop with `continue` for some of them.

Issue: 1552
There: every thread got the derivative of the last iteration, not that of the largest product.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def largest(c: wp.array(dtype=float), n: int, x: wp.array(dtype=wp.vec2), y: wp.array(dtype=float)):
    i = wp.tid()
    best = float(-1.0e20)
    for k in range(n):
        if c[k] == 0.0:
            continue
        v = c[k] * x[i][0] + x[i][1] * x[i][1] / c[k]
        if v > best:
            best = v
    y[i] = best


c, at = np.array([0.5, 0.0, 2.0, -1.0, 1.0]), np.array([[0.1, 1.0], [3.0, 0.2], [-2.0, 0.1]])
x = wp.array(at, dtype=wp.vec2, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(largest, dim=3, inputs=[wp.array(c, dtype=float), 5, x], outputs=[y])
tape.backward(grads={y: wp.ones(3, dtype=float)})
exact = []
for a, b in at:
    k = max(c[c != 0.0], key=lambda k: k * a + b * b / k)
    exact += [k, 2.0 * b / k]
print("gradient", *x.grad.numpy().ravel())
print("exact", *exact)
