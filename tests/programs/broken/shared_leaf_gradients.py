"""Two sets of springs are fitted; one array serves as the gradient of both."""

# expect: exit=1
import numpy as np

import engine as wp

N = 8


@wp.kernel
def stretch(x: wp.array(dtype=float), k: wp.array(dtype=float), energy: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(energy, 0, 0.5 * k[i] * x[i] * x[i])


@wp.kernel
def twist(a: wp.array(dtype=float), c: wp.array(dtype=float), energy: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(energy, 0, c[i] * (1.0 - wp.cos(a[i])))


rng = np.random.default_rng(5)
x = wp.array(rng.normal(size=N), dtype=float)
a = wp.array(rng.normal(size=N), dtype=float)
k = wp.array(np.ones(N), dtype=float, requires_grad=True)
c = wp.array(np.ones(N), dtype=float, requires_grad=True)
scratch = wp.zeros(N, dtype=float)
k.grad = scratch
c.grad = scratch
energy = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(stretch, dim=N, inputs=[x, k], outputs=[energy])
    wp.launch(twist, dim=N, inputs=[a, c], outputs=[energy])
tape.backward(energy)  # expect: G010
print(k.grad.numpy(), c.grad.numpy())
