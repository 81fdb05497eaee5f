"""Trace paraxial rays: tiny angles, and a refraction formula that loses its digits."""

# expect: exit=0
import numpy as np

import engine as wp

RAYS = 10


@wp.kernel
def path_difference(  # expect: warning[G011] a
    angle: wp.array(dtype=float), index: wp.array(dtype=float), opd: wp.array(dtype=float)
):
    r = wp.tid()
    inner = angle[r] / index[0]
    # 1 - cos of an angle of 1e-3: three of seven digits are left.
    opd[r] = (
        1.0e6 * index[0] * (1.0 - wp.cos(inner)) / (angle[r] * angle[r])
    )  # expect: warning[G011] a


@wp.kernel
def wavefront_error(opd: wp.array(dtype=float), flat: float, loss: wp.array(dtype=float)):
    r = wp.tid()
    d = opd[r] - flat
    wp.atomic_add(loss, 0, d * d * 1.0e-10)


angles = np.linspace(4.0e-4, 1.5e-3, RAYS)
angle = wp.array(angles, dtype=float)
index = wp.array([1.5], dtype=float, requires_grad=True)
for step in range(3):
    opd = wp.zeros(RAYS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(path_difference, RAYS, [angle, index], [opd])  # expect: warning[G011] a
        wp.launch(wavefront_error, dim=RAYS, inputs=[opd, 3.0e5], outputs=[loss])
    tape.backward(loss)
    print(step, loss.numpy()[0], index.grad.numpy()[0])
    index.assign(index.numpy() - 0.05 * np.sign(index.grad.numpy()))
    tape.zero()
