"""Points are drawn to a circle: PyTorch's Adam moves tensors, a kernel gives their gradients.

`from_torch` makes arrays of the tensors' memory, with the tensors' gradients. What a tape adds to
an array's gradient is in `tensor.grad`, and what the optimizer does to a tensor, the next launch
sees.
"""
# needs: torch
# check: passes

import torch

import engine as wp

POINTS = 100
ITERATIONS = 400


@wp.kernel
def misfit(xs: wp.array2d(dtype=float), total: wp.array(dtype=float)):
    """The sum of squares of the distances from the unit circle, squared."""
    i = wp.tid()
    off = xs[i, 0] * xs[i, 0] + xs[i, 1] * xs[i, 1] - 1.0
    wp.atomic_add(total, 0, off * off)


def main() -> None:
    torch.manual_seed(1)
    xs = torch.randn(POINTS, 2, requires_grad=True)
    total = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([xs], lr=0.05)

    points, sum_ = wp.from_torch(xs), wp.from_torch(total)
    with wp.Tape() as tape:
        wp.launch(misfit, dim=POINTS, inputs=[points], outputs=[sum_])
    first = total.item()

    for _ in range(ITERATIONS):
        # It sets `xs.grad` to None: the backward pass begins with zeros, and puts them there.
        optimizer.zero_grad()
        tape.backward(loss=sum_)
        optimizer.step()

    with torch.no_grad():
        total.zero_()
    wp.launch(misfit, dim=POINTS, inputs=[points], outputs=[sum_])
    print(f"misfit {first:.4f} -> {total.item():.2e}")
    if not total.item() < 1.0e-3:
        raise SystemExit("the points are not on the circle")


if __name__ == "__main__":
    main()
