"""Rosenbrock's valley by a tape that is recorded once, on the memory of PyTorch's tensors.

`from_torch` shares a tensor's memory and that of its gradient: an optimizer of PyTorch reads what
the tape's backward pass adds up, and changes what the kernel reads.
"""

# needs: torch
# check: passes
import numpy as np
import torch

import engine as wp

POINTS = 64


@wp.kernel
def valley(xy: wp.array(dtype=wp.vec2), total: wp.array(dtype=float)):
    p = xy[wp.tid()]
    rise = p[1] - p[0] * p[0]
    wp.atomic_add(total, 0, (1.0 - p[0]) * (1.0 - p[0]) + 100.0 * rise * rise)


def main():
    start = np.random.default_rng(42).normal(size=(POINTS, 2))
    xy = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    places = wp.from_torch(xy, dtype=wp.vec2)
    total = wp.zeros(1, dtype=float, requires_grad=True)
    search = torch.optim.LBFGS([xy], max_iter=400, line_search_fn="strong_wolfe",
                               tolerance_change=1e-12)  # fmt: skip

    with wp.Tape() as tape:
        wp.launch(valley, dim=POINTS, inputs=[places], outputs=[total])

    def height():
        """Differentiates the tape, and computes the height, at the present places."""
        tape.zero()
        tape.backward(total)
        total.zero_()
        wp.launch(valley, dim=POINTS, inputs=[places], outputs=[total])
        return torch.tensor(total.numpy()[0])

    first = height().item()
    search.step(height)
    last = height().item()
    where = xy.detach().numpy()
    print(f"height {first:.1f} -> {last:.2e} at {where.mean(0)}")
    assert last < 1e-4 and np.abs(where - 1.0).max() < 0.02


if __name__ == "__main__":
    main()
