"""Print a gradient at several points: all but the first are sums, but no step is made of them."""

# expect: exit=0

import numpy as np

import engine as wp

SIZE = 9


@wp.kernel
def bowl(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, float(i + 1) * x[i] * x[i])


rng = np.random.default_rng(8)
x = wp.array(rng.normal(size=SIZE), dtype=float, requires_grad=True)
for _ in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(bowl, dim=SIZE, inputs=[x], outputs=[loss])
    tape.backward(loss)  # expect: warning[G013]
    print("gradient", x.grad.numpy())
    x.assign(rng.normal(size=SIZE))
