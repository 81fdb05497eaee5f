"""Rosenbrock's valley by operators of PyTorch, in a graph that `torch.compile` makes whole.

The kernel and its adjoint are operators by `torch.library.custom_op`, each with a fake form that
tells shapes, and the one is registered as the derivative of the other. `adtool check` verifies them
where they are called outside of the compiled graph.
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


@torch.library.custom_op("samples::valley", mutates_args=())
def valley_op(xy: torch.Tensor) -> torch.Tensor:
    z = wp.zeros(len(xy), dtype=float)
    wp.launch(valley, dim=len(xy), inputs=[wp.from_torch(xy.detach(), dtype=wp.vec2)], outputs=[z])
    return wp.to_torch(z)


@torch.library.custom_op("samples::valley_backward", mutates_args=())
def valley_backward(xy: torch.Tensor, adj_z: torch.Tensor) -> torch.Tensor:
    place = wp.from_torch(xy.detach(), dtype=wp.vec2)
    adj_xy = wp.zeros_like(place)
    wp.launch(valley, dim=len(xy), inputs=[place], outputs=[wp.zeros(len(xy), dtype=float)],
              adj_inputs=[adj_xy], adj_outputs=[wp.from_torch(adj_z.contiguous())],
              adjoint=True)  # fmt: skip
    return wp.to_torch(adj_xy)


@valley_op.register_fake
def _(xy):
    return xy.new_empty(len(xy))


@valley_backward.register_fake
def _(xy, adj_z):
    return torch.empty_like(xy)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, adj_z):
    return valley_backward(*ctx.saved_tensors, adj_z)


valley_op.register_autograd(backward, setup_context=setup_context)


@torch.compile(fullgraph=True)
def total(xy):
    return valley_op(xy).sum()


def main():
    start = np.random.default_rng(42).normal(size=(POINTS, 2))
    xy = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    (plain,) = torch.autograd.grad(valley_op(xy).sum(), xy)
    (compiled,) = torch.autograd.grad(total(xy), xy)
    assert torch.equal(plain, compiled)
    search = torch.optim.LBFGS([xy], max_iter=400, line_search_fn="strong_wolfe",
                               tolerance_change=1e-12)  # fmt: skip

    def height():
        search.zero_grad()
        found = total(xy)
        found.backward()
        return found

    first = height().item()
    search.step(height)
    last = height().item()
    where = xy.detach().numpy()
    print(f"height {first:.1f} -> {last:.2e} at {where.mean(0)}")
    assert last < 1e-4 and np.abs(where - 1.0).max() < 0.02


if __name__ == "__main__":
    main()
