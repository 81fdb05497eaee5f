"""Rosenbrock's valley in PyTorch, by a `torch.autograd.Function` around a kernel.

The forward pass launches the kernel, and the backward pass its adjoint; tensors and arrays have one
memory. L-BFGS descends from all starting points at once.
"""

# needs: torch
# check: passes
import numpy as np
import torch

import engine as wp

POINTS = 64


@wp.kernel
def valley(xy: wp.array(dtype=wp.vec2), z: wp.array(dtype=float)):
    i = wp.tid()
    p = xy[i]
    rise = p[1] - p[0] * p[0]
    z[i] = (1.0 - p[0]) * (1.0 - p[0]) + 100.0 * rise * rise


class Valley(torch.autograd.Function):
    """The height at each point."""

    @staticmethod
    def forward(ctx, xy):
        ctx.save_for_backward(xy)
        z = torch.empty(len(xy))
        wp.launch(valley, dim=len(xy), inputs=[wp.from_torch(xy.detach(), dtype=wp.vec2)],
                  outputs=[wp.from_torch(z)])  # fmt: skip
        return z

    @staticmethod
    def backward(ctx, adj_z):
        (xy,) = ctx.saved_tensors
        place = wp.from_torch(xy.detach(), dtype=wp.vec2)
        adj_xy = wp.zeros_like(place)
        height = wp.zeros(len(xy), dtype=float)
        wp.launch(valley, dim=len(xy), inputs=[place], outputs=[height], adj_inputs=[adj_xy],
                  adj_outputs=[wp.from_torch(adj_z.contiguous())], adjoint=True)  # fmt: skip
        return wp.to_torch(adj_xy)


def main():
    start = np.random.default_rng(42).normal(size=(POINTS, 2))
    xy = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    search = torch.optim.LBFGS([xy], max_iter=400, line_search_fn="strong_wolfe",
                               tolerance_change=1e-12)  # fmt: skip

    def height():
        search.zero_grad()
        total = Valley.apply(xy).sum()
        total.backward()
        return total

    first = height().item()
    search.step(height)
    last = height().item()
    where = xy.detach().numpy()
    print(f"height {first:.1f} -> {last:.2e} at {where.mean(0)}")
    assert last < 1e-4 and np.abs(where - 1.0).max() < 0.02


if __name__ == "__main__":
    main()
