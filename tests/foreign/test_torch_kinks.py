"""Functions of PyTorch at a kink: a slope between the one-sided ones passes, and is shown."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.foreign.torch_watched import launches, passed, verdicts  # noqa: E402


class Relu(torch.autograd.Function):
    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x > 0)
        return x.clamp(min=0)

    @classmethod
    def backward(cls, ctx, grad):
        return cls.factor * grad * ctx.saved_tensors[0]


class Spoiled(Relu):
    factor = 1.01


@pytest.mark.parametrize("size", [10, 5000])
@pytest.mark.parametrize(("cls", "expected"), [(Relu, "kink"), (Spoiled, "fail")])
def test_corners(size: int, cls: type[Relu], expected: str) -> None:
    torch.manual_seed(3)
    x = torch.randn(size).round().requires_grad_()
    assert set(verdicts(lambda: cls.apply(x)).values()) == {expected}


def test_the_entry_at_a_kink_is_the_one_that_is_shown() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    (launch,) = launches(lambda: passed(Relu.apply(x)))
    (pair,) = launch.pairs
    assert pair.verdict == "kink"
    assert (pair.worst.row, pair.worst.col, pair.worst.ad) == (1, 1, 0.0)
    assert pair.worst.oracle == pytest.approx(0.5)
