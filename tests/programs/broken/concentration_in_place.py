"""Dilute one sample again and again: every thread divides the same number by its own volume."""

# expect: exit=1
# expect: allow=G003 the array is overwritten, and the engine restores it
import numpy as np

import engine as wp

# Mass is diluted by what flows in, cell by cell.


@wp.kernel
def dilute(volume: wp.array(dtype=wp.float64), plate: wp.array2d(dtype=wp.float64)):
    i = wp.tid()
    plate[-3, -1] /= volume[i]  # expect: G009


volumes = np.array([1.1, 0.9, 1.3])
volume = wp.array(volumes, dtype=wp.float64, requires_grad=True)
plate = wp.array(np.ones((4, 2)), dtype=wp.float64, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(dilute, dim=3, inputs=[volume, plate])
tape.backward(grads={plate: wp.ones_like(plate)})
# The CPU runs its threads in order, so that the gradient belongs to the operations that ran.
np.testing.assert_allclose(volume.grad.numpy(), -1.0 / (volumes.prod() * volumes), rtol=1e-12)
print(volume.grad.numpy())
