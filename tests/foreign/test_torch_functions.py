"""Functions of PyTorch with a backward of their own: the right ones pass, spoiled ones do not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from adtool.job import CheckOptions, Target  # noqa: E402
from adtool.rules.g003_overwritten_array import OverwrittenArray  # noqa: E402
from adtool.session import Session  # noqa: E402
from engine.autograd import TapeResult  # noqa: E402
from tests.foreign.torch_right import CASES, Cube, Product, _some  # noqa: E402
from tests.foreign.torch_watched import launches, passed, verdicts  # noqa: E402

Function = torch.autograd.Function


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


@pytest.mark.parametrize("case", CASES)
def test_right_ones_pass(case) -> None:
    cls, arguments = CASES[case]
    args = arguments()
    (launch,) = launches(lambda: passed(cls.apply(*args)))
    assert launch.kernel == cls.__name__ and launch.pairs
    assert {p.verdict for p in launch.pairs} == {"pass"}, launch.pairs
    assert launch.by_hand.missing == () and launch.by_hand.changes == ()


def spoiled(cls: type, change: Callable[[tuple], tuple]) -> type:
    """A function whose backward gives something else."""

    def backward(ctx, *grads):
        found = cls.backward(ctx, *grads)
        return change(found if isinstance(found, tuple) else (found,))

    return type("Spoiled", (cls,), {"backward": staticmethod(backward)})


def each(f: Callable[[Any], Any]) -> Callable[[tuple], tuple]:
    return lambda grads: tuple(None if g is None else f(g) for g in grads)


def one_entry(g):
    out = g.clone()
    k = int(out.abs().reshape(-1).argmax())
    out[np.unravel_index(k, out.shape)] *= 1.01
    return out


SPOILS = {
    "times 1.001": each(lambda g: 1.001 * g),
    "sign": each(lambda g: -g),
    "plus one": each(lambda g: g + 1),
    "one entry": each(one_entry),
    "zeros": each(torch.zeros_like),
}
# Of float32 alone less can be told; and large ones take long.
SPOILED = [
    c for c in CASES
    if not c.startswith("Single") and "half" not in c and ("large" not in c or "Soft" in c)
    and "1e5" not in c
]  # fmt: skip
# Two faults of each function, others from one to the next; the rest with the large tables.
FAULTS = [
    pytest.param(case, spoil, id=f"{case}-{spoil}",
                 marks=[pytest.mark.sweep] if (i + k) % len(SPOILS) > 1 else [])
    for i, case in enumerate(SPOILED) for k, spoil in enumerate(SPOILS)
]  # fmt: skip


@pytest.mark.parametrize(("case", "spoil"), FAULTS)
def test_spoiled_ones_fail(case, spoil) -> None:
    cls, arguments = CASES[case]
    args = arguments()
    found = verdicts(lambda: passed(spoiled(cls, SPOILS[spoil]).apply(*args)))
    assert "fail" in found.values(), found


@pytest.mark.parametrize("case", ["Product", "Polar"])
def test_gradients_in_the_wrong_order(case) -> None:
    cls, arguments = CASES[case]
    args = arguments()
    found = verdicts(lambda: passed(spoiled(cls, lambda g: g[::-1]).apply(*args)))
    assert set(found.values()) == {"fail"}


def test_none_for_an_input_that_matters() -> None:
    cls = spoiled(Product, lambda g: (g[0], None))
    (launch,) = launches(lambda: passed(cls.apply(_some(5), _some(5))))
    assert launch.by_hand.missing == ("y",)


def test_a_transposed_gradient() -> None:
    cls, _ = CASES["MatMul"]
    wrong = spoiled(cls, lambda g: (g[0].t().contiguous(), g[1]))
    found = verdicts(lambda: passed(wrong.apply(_some(3, 3), _some(3, 3))))
    assert found == {("a", "out"): "fail", ("b", "out"): "pass"}


def test_a_shape_that_is_summed_up_without_a_word() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, b):
            return x * b

        @staticmethod
        def backward(ctx, grad):
            return grad, grad  # PyTorch sums the second one over its first dimension

    found = verdicts(lambda: passed(Wrong.apply(_some(4, 3), _some(3))))
    assert set(found.values()) == {"fail"}


class Held(Function):
    """Keeps a tensor on the context, and lets others at it."""

    held: Any = None

    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        Held.held = ctx.y
        return ctx.y.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.y


def test_what_was_kept_is_changed_before_the_backward_pass() -> None:
    def run():
        out = Held.apply(_some(4))
        Held.held.mul_(2)
        out.sum().backward()

    (launch,) = launches(run)
    (change,) = launch.by_hand.changes
    assert (change.kind, change.name, change.wrong) == ("saved", "ctx.y", True)


def test_what_was_kept_and_is_left_alone() -> None:
    (launch,) = launches(lambda: passed(Held.apply(_some(4))))
    assert launch.by_hand.changes == () and launch.pairs[0].verdict == "pass"


def test_an_argument_is_changed_without_a_word() -> None:
    class Silent(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    (launch,) = launches(lambda: passed(Silent.apply(_some(4).clone())))
    (change,) = launch.by_hand.changes
    assert (change.kind, change.name) == ("input", "x")
    # `ctx.mark_dirty` belongs there, and not into the backward.
    assert change.span.line == Silent.forward.__code__.co_firstlineno + 1
    tape = TapeResult(0, (launch,))
    (found,) = OverwrittenArray().check(Session(Target("a.py"), CheckOptions(), (tape,)))
    assert found.line == change.span.line and "without ctx.mark_dirty" in found.message


def test_an_argument_that_comes_back_is_changed_without_a_word() -> None:
    class Clamp(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clamp_(min=0)

        @staticmethod
        def backward(ctx, grad):
            return grad

    (launch,) = launches(lambda: passed(Clamp.apply(_some(4).clone() - 1)))
    (change,) = launch.by_hand.changes
    assert change.span.line == Clamp.forward.__code__.co_firstlineno + 1


def test_the_backward_changes_what_it_was_given() -> None:
    class Taking(Function):
        @staticmethod
        def forward(ctx, x):
            return 3 * x

        @staticmethod
        def backward(ctx, grad):
            return grad.mul_(3)

    (launch,) = launches(lambda: Taking.apply(_some(4)))
    assert "cotangent" in [c.kind for c in launch.by_hand.changes]


@pytest.mark.parametrize("ignoring", [lambda g: torch.ones_like(g), torch.abs, torch.sign])
def test_a_loss_whose_backward_ignores_what_it_is_given(ignoring) -> None:
    """It is right for a cotangent of one, which is that of a loss that nothing scales."""

    class Loss(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x**3).sum()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return ignoring(grad) * 3 * x * x

    (launch,) = launches(lambda: (0.5 * Loss.apply(_some(5))).backward())
    (pair,) = launch.pairs
    assert pair.verdict == "fail" and "not linear" in pair.reason


class Leaf(Function):
    """Takes the gradient of its argument for its own memory."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x**2

    @staticmethod
    def backward(ctx, grad):
        own = 2 * ctx.x.detach() * grad
        if ctx.x.is_leaf:  # the program's own
            ctx.x.grad = own.clone() if ctx.x.grad is None else ctx.x.grad + own
        return own


