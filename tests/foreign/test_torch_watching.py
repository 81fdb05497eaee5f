"""The watcher sees PyTorch functions where programs call them, and programs run on as before."""

from __future__ import annotations

import linecache
import random
import sys
from typing import Any

import numpy as np
import pytest

from engine.foreign import watching

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.foreign.torch_right import CASES, Cube, Product, _some  # noqa: E402
from tests.foreign.torch_watched import launches, passed, verdicts  # noqa: E402

Function = torch.autograd.Function
cube_apply = Cube.apply


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


def test_not_looked_at_without_a_gradient() -> None:
    def run():
        with torch.no_grad():
            Cube.apply(_some(4))
        Cube.apply(torch.randn(4))

    assert launches(run) == []


def test_complex_numbers_are_left_out_with_words() -> None:
    x = torch.randn(3, dtype=torch.complex64, requires_grad=True)
    with watching() as watched:
        Cube.apply(x)
    (result,) = watched.results()
    assert not result.launches and "complex" in result.unchecked[0].reason


def test_of_equal_calls_a_few_are_checked() -> None:
    def run():
        for _ in range(20):
            Cube.apply(_some(4))
        Cube.apply(_some(5))

    found = launches(run)
    assert [x.index for x in found] == [0, 1, 4, 16, 20]


def test_apply_that_was_taken_before() -> None:
    cube = Cube.apply
    assert set(verdicts(lambda: cube(_some(4))).values()) == {"pass"}


def test_inside_of_a_module() -> None:
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(4))

        def forward(self, x):
            return Product.apply(x, self.w)

    assert verdicts(lambda: passed(Module()(torch.randn(4)))) == {("y", "out"): "pass"}


@torch.library.custom_op("adtool_test::cubed", mutates_args=())
def cubed(x: torch.Tensor) -> torch.Tensor:
    return x**3


cubed.register_fake(torch.empty_like)
cubed.register_autograd(
    lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("call", "left"),
    [(lambda x: Cube.apply(x), "function `Cube`"), (lambda x: x**3, None),
     (lambda x: cubed(x), "function `adtool_test::cubed`")],
    ids=["function", "none", "operator"],
)  # fmt: skip
def test_inside_of_compiled_code_is_told(call, left, backend) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: call(x).sum(), backend=backend)
    with watching() as watched:
        compiled(_some(4)).backward()
        compiled(_some(4)).backward()
    results = list(watched.results())
    told = [u for r in results for u in r.unchecked]
    checked = [x.kernel for r in results for x in r.launches]
    if left is not None and checked:  # this backend calls the operator as without it
        assert backend == "eager" and set(checked) == {"adtool_test::cubed"} and not told
    else:
        assert [u.what for u in told] == ([] if left is None else [left])
        assert all("torch.compile compiled" in u.reason for u in told) and not checked
        assert all(u.site.file == __file__ for u in told)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call", [lambda x: Cube.apply(x), lambda x: cube_apply(x)])
def test_compiled_code_is_one_graph_as_without(call) -> None:
    compiled = torch.compile(lambda x: call(x).sum(), backend="eager", fullgraph=True)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with watching():
        compiled(x).backward()
    assert x.grad.tolist() == [3.0, 12.0]
    compiled(x).backward()  # and when nobody looks any more
    assert x.grad.tolist() == [6.0, 24.0]


def test_the_place_and_the_call() -> None:
    (launch,) = launches(lambda: Cube.apply(_some(4)))
    assert launch.span.file.endswith("torch_right.py") and launch.site.file == __file__
    line = linecache.getline(launch.span.file, launch.span.line)
    assert line.strip() == "def backward(ctx, grad):"
    assert launch.by_hand.gradient == "Cube.backward"


# ---- the program is as it would be


def test_the_state_of_the_program_is_left_alone() -> None:
    def program():
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        cls, _ = CASES["Dropout"]
        x = torch.randn(6, requires_grad=True)
        y = cls.apply(x, 0.5)
        numbers = x._version, y._version, y.detach().tolist()
        y.sum().backward()
        grads = x.grad.tolist()
        return numbers, grads, torch.rand(1).item(), np.random.rand(), random.random()

    plain = program()
    with watching() as watched:
        seen = program()
        list(watched.results())
        after = torch.rand(1).item(), np.random.rand(), random.random()
    assert seen == plain
    program()
    assert after == (torch.rand(1).item(), np.random.rand(), random.random())


def test_no_graph_is_kept(monkeypatch) -> None:
    import gc
    import weakref

    with watching():
        x = _some(4)
        y = Product.apply(x, x)
        node = weakref.ref(y.grad_fn)
        passed(y)
        del y
        gc.collect()
        assert node() is None


def test_what_the_program_raises_goes_through() -> None:
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("mine")

        @staticmethod
        def backward(ctx, grad):
            return grad

    with watching(), pytest.raises(KeyError, match="mine") as caught:
        Failing.apply(_some(4))
    assert caught.traceback[-1].name == "forward"


def test_nothing_is_printed_twice(capfd) -> None:
    class Talking(Function):
        @staticmethod
        def forward(ctx, x):
            print("forward")
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            print("backward")
            return grad

    launches(lambda: passed(Talking.apply(_some(3))))
    assert capfd.readouterr().out.split() == ["forward", "backward"]


