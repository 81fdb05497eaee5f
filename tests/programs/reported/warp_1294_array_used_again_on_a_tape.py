"""Steps of a simulation that keep their state in one array, which each step changes.

Issue: 1294
There: the gradient is that of the last state at every step.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def step(x: wp.array(dtype=float), rate: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 0.1 * rate[0] * x[i] * (1.0 - x[i])  # expect: warning[G003] a


start, steps = np.array([0.1, 0.4, 0.7]), 5
x = wp.array(start, dtype=float, requires_grad=True)
rate = wp.array([2.0], dtype=float, requires_grad=True)
with wp.Tape() as tape:
    for _ in range(steps):
        wp.launch(step, dim=3, inputs=[x, rate])  # expect: warning[G003] a
tape.backward(grads={x: wp.ones(3, dtype=float)})
value, slope = start, np.zeros(3)
for _ in range(steps):
    grown = 0.1 * value * (1.0 - value) + slope * (1.0 + 0.2 * (1.0 - 2.0 * value))
    value, slope = value + 0.2 * value * (1.0 - value), grown
print("gradient", *rate.grad.numpy())
print("exact", slope.sum())
