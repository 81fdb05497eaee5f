"""Tangents of functions of PyTorch that are written by hand (`jvp`) are checked, too."""

from __future__ import annotations

import linecache

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.autograd import forward_ad  # noqa: E402

from tests.foreign.torch_right import _some  # noqa: E402
from tests.foreign.torch_watched import launches, passed  # noqa: E402

Function = torch.autograd.Function
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


class Right(Function):
    @staticmethod
    def forward(x, y):
        return x * y**2, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, first, second):
        x, y = ctx.saved_tensors
        return first * y**2 + second, 2 * first * x * y + second

    @staticmethod
    def jvp(ctx, tx, ty):
        x, y = ctx.saved_tensors
        return tx * y**2 + 2 * x * y * ty, tx + ty


class Wrong(Right):
    @staticmethod
    def jvp(ctx, tx, ty):
        x, y = ctx.saved_tensors
        return tx * y**2 + 2.02 * x * y * ty, tx + ty


class Alone(Function):
    """Has no backward."""

    @staticmethod
    def forward(ctx, x, y):
        return x + y, x - y

    @staticmethod
    def jvp(ctx, tx, ty):
        return tx + ty, tx - ty


def _forward(cls, dtype=torch.float64) -> None:
    xs = [_some(4).detach().to(dtype) for _ in "xy"]
    with forward_ad.dual_level():
        cls.apply(*(forward_ad.make_dual(x, torch.ones_like(x)) for x in xs))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("forward", [False, True])
def test_tangents(forward, dtype) -> None:
    def run(cls):
        if forward:
            return lambda: _forward(cls)
        return lambda: passed(
            cls.apply(*(_some(4).detach().to(dtype).requires_grad_() for _ in "xy"))
        )

    (launch,) = launches(run(Right))
    assert {p.verdict for p in launch.pairs} == {"pass"} and len(launch.pairs) == 4
    assert launch.by_hand.gradient == "Right.backward"
    (launch,) = launches(run(Wrong))
    assert [(p.input, p.output) for p in launch.pairs if p.verdict == "fail"] == [("y", "out0")]
    assert launch.by_hand.gradient == "Wrong.jvp"
    assert linecache.getline(launch.span.file, launch.span.line).strip() == "def jvp(ctx, tx, ty):"


def test_what_has_no_backward_and_needs_none() -> None:
    assert launches(lambda: _forward(Alone)) == []
