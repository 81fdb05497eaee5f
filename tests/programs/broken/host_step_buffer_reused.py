"""A host step with its own backward function, whose input buffer is used again for a preview."""

# expect: exit=1
import numpy as np

import engine as wp

# As in engines that keep no old values.
wp.config.overwrites = "present"

N = 4


@wp.kernel
def heights(p: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = p[i] * 3.0 + 1.0


@wp.kernel
def preview(p: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = 0.5 * p[i]


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i])


p = wp.array([0.5, 1.0, -0.7, 0.1], dtype=float, requires_grad=True)
b = wp.zeros(N, dtype=float, requires_grad=True)
x = wp.zeros(N, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)


def energy_backward() -> None:
    b.grad.assign(b.grad.numpy() + 2.0 * b.numpy() * x.grad.numpy())


tape = wp.Tape()
with tape:
    wp.launch(heights, dim=N, inputs=[p], outputs=[b])
    x.assign(b.numpy() ** 2)
    tape.record_func(energy_backward, arrays=[b, x])
    wp.launch(total, dim=N, inputs=[x], outputs=[loss])
    wp.launch(preview, dim=N, inputs=[p], outputs=[b])  # expect: G003
tape.backward(loss)
print(np.round(p.grad.numpy(), 4))