def test_afterwards_nothing_is_left() -> None:
    def now() -> list[Any]:
        node = torch.autograd.function.BackwardCFunction
        return [Function.__dict__["apply"], node.__dict__.get("__init__"), *held, vars(keeper)]

    keeper = Keeper()
    keeper.cube = Cube.apply
    held = [Cube.apply]
    before = now()
    with watching():
        during = now()
        assert all(a is not b for a, b in zip(before[:2], during[:2], strict=True))
        assert keeper.cube == Cube.apply != before[2]
        with watching():
            pass
        assert now() == during
    assert now() == before


@pytest.mark.parametrize("where", ["object", "dictionary", "closure", "module"])
def test_a_name_for_apply_that_was_taken_before(where, monkeypatch) -> None:
    keeper, names = Keeper(), {}
    keeper.cube = names["cube"] = inner = Cube.apply
    monkeypatch.setattr(sys.modules[Keeper.__module__], "taken", inner, raising=False)
    calls = {
        "object": lambda: keeper.cube, "dictionary": lambda: names["cube"],
        "closure": lambda: inner, "module": lambda: taken,  # noqa: F821
    }  # fmt: skip
    assert set(verdicts(lambda: calls[where]()(_some(4))).values()) == {"pass"}


def test_a_call_that_cannot_be_seen_is_told() -> None:
    hidden = (Cube.apply,)
    with watching() as watched:
        passed(hidden[0](_some(4)))
        passed(Cube.apply(_some(4)))
    (result,) = watched.results()
    assert [x.index for x in result.launches] == [0]
    (told,) = result.unchecked
    assert told.what == "function `Cube`" and "before adtool replaced it" in told.reason
    assert told.site.file == __file__


class Keeper:
    """Keeps what it is given."""

    cube: Any


# ---- operators


@pytest.fixture(scope="module")
def operators() -> Any:
    @torch.library.custom_op("adtooltest::sine", mutates_args=())
    def sine(x: torch.Tensor, k: float = 2.0) -> torch.Tensor:
        return torch.sin(k * x)

    def setup(ctx, inputs, output):
        ctx.x, ctx.k = inputs

    def sine_backward(ctx, grad):
        return grad * ctx.k * torch.cos(ctx.k * ctx.x), None

    sine.register_autograd(sine_backward, setup_context=setup)

    library = torch.library.Library("adtooltest", "FRAGMENT")
    library.define("wave(Tensor x, Tensor y) -> (Tensor, Tensor)")
    library.impl("wave", lambda x, y: (x * y, x + y), "CompositeExplicitAutograd")

    def wave_backward(ctx, first, second):
        x, y = ctx.saved_tensors
        return first * y + second, first * y + second  # the second one should be x

    torch.library.register_autograd(
        "adtooltest::wave", wave_backward,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs), lib=library,
    )  # fmt: skip
    library.define("mixed(Tensor[] xs, Tensor w, float p=1.0) -> Tensor[]")
    library.impl(
        "mixed", lambda xs, w, p=1.0: [w[k] * x * p for k, x in enumerate(xs)],
        "CompositeExplicitAutograd",
    )  # fmt: skip

    def mixed_backward(ctx, grads):
        w, *xs = ctx.saved_tensors
        gw = torch.stack([(g * x).sum() * ctx.p for g, x in zip(grads, xs, strict=True)])
        wrong = 1.01 if len(xs) == 3 else 1.0  # in the last one of three
        gxs = [g * w[k] * ctx.p for k, g in enumerate(grads)]
        return [*gxs[:-1], gxs[-1] * wrong], gw, None

    def mixed_setup(ctx, inputs, output):
        xs, w, ctx.p = inputs
        ctx.save_for_backward(w, *xs)

    torch.library.register_autograd(
        "adtooltest::mixed", mixed_backward, setup_context=mixed_setup, lib=library
    )
    yield sine, torch.ops.adtooltest.wave, torch.ops.adtooltest.mixed
    library._destroy()


def test_a_custom_op_that_is_right(operators) -> None:
    (launch,) = launches(lambda: passed(operators[0](_some(5))))
    assert launch.kernel == "adtooltest::sine" and launch.by_hand.what == "custom op"
    assert launch.by_hand.gradient == "sine_backward"
    assert [(p.input, p.output, p.verdict) for p in launch.pairs] == [("x", "out", "pass")]
    assert launch.site.file == __file__


def test_an_operator_that_is_wrong(operators) -> None:
    found = verdicts(lambda: passed(operators[1](_some(5), _some(5))))
    assert found == {
        ("x", "out0"): "pass", ("x", "out1"): "pass",
        ("y", "out0"): "fail", ("y", "out1"): "pass",
    }  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_operator_of_lists(operators, count) -> None:
    xs = [_some(4) for _ in range(count)]
    (launch,) = launches(lambda: passed(tuple(operators[2](xs, _some(count), 2.0))))
    wrong = {("xs[2]", "out2")} if count == 3 else set()
    assert {p.input for p in launch.pairs} == {*(f"xs[{k}]" for k in range(count)), "w"}
    assert {(p.input, p.output) for p in launch.pairs if p.verdict != "pass"} == (
        wrong if count > 1 else set()
    )
