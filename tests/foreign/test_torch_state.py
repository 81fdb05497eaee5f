"""Side effects of PyTorch functions are undone after they run again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.foreign.torch_right import _some  # noqa: E402
from tests.foreign.torch_watched import launches, passed  # noqa: E402

Function = torch.autograd.Function
STEPS = 0
TABLE = torch.ones(3)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


class Plain:
    def __init__(self) -> None:
        self.k, self.past = 1.0, [0.0]


class Setting:
    k = 1.0


def _module() -> Any:
    out = torch.nn.Module()
    out.inner = torch.nn.Module()
    out.inner.register_buffer("k", torch.tensor(1.0, dtype=torch.float64))
    return out


def _buffer(m: Any) -> float:
    m.inner.k = m.inner.k + 0.5
    return float(m.inner.k)


def _in_place(m: Any) -> float:
    m.inner.k.add_(0.5)
    return float(m.inner.k)


def _attribute(p: Any) -> float:
    p.k += 0.5
    return float(p.k)


def _first_time(p: Any) -> float:
    p.n = getattr(p, "n", 1.0) + 0.5
    return float(p.n)


def _list(p: Any) -> float:
    p.past[0] += 0.5
    return float(1 + p.past[0])


def _entry(d: Any) -> float:
    d["k"] += 0.5
    return float(d["k"])


def _nested(d: Any) -> float:
    return _attribute(d["inside"])


STATES: dict[str, tuple[Callable[[], Any], Callable[[Any], float]]] = {
    "a buffer": (_module, _buffer),
    "a buffer in place": (_module, _in_place),
    "an attribute": (Plain, _attribute),
    "an attribute that is new": (Plain, _first_time),
    "a list": (Plain, _list),
    "an entry": (lambda: {"k": 1.0}, _entry),
    "what another one has": (lambda: {"inside": Plain()}, _nested),
}


def _function(following: Callable[[Any], float], factor: Callable[[float], float]) -> Any:
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, state):
            ctx.k = following(state)
            return ctx.k * x

        @staticmethod
        def backward(ctx, grad):
            return factor(ctx.k) * grad, None

    return Scaled


@pytest.mark.parametrize("case", STATES)
def test_a_call_that_counts_is_checked(case) -> None:
    made, following = STATES[case]
    state = made()

    def run(factor):
        cls = _function(following, factor)
        return lambda: [passed(cls.apply(_some(4), state)) for _ in range(3)]

    found = launches(run(lambda k: k))
    assert [x.pairs[0].verdict for x in found] == ["pass", "pass"]
    assert following(state) == pytest.approx(3.0)  # the program's own count goes on
    state = made()
    found = launches(run(lambda k: 1.01 * k if k == 2.0 else k))
    assert [x.pairs[0].verdict for x in found] == ["pass", "fail"]


class Global(Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        global STEPS
        STEPS += 1
        Global.calls += 1
        ctx.k = STEPS + 10 * Global.calls + float(TABLE[0]) + Setting.k
        return ctx.k * x

    @staticmethod
    def backward(ctx, grad):
        return ctx.k * grad


def test_globals_and_attributes_of_classes() -> None:
    global TABLE

    def run():
        global TABLE
        for _ in range(2):
            passed(Global.apply(_some(4)))
            TABLE = TABLE + 1
            Setting.k *= 3

    found = launches(run)
    assert [x.pairs[0].verdict for x in found] == ["pass", "pass"]
    assert STEPS == Global.calls == 2 and float(TABLE[0]) == 3.0 and Setting.k == 9.0


def test_a_backward_that_reads_what_has_changed_by_then() -> None:
    """Another call has changed it before the backward of the first one runs."""

    class Stale(Function):
        @staticmethod
        def forward(ctx, x, p):
            ctx.p = p
            p.k += 0.5
            return p.k * x

        @staticmethod
        def backward(ctx, grad):
            return ctx.p.k * grad, None

    p = Plain()

    def run():
        passed(Stale.apply(Stale.apply(_some(4), p), p))

    found = launches(run)
    assert [x.pairs[0].verdict for x in found] == ["fail", "pass"]
    assert "in the program, and another" in found[0].pairs[0].reason


# ---- random numbers of generators


class Noisy(Function):
    @staticmethod
    def forward(ctx, x, draw):
        ctx.e = torch.tensor([draw() for _ in range(4)], dtype=x.dtype) + 1
        return x * ctx.e

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.e, None


def _holder() -> Any:
    out = Plain()
    out.generator = torch.Generator().manual_seed(1)
    out.draw = lambda: torch.rand(1, generator=out.generator).item()
    return out


DRAWS: dict[str, Callable[[], Callable[[], float]]] = {
    "NumPy's": lambda: np.random.default_rng(1).random,
    "NumPy's older ones": lambda: np.random.RandomState(1).random_sample,
    "Python's": lambda: random.Random(1).random,
    "PyTorch's": lambda: _holder().draw,
}


@pytest.mark.parametrize("case", DRAWS)
@pytest.mark.parametrize("captured", [False, True])
def test_generators_of_random_numbers(case, captured) -> None:
    draw = DRAWS[case]()

    class Capturing(Noisy):
        @staticmethod
        def forward(ctx, x):
            return Noisy.forward(ctx, x, draw)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.e

    def run():
        for _ in range(2):
            passed(Capturing.apply(_some(4)) if captured else Noisy.apply(_some(4), draw))

    assert [x.pairs[0].verdict for x in launches(run)] == ["pass", "pass"]
    last = draw()
    draw = DRAWS[case]()
    assert [draw() for _ in range(9)][8] == last  # the program's own go on