@pytest.mark.parametrize("earlier", [False, True])
def test_a_gradient_that_counts_twice(earlier) -> None:
    x = _some(4).detach().requires_grad_()
    x.grad = torch.ones(4, dtype=x.dtype) if earlier else None
    (launch,) = launches(lambda: Leaf.apply(x).sum().backward())
    assert [(c.kind, c.name) for c in launch.by_hand.changes] == [("leaf", "x")]
    assert launch.pairs[0].verdict == "pass"  # what it returns is right


def test_gradients_that_others_add_are_their_own() -> None:
    x = _some(4).detach().requires_grad_()

    def run() -> None:
        for _ in range(3):
            (Cube.apply(x) + Cube.apply(x) * x).sum().backward()

    for launch in launches(run):
        assert launch.by_hand.changes == () and launch.pairs[0].verdict == "pass"


def test_the_backward_changes_what_was_kept() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.k = torch.full_like(x, 3.0)
            return 3 * x

        @staticmethod
        def backward(ctx, grad):
            out = grad * ctx.k
            ctx.k.mul_(2)
            return out

    def twice() -> None:
        y = Once.apply(_some(4)).sum()
        y.backward(retain_graph=True)
        y.backward()

    # Where the program runs it once, no gradient is wrong.
    for run, wrong in ((lambda: passed(Once.apply(_some(4))), False), (twice, True)):
        (launch,) = launches(run)
        changes = [(c.kind, c.wrong) for c in launch.by_hand.changes]
        assert changes == ([("saved", True)] if wrong else []) + [("kept", wrong)]
        assert launch.pairs[0].verdict == "pass"


