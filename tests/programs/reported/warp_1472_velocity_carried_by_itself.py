"""One step of advection: each component of a flow is carried by both.

Issue: 1472
There: the report says that the coupling terms of the components had the wrong sign.
"""

# expect: exit=0
import numpy as np
import warp as wp

N, DT = 6, 0.05


@wp.kernel
def advect(u: wp.array2d(dtype=wp.vec2), then: wp.array2d(dtype=wp.vec2)):
    i, j = wp.tid()
    east = u[(i + 1) % 6, j]
    west = u[(i + 5) % 6, j]
    north = u[i, (j + 1) % 6]
    south = u[i, (j + 5) % 6]
    here = u[i, j]
    slope = 0.5 * (here[0] * (east - west) + here[1] * (north - south))
    then[i, j] = here + 0.05 * (0.3 * (east + west + north + south - 4.0 * here) - slope)


rng = np.random.default_rng(1472)
flow, seed = rng.normal(size=(N, N, 2)), rng.normal(size=(N, N, 2))
u = wp.array(flow, dtype=wp.vec2, requires_grad=True)
then = wp.zeros((N, N), dtype=wp.vec2, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(advect, dim=(N, N), inputs=[u], outputs=[then])
tape.backward(grads={then: wp.array(seed, dtype=wp.vec2)})
exact = seed * (1.0 - 1.2 * DT)
for axis in (0, 1):
    forth, back = np.roll(flow, -1, axis), np.roll(flow, 1, axis)
    exact[..., axis] -= DT * 0.5 * (seed * (forth - back)).sum(axis=-1)
    carried = seed * flow[..., axis : axis + 1]
    exact += DT * 0.3 * (np.roll(seed, 1, axis) + np.roll(seed, -1, axis))
    exact -= DT * 0.5 * (np.roll(carried, 1, axis) - np.roll(carried, -1, axis))
print("gradient", *u.grad.numpy().ravel())
print("exact", *exact.ravel())
