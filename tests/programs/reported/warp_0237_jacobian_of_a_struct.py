"""Rows of a Jacobian by one backward pass each; the arrays are fields of a struct.

Issue: 237
There: every row was zero.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.struct
class Material:
    young: wp.array(dtype=float)
    lame: wp.array(dtype=float)


@wp.kernel
def convert(m: Material, poisson: float):
    i = wp.tid()
    m.lame[i] = m.young[i] * m.young[i] * poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson))


young = np.array([1.0, 2.0, 3.0])
m = Material()
m.young = wp.array(young, dtype=float, requires_grad=True)
m.lame = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(convert, dim=3, inputs=[m, 0.3])
rows = []
for k in range(3):
    row = np.zeros(3)
    row[k] = 1.0
    tape.backward(grads={m.lame: wp.array(row, dtype=float)})
    rows.append(tape.gradients[m.young].numpy().copy())
    tape.zero()
print("gradient", *np.ravel(rows))
print("exact", *np.diag(2.0 * young * 0.3 / (1.3 * 0.4)).ravel())
