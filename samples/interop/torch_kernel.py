"""Rosenbrock's valley by an operator that is made of a kernel in one line.

`torch_kernel` gives an operator with the adjoint kernel as its backward. With `order=2` it can be
differentiated twice: Newton's method takes each point's Hessian from `torch.func`.
"""

# needs: torch
# check: passes
import numpy as np
import torch

import engine as wp

POINTS = 64


@wp.kernel
def valley(xy: wp.array(dtype=wp.vec2d), z: wp.array(dtype=wp.float64)):
    i = wp.tid()
    p = xy[i]
    rise = p[1] - p[0] * p[0]
    slope = wp.float64(1.0) - p[0]
    z[i] = slope * slope + wp.float64(100.0) * rise * rise


height = wp.torch_kernel(valley, order=2)


def by_gradient(xy):
    """L-BFGS on all points at once."""
    xy.requires_grad_(True)
    search = torch.optim.LBFGS([xy], max_iter=400, line_search_fn="strong_wolfe",
                               tolerance_change=1e-14)  # fmt: skip

    def closure():
        search.zero_grad()
        total = height(xy).sum()
        total.backward()
        return total

    search.step(closure)
    return xy.detach()


def by_curvature(xy, steps=60):
    """Newton's steps, as long as they go down; the matrix is made positive where it is not."""
    rows = torch.eye(2, dtype=xy.dtype)
    for _ in range(steps):
        xy = xy.detach().requires_grad_(True)
        here = height(xy)
        (slope,) = torch.autograd.grad(here.sum(), xy, create_graph=True)
        curve = torch.stack(
            [torch.autograd.grad((slope * r).sum(), xy, retain_graph=True)[0] for r in rows], 1
        )
        values, vectors = torch.linalg.eigh(curve)
        inverse = vectors @ torch.diag_embed(1.0 / values.abs().clamp_min(1e-3)) @ vectors.mT
        step = (inverse @ slope.detach().unsqueeze(-1)).squeeze(-1)
        length = torch.ones(len(xy), 1, dtype=xy.dtype)
        with torch.no_grad():
            for _ in range(20):
                up = height(xy - length * step) > here
                length[up] *= 0.5
            xy = xy - length * step
    return xy.detach()


def main():
    start = torch.tensor(np.random.default_rng(42).normal(size=(POINTS, 2)))
    for way in (by_gradient, by_curvature):
        where = way(start.clone())
        print(f"{way.__name__}: height {height(start).sum():.1f} -> {height(where).sum():.1e} "
              f"at {where.mean(0).numpy()}")  # fmt: skip
        assert (where - 1.0).abs().max() < 1e-3


if __name__ == "__main__":
    main()
