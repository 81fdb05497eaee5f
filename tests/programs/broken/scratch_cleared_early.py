"""Beam hardening in tomography: attenuation along rays, cleared for the next view too soon."""

# expect: exit=1
import numpy as np

import engine as wp

CELLS = 15
RAYS = 9


@wp.kernel
def integrate_rays(
    density: wp.array(dtype=float), path: wp.array2d(dtype=float), depth: wp.array(dtype=float)
):
    ray = wp.tid()
    total = float(0.0)
    for cell in range(density.shape[0]):
        total += path[ray, cell] * density[cell]
    depth[ray] = total


@wp.kernel
def detector_error(
    depth: wp.array(dtype=float), counts: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    ray = wp.tid()
    d = wp.exp(-depth[ray]) - counts[ray]  # expect: G003 a
    wp.atomic_add(loss, 0, d * d)


rng = np.random.default_rng(17)
truth = rng.uniform(0.0, 0.3, CELLS)
density = wp.full(CELLS, 0.1, dtype=float, requires_grad=True)
depth = wp.zeros(RAYS, dtype=float, requires_grad=True)

for view in range(5):
    lengths = rng.uniform(0.0, 1.0, (RAYS, CELLS))
    path = wp.array(lengths, dtype=float)
    counts = wp.array(np.exp(-lengths @ truth), dtype=float)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(integrate_rays, dim=RAYS, inputs=[density, path], outputs=[depth])
        wp.launch(detector_error, RAYS, [depth, counts], [loss])  # expect: G003 a
    depth.fill_(0.0)  # expect: G003 a
    tape.backward(loss)
    density.assign(np.maximum(density.numpy() - 0.02 * density.grad.numpy(), 0.0))
    tape.zero()
    print(view, "loss", loss.numpy()[0])
