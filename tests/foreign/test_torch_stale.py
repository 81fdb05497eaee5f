"""Tensors of PyTorch that launches get as they are, in loops that forget `zero_grad`.

Each launch makes arrays over the memory of the tensors: no array lives from one turn to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import engine as wp
from engine.foreign import watching
from tests.unit.autograd.watch.programs import facts, merged, said, square, stale, times, total

torch = pytest.importorskip("torch", reason="torch is not installed")

N = 4
TURNS = 4
Backward = Callable[[Any], None]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


def directly(w: Any) -> None:
    y, loss = (torch.zeros(n, requires_grad=True) for n in (w.numel(), 1))
    with wp.Tape() as tape:
        wp.launch(square, w.numel(), [w], [y])
        wp.launch(total, w.numel(), [y], [loss])
    tape.backward(loss)  # of a turn


def with_arrays(w: Any) -> None:
    y, loss = (wp.zeros(n, dtype=float, requires_grad=True) for n in (w.numel(), 1))
    with wp.Tape() as tape:
        wp.launch(square, w.numel(), inputs=[w], outputs=[y])
        wp.launch(total, w.numel(), inputs=[y], outputs=[loss])
    tape.backward(loss)  # of a turn


def made_anew(w: Any) -> None:
    y, loss = (wp.zeros(n, dtype=float, requires_grad=True) for n in (w.numel(), 1))
    with wp.Tape() as tape:
        wp.launch(square, w.numel(), inputs=[wp.from_torch(w)], outputs=[y])
        wp.launch(total, w.numel(), inputs=[y], outputs=[loss])
    tape.backward(loss)  # of a turn


def made_twice(w: Any) -> None:
    """Two arrays over one tensor on one tape."""
    y, loss = (wp.zeros(n, dtype=float, requires_grad=True) for n in (w.numel(), 1))
    one, two = wp.from_torch(w), wp.from_torch(w)
    with wp.Tape() as tape:
        wp.launch(times, w.numel(), inputs=[one, two], outputs=[y])
        wp.launch(total, w.numel(), inputs=[y], outputs=[loss])
    tape.backward(loss)  # of a turn


WAYS: list[Backward] = [directly, with_arrays, made_anew, made_twice]


class Layer(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A module with a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(N) + 1.0)


def parameter(kind: str) -> Any:
    if kind == "module":
        return Layer().weight
    w = torch.linspace(1.0, 2.0, N, requires_grad=True)
    if kind == "has a gradient":  # PyTorch has made the memory of it
        w.grad = torch.zeros(N)
    return w


KINDS = ["leaf", "module", "has a gradient"]
OPTIMIZERS = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam}


def by_hand(w: Any) -> None:
    with torch.no_grad():
        w -= 0.01 * w.grad


def looped(
    turn: Callable[[Any, Any], None], kind: str = "leaf", make: Any = torch.optim.SGD
) -> Callable[[], None]:
    """A program that makes a parameter and its optimizer, and hands both to each turn of a loop."""

    def program() -> None:
        w = parameter(kind)
        optimizer = make([w], lr=0.01)
        for _ in range(TURNS):
            turn(w, optimizer)

    return program


def found(program: Callable[[], None]) -> list[Any]:
    with watching():
        return merged(stale(facts(program)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=list(OPTIMIZERS))
def test_a_loop_that_never_clears(make: Any, kind: str, way: Backward) -> None:
    def turn(w: Any, optimizer: Any) -> None:
        way(w)
        optimizer.step()

    (fact,) = found(looped(turn, kind, make))
    assert (fact.kind, fact.used, fact.passes) == ("values", True, TURNS - 1)
    assert fact.valid and fact.array == ("one" if way is made_twice else "w")
    assert said(fact.site).endswith("# of a turn") and fact.earlier == fact.site


def test_a_parameter_of_a_module_is_named_where_the_pass_runs() -> None:
    def launched(w: Any, loss: Any) -> None:
        y = torch.zeros(N, requires_grad=True)
        wp.launch(square, N, [w], [y])
        wp.launch(total, N, [y], [loss])

    def program() -> None:
        model = torch.nn.Sequential()
        model.layer = Layer()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(TURNS):
            loss = torch.zeros(1, requires_grad=True)
            with wp.Tape() as tape:
                launched(model.layer.weight, loss)
            tape.backward(loss)
            optimizer.step()

    (fact,) = found(program)
    assert (fact.array, fact.valid, fact.used) == ("model.layer.weight", True, True)


@pytest.mark.parametrize("way", WAYS)
def test_steps_of_the_host_are_seen(way: Backward) -> None:
    def program() -> None:
        w = parameter("leaf")
        for _ in range(TURNS):
            way(w)
            by_hand(w)

    (fact,) = found(program)
    assert (fact.kind, fact.used) == ("values", True)


CLEARED: dict[str, Callable[[Any, Any], None]] = {
    "to none": lambda optimizer, w: optimizer.zero_grad(set_to_none=True),
    "in place": lambda optimizer, w: optimizer.zero_grad(set_to_none=False),
    "by hand": lambda optimizer, w: w.grad.zero_(),
    "anew": lambda optimizer, w: setattr(w, "grad", torch.zeros(N)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clear", CLEARED.values(), ids=list(CLEARED))
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=list(OPTIMIZERS))
def test_loops_that_clear(make: Any, clear: Any, kind: str, way: Backward) -> None:
    def turn(w: Any, optimizer: Any) -> None:
        way(w)
        optimizer.step()
        clear(optimizer, w)

    assert found(looped(turn, kind, make)) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("none", [True, False])
def test_gradients_of_several_tapes_are_added_up(none: bool, way: Backward) -> None:
    def turn(w: Any, optimizer: Any) -> None:
        optimizer.zero_grad(set_to_none=none)
        for _ in range(3):
            way(w)
        optimizer.step()

    assert found(looped(turn)) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("clear", [True, False])
def test_sums_at_several_points(clear: bool, way: Backward) -> None:
    """A step along gradients of two points is meant; one along those of earlier steps is not."""

    def turn(w: Any, optimizer: Any) -> None:
        start = w.detach().clone()
        if clear:
            optimizer.zero_grad()
        for shift in (0.1, -0.1):
            with torch.no_grad():
                w.copy_(start + shift)
            way(w)
        with torch.no_grad():
            w.copy_(start)
        optimizer.step()

    assert [(f.kind, f.used) for f in found(looped(turn))] == [("values", not clear)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("own", [True, False])
def test_tensors_that_are_made_anew(own: bool, way: Backward) -> None:
    """A tensor that begins with what the gradient of an earlier one was is another one."""

    def program() -> None:
        left = torch.zeros(N)
        for turn in range(20):
            w = torch.full((N,), 1.0 + turn, requires_grad=True)
            if own:
                w.grad = left  # what the program gives it
            way(w)
            torch.optim.SGD([w], lr=0.01).step()
            left = w.grad.clone()
            del w

    assert found(program) == []
