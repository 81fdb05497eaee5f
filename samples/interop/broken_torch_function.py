"""A layer of PyTorch whose backward forgot a factor, and that still learns.

The forward squares what it is given before it scales it. The backward gives the derivative by the
scale as it is, and that by the input without the factor 2.
"""

# needs: torch
# check: G001 error def backward(
import torch


class ScaledSquare(torch.autograd.Function):
    """scale x^2."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return scale * x * x

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad * scale * x, (grad * x * x).sum()  # the first: 2 * scale * x


torch.manual_seed(1)
target = torch.tensor([1.0, 4.0, 9.0])
x = torch.ones(3, requires_grad=True)
scale = torch.tensor(1.0, requires_grad=True)
descent = torch.optim.Adam([x, scale], lr=0.05)
for _ in range(200):
    descent.zero_grad()
    loss = ((ScaledSquare.apply(x, scale) - target) ** 2).mean()
    loss.backward()
    descent.step()
print(f"the loss is {loss.item():.2g}: a wrong gradient often still leads somewhere")
