"""Fit a plane with a robust loss built of nested functions, one of them with its own gradient."""

# expect: exit=0
import numpy as np

import engine as wp

POINTS = 32


@wp.func
def softplus(x: float) -> float:
    return wp.log(1.0 + wp.exp(-wp.abs(x))) + wp.max(x, 0.0)


@wp.func_grad(softplus)
def adj_softplus(x: float, adj_ret: float):
    wp.adjoint[x] += adj_ret / (1.0 + wp.exp(-x))


@wp.func
def smooth_abs(r: float, width: float) -> float:
    s = r / width
    return width * (softplus(s) + softplus(-s))


@wp.func
def residual(p: wp.vec3, plane: wp.vec3) -> float:
    return plane[0] * p[0] + plane[1] * p[1] + plane[2] - p[2]


@wp.kernel
def robust(
    points: wp.array(dtype=wp.vec3), plane: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)
):
    i = wp.tid()
    wp.atomic_add(loss, 0, smooth_abs(residual(points[i], plane[0]), 0.2) / float(points.shape[0]))


rng = np.random.default_rng(78)
cloud = rng.uniform(-1.0, 1.0, (POINTS, 3))
cloud[:, 2] = 0.5 * cloud[:, 0] - 0.2 * cloud[:, 1] + 0.1 + rng.normal(scale=0.02, size=POINTS)
cloud[::7, 2] += 3.0
points = wp.array(cloud, dtype=wp.vec3)
plane = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
for iteration in range(8):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(robust, dim=POINTS, inputs=[points, plane], outputs=[loss])
    tape.backward(loss)
    plane.assign(plane.numpy() - 0.3 * plane.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0], plane.numpy()[0])
