"""Smooth a height map in one array: every thread reads what its neighbours write."""

# expect: exit=1
import numpy as np

import engine as wp

POINTS = 24
SWEEPS = 4


@wp.kernel
def smooth(height: wp.array(dtype=float)):
    i = wp.tid()
    if i > 0 and i < height.shape[0] - 1:
        left = height[i - 1]  # expect: G009 a
        right = height[i + 1]  # expect: G009 a
        height[i] = 0.25 * left + 0.5 * height[i] + 0.25 * right  # expect: G009 a


@wp.kernel
def roughness(height: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    if i > 0:
        d = height[i] - height[i - 1]
        wp.atomic_add(loss, 0, d * d)


@wp.kernel
def raise_terrain(
    base: wp.array(dtype=float), lift: wp.array(dtype=float), h: wp.array(dtype=float)
):
    i = wp.tid()
    h[i] = base[i] + lift[i // 6]


rng = np.random.default_rng(35)
base = wp.array(rng.normal(size=POINTS), dtype=float)
lift = wp.zeros(4, dtype=float, requires_grad=True)
for iteration in range(3):
    height = wp.zeros(POINTS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(raise_terrain, dim=POINTS, inputs=[base, lift], outputs=[height])
        for _ in range(SWEEPS):
            wp.launch(smooth, dim=POINTS, inputs=[height])
        wp.launch(roughness, dim=POINTS, inputs=[height], outputs=[loss])
    tape.backward(loss)
    lift.assign(lift.numpy() - 0.2 * lift.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
