"""A custom operator of PyTorch whose gradient leaves out what is inside of the sine.

The derivative of sin(2 x) is 2 cos(2 x); what is registered gives cos(2 x).
"""

# needs: torch
# check: G001 error def tone_backward(
import torch


@torch.library.custom_op("samples::tone", mutates_args=())
def tone(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(2.0 * x)


def tone_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def tone_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * torch.cos(2.0 * x)  # the factor 2 is missing


tone.register_autograd(tone_backward, setup_context=tone_setup)

x = torch.linspace(0.1, 0.5, 5, requires_grad=True)
tone(x).sum().backward()
print("the gradient is half of what it should be:", [round(g, 3) for g in x.grad.tolist()])
