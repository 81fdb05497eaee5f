"""Two activations share a gradient; nothing has asked for that of the parameter yet."""

# expect: exit=1
import numpy as np

import engine as wp


@wp.kernel
def scaled(x: wp.array(dtype=float), t: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * t


@wp.kernel
def mixed(a: wp.array(dtype=float), b: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.sin(a[i]) * b[i])


x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
a = wp.zeros(3, dtype=float, requires_grad=True)
b = wp.zeros(3, dtype=float, requires_grad=True)
a.grad = b.grad
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(scaled, dim=3, inputs=[x, 1.0], outputs=[a])
    wp.launch(scaled, dim=3, inputs=[x, 0.5], outputs=[b])
    wp.launch(mixed, dim=3, inputs=[a, b], outputs=[loss])
tape.backward(loss)  # expect: G010
print(np.round(x.grad.numpy(), 5))
