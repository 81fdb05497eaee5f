"""Of many equal calls of a function of PyTorch, those that are wrong alone are found, too."""

from __future__ import annotations

import pytest

from engine.foreign import watching

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.foreign.torch_right import Cube  # noqa: E402
from tests.foreign.torch_watched import launches, passed  # noqa: E402

Function = torch.autograd.Function


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


class Clipped(Function):
    """Wrong where it is clipped."""

    @staticmethod
    def forward(ctx, x, most=2.0):
        ctx.save_for_backward(x)
        return x.clamp(max=most) ** 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad, None


class Along(Function):
    """Wrong along the last dimension."""

    @staticmethod
    def forward(ctx, x, dim):
        y = x.softmax(dim)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(0, keepdim=True)), None


def _x(scale: float = 1.0):
    return (scale * torch.rand(4, 4)).requires_grad_()


WRONG = {
    "at some values": lambda k: passed(Clipped.apply(_x(3.0 if k == 3 else 1.0))),
    "at some values, late": lambda k: passed(Clipped.apply(_x(3.0 if k == 11 else 1.0))),
    "by a number of its arguments": lambda k: (
        (Along.apply(_x(), int(k in (2, 3))) * torch.arange(16.0).reshape(4, 4)).sum().backward()
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_call_that_is_wrong_alone(case) -> None:
    def run():
        for k in range(12):
            WRONG[case](k)

    found = launches(run)
    assert [x.index for x in found if x.index in (0, 1, 4)] == [0, 1, 4]
    assert any(p.verdict == "fail" for x in found for p in x.pairs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_right_ones_are_only_looked_at(dtype) -> None:
    def run():
        for _ in range(12):
            passed(Cube.apply(torch.randn(20, dtype=dtype, requires_grad=True)))
            passed(torch.relu(Cube.apply(torch.randn(30, dtype=dtype, requires_grad=True))))

    assert [x.index for x in launches(run)] == [0, 1, 2, 3, 8, 9]


def test_a_call_that_is_asked_for_is_checked() -> None:
    with watching() as watched:
        for _ in range(8):
            passed(Cube.apply(_x()))
    (result,) = watched.results(launches_of=lambda tape: (2, 4))
    assert [x.index for x in result.launches] == [2, 4]


def test_copies_for_it_take_no_more_than_half() -> None:
    """And none from calls that are checked."""
    with watching(limit=100 * 4 * 16) as watched:
        for _ in range(64):
            passed(Cube.apply(_x()))
        for n in range(5, 9):
            passed(Cube.apply(torch.rand(n, requires_grad=True)))
    (result,) = watched.results()
    assert [x.index for x in result.launches] == [0, 1, 4, 16, 64, 65, 66, 67]
    assert not result.unchecked