def test_wrong_for_cotangents_that_are_not_contiguous() -> None:
    class Raw(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            # As a kernel does that takes a pointer and no strides.
            size = grad.numel()
            memory = grad.as_strided((size,), (1,)) if grad.stride() != (0, 0) else grad
            return 2 * memory.reshape(grad.shape)

    (launch,) = launches(lambda: Raw.apply(_some(3, 4)))
    (pair,) = launch.pairs
    assert pair.verdict == "fail" and "not contiguous" in pair.reason


def test_wrong_where_one_input_is_asked_for_alone() -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            if not ctx.needs_input_grad[1]:
                return x * grad, None
            return y * grad, x * grad

    (launch,) = launches(lambda: Both.apply(_some(4), _some(4)))
    by = {p.input: p for p in launch.pairs}
    assert by["x"].verdict == "fail" and "where only `x` needs" in by["x"].reason
    assert by["y"].verdict == "pass"


def test_a_backward_that_fails_where_one_input_is_asked_for_alone() -> None:
    class Needs(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            if not all(ctx.needs_input_grad):
                raise ValueError("both, please")
            x, y = ctx.saved_tensors
            return y * grad, x * grad

    (launch,) = launches(lambda: Needs.apply(_some(4), _some(4)))
    assert {p.verdict for p in launch.pairs} == {"inconclusive"}
    assert all("both, please" in p.reason for p in launch.pairs)


def test_an_error_of_the_engine_is_told_in_one_line() -> None:
    import engine as wp

    class Sharing(Function):
        @staticmethod
        def forward(ctx, x):
            return 3 * x

        @staticmethod
        def backward(ctx, grad):
            own = wp.from_torch(torch.zeros(grad.shape, dtype=grad.dtype), requires_grad=True)
            if not grad.is_contiguous():
                own.grad = wp.zeros(7, dtype=wp.float64)
            return 3 * grad

    (launch,) = launches(lambda: Sharing.apply(_some(4)))
    (pair,) = launch.pairs
    assert "raises LaunchError E206: the gradient does not fit the array" in pair.reason
    assert "|" not in pair.reason and "-->" not in pair.reason


def test_a_wrong_count_of_gradients() -> None:
    class Short(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad

    (launch,) = launches(lambda: Short.apply(_some(4), _some(4)))
    assert {p.verdict for p in launch.pairs} == {"fail"}
    assert "incorrect number of gradients" in launch.pairs[0].reason


def test_nan_at_zero() -> None:
    class Root(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.sqrt()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad / (2 * y)

    x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
    assert verdicts(lambda: Root.apply(x)) == {("x", "y"): "nan"}


@pytest.mark.parametrize("size", [6, 3000])
def test_intended_errors_are_errors(size) -> None:
    class Straight(Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad):
            return grad

    assert set(verdicts(lambda: Straight.apply(_some(size))).values()) == {"fail"}


def test_results_of_what_counts_by_itself() -> None:
    count = itertools.count(1)

    class Noisy(Function):
        @staticmethod
        def forward(ctx, x):
            return x * next(count)

        @staticmethod
        def backward(ctx, grad):
            return grad

    assert set(verdicts(lambda: Noisy.apply(_some(4))).values()) == {"nondeterministic"}


def test_what_reads_a_setting_that_has_changed() -> None:
    setting = [1.0]

    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * setting[0]

    def run():
        passed(Scaled.apply(_some(4)))
        setting[0] = 2.0

    (launch,) = launches(run)
    assert launch.pairs[0].verdict == "inconclusive"
    assert "has changed" in launch.pairs[0].reason


# ---- second derivatives


def test_second_derivatives() -> None:
    found = verdicts(lambda: Cube.apply(_some(4)), order=2)
    assert found == {
        ("x", "out"): "pass", ("x", "adj_x"): "pass", ("adj_out", "adj_x"): "pass",
    }  # fmt: skip


def test_second_derivatives_that_are_cut() -> None:
    class Cut(Cube):
        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x.detach() ** 2 * grad

    found = verdicts(lambda: Cut.apply(_some(4)), order=2)
    assert found[("x", "adj_x")] == "fail" and found[("adj_out", "adj_x")] == "pass"


def test_once_differentiable() -> None:
    class Once(Cube):
        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    (launch,) = launches(lambda: Once.apply(_some(4)), order=2)
    assert launch.no_second and [p.verdict for p in launch.pairs] == ["pass"]


# ---- what is looked at
