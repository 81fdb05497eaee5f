"""Several samples start from copies of one array; their mean is differentiated.

Issue: 717
There: the gradient was that of one sample: each copy overwrote the gradients of the others.
"""

# expect: exit=0
import numpy as np
import warp as wp

SAMPLES = 3


@wp.kernel
def grow(x: wp.array(dtype=float), factor: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = factor * x[i] * x[i]


@wp.kernel
def add(x: wp.array(dtype=float), share: float, out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, share * x[i])


start = np.array([0.5, 1.0, -2.0])
base = wp.array(start, dtype=float, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    for k in range(SAMPLES):
        sample = wp.zeros(3, dtype=float, requires_grad=True)
        wp.copy(sample, base)
        grown = wp.zeros(3, dtype=float, requires_grad=True)
        wp.launch(grow, dim=3, inputs=[sample, 1.0 + k], outputs=[grown])
        wp.launch(add, dim=3, inputs=[grown, 1.0 / SAMPLES], outputs=[out])
tape.backward(out)
print("gradient", *base.grad.numpy())
print("exact", *(2.0 * start * np.mean([1.0, 2.0, 3.0])))
