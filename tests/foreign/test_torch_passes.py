"""The program's own backward passes through functions of PyTorch are compared as they ran."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.foreign.torch_right import Cube, _some  # noqa: E402
from tests.foreign.torch_watched import launches, passed  # noqa: E402

Function = torch.autograd.Function


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


def test_what_it_keeps_from_call_to_call_was_wrong_when_the_program_ran() -> None:
    """Only the first call is right; asked again, it is wrong in another way each time."""
    total = torch.zeros(4, dtype=torch.float64)

    class Adding(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return total.add_(2 * x * grad).clone()

    def run():
        for _ in range(2):
            passed(Adding.apply(_some(4)))

    first, second = launches(run)
    assert first.pairs[0].verdict == "inconclusive" and "has changed" in first.pairs[0].reason
    assert (
        second.pairs[0].verdict == "fail"
        and "in the program, and another" in second.pairs[0].reason
    )
    worst = second.pairs[0].worst
    assert worst is not None and abs(worst.ad - worst.oracle) > 1e-3 * abs(worst.oracle)


def test_a_pass_from_one_of_two_results_is_repeated_as_it_was() -> None:
    """Beside a gradient of zeros, the backward forgets the other one; beside None it does not."""

    class Overwriting(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return 2 * x, 3 * x

        @staticmethod
        def backward(ctx, first, second):
            return 2 * first if second is None else 3 * second

    (launch,) = launches(lambda: Overwriting.apply(_some(4))[0].sum().backward())
    assert {p.output: p.verdict for p in launch.pairs} == {"out0": "fail", "out1": "pass"}


class Using(Function):
    @staticmethod
    def forward(ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, grad):
        out = 3 * grad
        grad.zero_()
        return out


def test_what_a_program_gave_is_compared_with_what_it_was_given_then() -> None:
    """The gradient that it is given is gone after the backward that changes it."""
    (launch,) = launches(lambda: Using.apply(_some(4)).backward(torch.ones(4, dtype=torch.float64)))
    assert "cotangent" in [c.kind for c in launch.by_hand.changes]
    assert "changed since" not in launch.pairs[0].reason


def test_the_gradient_that_is_used_up_is_told_once() -> None:
    (launch,) = launches(lambda: Using.apply(_some(4)).sum().backward())
    assert [c.kind for c in launch.by_hand.changes] == ["cotangent"]


def test_what_the_program_saves_in_another_type_is_its_own_affair() -> None:
    def run():
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t: t.bfloat16(), lambda t: t.double()
        )
        with hooks:
            passed(Cube.apply(_some(4)))

    (launch,) = launches(run)
    assert launch.pairs[0].verdict == "pass"


# ---- backward passes that are recorded, to be differentiated again


class Cut(Cube):
    """Right, but its derivative is not."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x.detach() ** 2 * grad


class Once(Cut):
    backward = staticmethod(torch.autograd.function.once_differentiable(Cut.backward))


def _penalised(cls) -> None:
    x = _some(4)
    (g,) = torch.autograd.grad(cls.apply(x).sum(), x, create_graph=True)
    if g.requires_grad:
        g.square().sum().backward()


@pytest.mark.parametrize(("cls", "verdict"), [(Cut, "fail"), (Cube, "pass")])
def test_a_program_that_differentiates_twice(cls, verdict) -> None:
    (launch,) = launches(lambda: _penalised(cls))
    found = {(p.input, p.output): p.verdict for p in launch.pairs}
    assert found[("x", "out")] == "pass" and found[("x", "adj_x")] == verdict
    (launch,) = launches(lambda: passed(cls.apply(_some(4))))
    assert [p.output for p in launch.pairs] == ["out"]


def test_once_is_enough_where_nothing_comes_of_it() -> None:
    def run():
        x = _some(4)
        torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)

    (launch,) = launches(run)
    assert not launch.no_second and [p.verdict for p in launch.pairs] == ["pass"]
