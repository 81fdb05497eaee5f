"""One layer whose activation is computed by NumPy, straight into the array of the next kernel."""

# expect: exit=1
import numpy as np

import engine as wp

INPUTS, HIDDEN = 6, 4


@wp.kernel
def layer(w: wp.array2d(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for k in range(INPUTS):
        s += w[i, k] * x[k]
    y[i] = s


@wp.kernel
def energy(a: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, a[i] * a[i])


rng = np.random.default_rng(7)
w = wp.array(rng.standard_normal((HIDDEN, INPUTS)), dtype=float, requires_grad=True)
x = wp.array(rng.standard_normal(INPUTS), dtype=float)
y = wp.zeros(HIDDEN, dtype=float, requires_grad=True)
a = wp.zeros(HIDDEN, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(layer, dim=HIDDEN, inputs=[w, x], outputs=[y])
    a.numpy()[:] = np.tanh(y.numpy())  # expect: G004 a
    wp.launch(energy, dim=HIDDEN, inputs=[a], outputs=[loss])  # expect: G004 a
tape.backward(loss)
print(w.grad.numpy())
