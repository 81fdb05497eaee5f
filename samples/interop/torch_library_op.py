"""A custom operator of PyTorch with a gradient that is registered for it.

The forward runs in NumPy. `adtool check` compares `wave_backward` with differences of it.
"""

# needs: torch
# check: passes
import numpy as np
import torch


@torch.library.custom_op("samples::wave", mutates_args=())
def wave(x: torch.Tensor, frequency: float) -> torch.Tensor:
    return torch.from_numpy(np.sin(frequency * x.numpy(force=True)))


@wave.register_fake
def wave_fake(x, frequency):
    return torch.empty_like(x)


def wave_setup(ctx, inputs, output):
    x, ctx.frequency = inputs
    ctx.save_for_backward(x)


def wave_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * ctx.frequency * torch.cos(ctx.frequency * x), None


wave.register_autograd(wave_backward, setup_context=wave_setup)

phase = torch.zeros(1, requires_grad=True)
times = torch.linspace(0.0, 3.0, 50)
seen = torch.sin(2.0 * (times + 0.4))
descent = torch.optim.Adam([phase], lr=0.05)
for _ in range(100):
    descent.zero_grad()
    loss = ((wave(times + phase, 2.0) - seen) ** 2).mean()
    loss.backward()
    descent.step()
print(f"the phase is {phase.item():.3f}")
if abs(phase.item() - 0.4) > 0.01:
    raise SystemExit("the phase was not found")
