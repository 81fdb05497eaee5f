"""Shrink a curve by its curvature with two buffers; the time step is tuned for its area."""

# expect: exit=0
import numpy as np

import engine as wp

SIDE = 10


@wp.kernel
def curvature_flow(
    phi: wp.array2d(dtype=float), dt: wp.array(dtype=float), out: wp.array2d(dtype=float)
):
    i, j = wp.tid()
    if i == 0 or j == 0 or i == phi.shape[0] - 1 or j == phi.shape[1] - 1:
        out[i, j] = phi[i, j]
        return
    gx = 0.5 * (phi[i, j + 1] - phi[i, j - 1])  # expect: warning[G003] a
    gy = 0.5 * (phi[i + 1, j] - phi[i - 1, j])  # expect: warning[G003] a
    laplace = phi[i, j + 1] + phi[i, j - 1] + phi[i + 1, j] + phi[i - 1, j] - 4.0 * phi[i, j]
    out[i, j] = phi[i, j] + dt[0] * laplace / (0.1 + gx * gx + gy * gy)  # expect: warning[G003] a


@wp.kernel
def area_error(phi: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    inside = 1.0 / (1.0 + wp.exp(4.0 * phi[i, j]))
    wp.atomic_add(loss, 0, inside * inside)


grid = np.arange(SIDE) - 0.5 * (SIDE - 1)
distance = np.hypot(*np.meshgrid(grid, grid)) - 3.0
dt = wp.array([0.02], dtype=float, requires_grad=True)
a = wp.array(distance, dtype=float, requires_grad=True)
b = wp.zeros_like(a)
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    for _ in range(6):
        wp.launch(
            curvature_flow, dim=a.shape, inputs=[a, dt], outputs=[b]
        )  # expect: warning[G003] a
        a, b = b, a
    wp.launch(area_error, dim=a.shape, inputs=[a], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy()[0], "d loss / d dt", dt.grad.numpy()[0])
