"""A penalty of an array that the tape never reads: the host looked at its shape alone."""

# expect: exit=0
import numpy as np

import engine as wp

# The penalty is linear in `w`, so its cotangent is 1 for each element.
START = [1.0, 2.0, 3.0]


@wp.kernel
def square(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = x[i] * x[i]


x = wp.array([1.0, 2.0, 3.0], dtype=wp.float64, requires_grad=True)
y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
w = wp.array(START, dtype=wp.float64, requires_grad=True)
wp.launch(square, dim=3, inputs=[w])
with wp.Tape() as tape:
    wp.copy(y, x)
n = w.numpy().shape[0]
tape.backward(grads={y: wp.ones_like(y), w: wp.array(np.ones(n), dtype=wp.float64)})
print(x.grad.numpy(), w.grad.numpy())
