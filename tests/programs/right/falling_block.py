"""One step of the material point method: a block falls as a whole, so that nothing deforms.

All grid nodes have one velocity. The weights of a point's nodes add up to one wherever it lies, so
that its velocity does not depend on its place, nor does its velocity gradient: what the adjoint
has of these is rounding. The deformation gradient is the identity times one plus next to nothing.
"""
# expect: exit=0

import numpy as np

import engine as wp

SIDE = 3
POINTS = SIDE * SIDE
CELLS = 12
CELL = 1.0 / CELLS
DT = 2e-4


@wp.func
def weight(node: int, x: float):
    w = 0.5 * (x - 0.5) ** 2.0
    if node == 0:
        w = 0.5 * (1.5 - x) ** 2.0
    if node == 1:
        w = 0.75 - (x - 1.0) * (x - 1.0)
    return w


@wp.kernel
def stretch(
    gradient: wp.array(dtype=wp.mat22),
    deformation: wp.array(dtype=wp.mat22),
    after: wp.array(dtype=wp.mat22),
):
    p = wp.tid()
    after[p] = (wp.identity(n=2, dtype=float) + DT * gradient[p]) * deformation[p]


@wp.kernel
def gather(
    x: wp.array(dtype=wp.vec2),
    grid: wp.array2d(dtype=wp.vec2),
    v: wp.array(dtype=wp.vec2),
    gradient: wp.array(dtype=wp.mat22),
    x_after: wp.array(dtype=wp.vec2),
):
    p = wp.tid()
    i = int(x[p][0] / CELL - 0.5)
    j = int(x[p][1] / CELL - 0.5)
    f = x[p] / CELL - wp.vec2(float(i), float(j))
    mean = wp.vec2(0.0, 0.0)
    slope = wp.mat22(0.0, 0.0, 0.0, 0.0)
    for k in range(3):
        for m in range(3):
            w = weight(k, f[0]) * weight(m, f[1])
            at = wp.vec2(float(k), float(m)) - f
            mean += w * grid[i + k, j + m]
            slope += 4.0 / CELL * w * wp.outer(grid[i + k, j + m], at)
    v[p] = mean
    gradient[p] = slope
    x_after[p] = x[p] + DT * mean


def main() -> None:
    rng = np.random.default_rng(3)
    places = [(CELL * (4.0 + 0.7 * k), CELL * (5.0 + 0.7 * m))
              for k in range(SIDE) for m in range(SIDE)]  # fmt: skip
    fall = np.zeros((CELLS, CELLS, 2))
    fall[:, :, 1] = -9.8 * DT
    x = wp.array(np.array(places), dtype=wp.vec2, requires_grad=True)
    grid = wp.array(fall, dtype=wp.vec2, requires_grad=True)
    v, x_after = wp.zeros_like(x), wp.zeros_like(x)
    gradient = wp.zeros(POINTS, dtype=wp.mat22, requires_grad=True)
    at_rest = wp.array(1e-17 * rng.normal(size=(POINTS, 2, 2)), dtype=wp.mat22, requires_grad=True)
    deformation = wp.array(np.tile(np.eye(2), (POINTS, 1, 1)), dtype=wp.mat22, requires_grad=True)
    after = wp.zeros_like(deformation)
    with wp.Tape() as tape:
        wp.launch(stretch, POINTS, inputs=[at_rest, deformation], outputs=[after])
        wp.launch(gather, POINTS, inputs=[x, grid], outputs=[v, gradient, x_after])
    tape.backward(grads={
        after: wp.array(rng.normal(size=(POINTS, 2, 2)), dtype=wp.mat22),
        gradient: wp.array(rng.normal(size=(POINTS, 2, 2)), dtype=wp.mat22),
        x_after: wp.array(rng.normal(size=(POINTS, 2)), dtype=wp.vec2),
    })  # fmt: skip
    print("on the grid:", grid.grad.numpy()[5, 6])


main()
