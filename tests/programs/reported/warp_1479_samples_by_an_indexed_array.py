"""A kernel reads samples of a table through an indexed array.

Issue: 1479
There: the adjoint crashed, or left the table's gradient at zero.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def weighted(
    samples: wp.indexedarray(dtype=float), w: wp.array(dtype=float), out: wp.array(dtype=float)
):
    i = wp.tid()
    wp.atomic_add(out, 0, w[i] * samples[i] * samples[i])


values, picked, weights = np.linspace(1.0, 6.0, 6), [5, 1, 1], np.array([0.25, 0.5, 1.0])
table = wp.array(values, dtype=float, requires_grad=True)
samples = wp.indexedarray1d(table, [wp.array(picked, dtype=int)])
w = wp.array(weights, dtype=float, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(weighted, dim=3, inputs=[samples, w], outputs=[out])
tape.backward(out)
exact = np.zeros(6)
np.add.at(exact, picked, 2.0 * weights * values[picked])
print("gradient", *table.grad.numpy(), *w.grad.numpy())
print("exact", *exact, *values[picked] ** 2)
