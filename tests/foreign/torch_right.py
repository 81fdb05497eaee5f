"""Functions of PyTorch whose backward is right, each with arguments to call it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd import Function


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


class Product(Function):
    """In the newer of two styles."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return y * grad, x * grad


class MatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b.T, a.T @ grad


class Linear(Function):
    """Asks which gradients are needed."""

    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        out = x @ weight.T
        return out if bias is None else out + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = grad @ weight
        if ctx.needs_input_grad[1]:
            gw = grad.T @ x
        if bias is not None and ctx.needs_input_grad[2]:
            gb = grad.sum(0)
        return gx, gw, gb


class SumOfSquares(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Polar(Function):
    """Two results."""

    @staticmethod
    def forward(ctx, x, y):
        r, phi = torch.hypot(x, y), torch.atan2(y, x)
        ctx.save_for_backward(x, y, r)
        return r, phi

    @staticmethod
    def backward(ctx, grad_r, grad_phi):
        x, y, r = ctx.saved_tensors
        return (
            grad_r * x / r - grad_phi * y / r**2,
            grad_r * y / r + grad_phi * x / r**2,
        )


class TwoOrNone(Function):
    """Cotangents may be None."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.exp()

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        out = torch.zeros_like(x)
        if first is not None:
            out = out + first * x.cos()
        if second is not None:
            out = out + second * x.exp()
        return out


class Exp(Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * grad


class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        s = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx, grad):
        (s,) = ctx.saved_tensors
        return s * (grad - (grad * s).sum(-1, keepdim=True))


class Norm(Function):
    @staticmethod
    def forward(ctx, x):
        n = x.norm()
        ctx.save_for_backward(x, n)
        return n

    @staticmethod
    def backward(ctx, grad):
        x, n = ctx.saved_tensors
        return grad * x / n


class Conv(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return F.conv2d(x, weight, padding=1)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return (
            torch.nn.grad.conv2d_input(x.shape, weight, grad, padding=1),
            torch.nn.grad.conv2d_weight(x, weight.shape, grad, padding=1),
        )


class Clamp(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward((x >= low) & (x <= high))
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None


class Gather(Function):
    """An integer argument, by which there is no derivative."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.size = x.shape[0]
        return x[index]

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return torch.zeros(ctx.size, dtype=grad.dtype).index_add_(0, index, grad), None


class AddInPlace(Function):
    """Changes an argument, and says so."""

    @staticmethod
    def forward(ctx, x, y):
        x.add_(y)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


class TopOne(Function):
    """A result without a derivative."""

    @staticmethod
    def forward(ctx, x):
        value, index = x.max(0)
        ctx.mark_non_differentiable(index)
        ctx.save_for_backward(index)
        ctx.size = x.shape[0]
        return value, index

    @staticmethod
    def backward(ctx, grad, _):
        (index,) = ctx.saved_tensors
        out = torch.zeros(ctx.size, dtype=grad.dtype)
        out[index] = grad
        return out


class Broadcast(Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b

    @staticmethod
    def backward(ctx, grad):
        return grad, grad.sum(0)


class Dropout(Function):
    """Draws random numbers."""

    @staticmethod
    def forward(ctx, x, p):
        mask = (torch.rand(x.shape) > p).to(x.dtype) / (1 - p)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask, None


class LogSumExp(Function):
    """Keeps its own numbers on the context, which is allowed."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return (x * scale).logsumexp(-1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return ctx.scale * grad.unsqueeze(-1) * (ctx.scale * x).softmax(-1), None


class NoDependence(Function):
    """None where the derivative is zero."""

    @staticmethod
    def forward(ctx, x, unused):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad, None


class Single(Function):
    """Computes in float32, whatever it is given."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.float().sin().to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.float().cos().to(x.dtype)


class Log1pExp(Function):
    """Its gradient is 1 - y, which is 0 where y rounds to 1."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.logaddexp(x, torch.zeros_like(x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (1 - 1 / (1 + torch.exp(x)))


class CrossEntropy(Function):
    """Confident ones are 0 to rounding; their gradients are not."""

    @staticmethod
    def forward(ctx, z, target):
        ctx.save_for_backward(z, target)
        return torch.logsumexp(z, -1) - z.gather(-1, target[:, None])[:, 0]

    @staticmethod
    def backward(ctx, grad):
        z, target = ctx.saved_tensors
        p = torch.softmax(z, -1)
        return grad[:, None] * (p - F.one_hot(target, z.shape[-1])), None


class Cholesky(Function):
    """It reads one triangle, and its gradient is that by symmetric matrices."""

    @staticmethod
    def forward(ctx, s):
        low = torch.linalg.cholesky(s)
        ctx.save_for_backward(low)
        return low

    @staticmethod
    def backward(ctx, grad):
        (low,) = ctx.saved_tensors
        p = torch.tril(low.mT @ grad)
        p = p - 0.5 * torch.diag_embed(torch.diagonal(p, dim1=-2, dim2=-1))
        inv = torch.linalg.inv(low)
        m = inv.mT @ p @ inv
        return 0.5 * (m + m.mT)


class Eigenvalues(Function):
    @staticmethod
    def forward(ctx, a):
        w, v = torch.linalg.eigh(a)
        ctx.save_for_backward(v)
        return w

    @staticmethod
    def backward(ctx, grad):
        (v,) = ctx.saved_tensors
        return (v * grad[..., None, :]) @ v.mT


def _definite(*shape: int, dtype: Any = torch.float64) -> torch.Tensor:
    m = torch.randn(*shape, shape[-1], dtype=dtype)
    return (m @ m.mT + torch.eye(shape[-1], dtype=dtype)).requires_grad_()


def _some(*shape: int, scale: float = 1.0, dtype: Any = torch.float32) -> torch.Tensor:
    return (scale * torch.randn(shape)).to(dtype).requires_grad_()


# Names to the function and what makes its arguments.
CASES: dict[str, tuple[type[Function], Callable[[], tuple[Any, ...]]]] = {
    "Cube": (Cube, lambda: (_some(7),)),
    "Cube, float64": (Cube, lambda: (_some(7, dtype=torch.float64),)),
    "Cube, small": (Cube, lambda: (_some(7, scale=1e-6),)),
    "Cube, large": (Cube, lambda: (_some(7, scale=1e6),)),
    "Cube, 1e5 elements": (Cube, lambda: (_some(100_000),)),
    "Cube, half": (Cube, lambda: (_some(7, dtype=torch.float16),)),
    "Cube, transposed": (Cube, lambda: (_some(3, 4).detach().t().requires_grad_(),)),
    "Cube, scalar": (Cube, lambda: (_some(),)),
    "Cube, empty": (Cube, lambda: (torch.cat([_some(0), _some(3)]),)),
    "Product": (Product, lambda: (_some(5), _some(5))),
    "Product, mixed sizes": (Product, lambda: (_some(5, scale=1e-6), _some(5, scale=1e6))),
    "Product, one asks": (Product, lambda: (_some(5), torch.randn(5))),
    "Log1pExp, saturated": (
        Log1pExp,
        lambda: (torch.tensor([0.3, -60.0, 2.0, 50.0, -1.0]).requires_grad_(),),
    ),
    "CrossEntropy, confident": (
        CrossEntropy,
        lambda: (
            torch.cat([torch.randn(3, 4), torch.tensor([[45.0, 1.0, 0.0, 2.0]])]).requires_grad_(),
            torch.tensor([1, 2, 0, 0]),
        ),
    ),
    "CrossEntropy, of all sizes": (
        CrossEntropy,
        lambda: (_some(12, 5, scale=12.0), torch.arange(12) % 5),
    ),
    "Cholesky": (Cholesky, lambda: (_definite(4),)),
    "Cholesky, a batch": (Cholesky, lambda: (_definite(2, 3),)),
    "Cholesky, float32": (Cholesky, lambda: (_definite(3, dtype=torch.float32),)),
    "Cholesky, large": (Cholesky, lambda: (_definite(20),)),
    "Eigenvalues": (Eigenvalues, lambda: (_definite(4),)),
    "MatMul": (MatMul, lambda: (_some(3, 4), _some(4, 2))),
    "MatMul, large": (MatMul, lambda: (_some(60, 70), _some(70, 50))),
    "Linear": (Linear, lambda: (_some(3, 4), _some(2, 4), _some(2))),
    "Linear, no bias": (Linear, lambda: (_some(3, 4), _some(2, 4))),
    "Linear, frozen": (Linear, lambda: (torch.randn(3, 4), _some(2, 4), _some(2))),
    "SumOfSquares": (SumOfSquares, lambda: (_some(9),)),
    "SumOfSquares, large": (SumOfSquares, lambda: (_some(20_000),)),
    "Polar": (Polar, lambda: (_some(6), _some(6))),
    "TwoOrNone": (TwoOrNone, lambda: (_some(6),)),
    "Exp": (Exp, lambda: (_some(6),)),
    "Softmax": (Softmax, lambda: (_some(3, 5),)),
    "Softmax, large": (Softmax, lambda: (_some(40, 50),)),
    "Norm": (Norm, lambda: (_some(6),)),
    "Conv": (Conv, lambda: (_some(1, 2, 5, 5), _some(3, 2, 3, 3))),
    "Conv, large": (Conv, lambda: (_some(2, 3, 16, 16), _some(4, 3, 3, 3))),
    "Clamp": (Clamp, lambda: (_some(8), -0.5, 0.5)),
    "Gather": (Gather, lambda: (_some(5), torch.tensor([0, 3, 3, 1]))),
    "AddInPlace": (AddInPlace, lambda: (_some(5).clone(), _some(5))),
    "TopOne": (TopOne, lambda: (_some(6),)),
    "Broadcast": (Broadcast, lambda: (_some(4, 3), _some(3))),
    "Dropout": (Dropout, lambda: (_some(50), 0.4)),
    "LogSumExp": (LogSumExp, lambda: (_some(4, 6), 3.0)),
    "NoDependence": (NoDependence, lambda: (_some(5), _some(5))),
    "Single": (Single, lambda: (_some(6),)),
    "Single, float64": (Single, lambda: (_some(6, dtype=torch.float64),)),
}
