"""Gradients that mix two evaluations are found when they are read, and not before."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.unit.autograd.watch.programs import (
    Cell,
    F,
    add,
    descend,
    facts,
    floats,
    ones,
    pack,
    square,
    times,
    total,
    unpack,
    watched,
    zeros,
)


@wp.kernel
def clear(g: F):
    g[wp.tid()] = 0.0


@wp.kernel
def decay(x: F, g: F):
    i = wp.tid()
    g[i] += 0.5 * x[i]


@wp.kernel
def step_and_clear(x: F, g: F):
    i = wp.tid()
    x[i] = x[i] - 0.1 * g[i]
    g[i] = 0.0


def play(a: Any, b: Any) -> None:
    """A backward pass of both players' game: both get a gradient."""
    y = zeros(a.size)
    with wp.Tape() as tape:
        wp.launch(times, a.size, [a, b], [y])
    tape.backward(grads=ones(y))


def mixed() -> Any:
    """An array whose gradient is a mixture in all of its elements but the last, which is zero."""
    x, w = floats(1, 2, 3, 4), floats(1, 1, 1, 0)
    play(x, w)
    x.assign([5, 6, 7, 8])
    play(x, w)
    w.grad.zero_()
    assert x.requires_grad
    return x


CLEARED: dict[str, Any] = {
    "zero_": lambda x: x.grad.zero_(),
    "fill_": lambda x: x.grad.fill_(0.0),
    "assign": lambda x: x.grad.assign(np.zeros(4, np.float32)),
    "items": lambda x: x.grad.__setitem__(slice(None), 0.0),
    "numpy": lambda x: x.grad.numpy().fill(0.0),
    "part by part": lambda x: (x.grad[:1].zero_(), x.grad[1:].numpy().fill(0.0)),
    "a kernel": lambda x: wp.launch(clear, 4, [x.grad]),
    "copy": lambda x: wp.copy(x.grad, floats(0, 0, 0, 0, grad=False)),
    "none": lambda x: setattr(x, "grad", None) or setattr(x, "requires_grad", True),
    "anew": lambda x: setattr(x, "grad", wp.zeros(4, dtype=float)),
}


@pytest.mark.parametrize("how", CLEARED.values(), ids=list(CLEARED))
@pytest.mark.host("arrays of NumPy that are views", only=("numpy", "part by part"))
def test_a_mixture_that_is_cleared_before_it_is_read(how: Any) -> None:
    def program() -> None:
        x, w = mixed(), floats(1, 1, 1, 0)
        how(x)
        play(x, w)
        assert x.grad.list() == [1, 1, 1, 0]
        wp.launch(descend, 4, [x, x.grad])

    assert facts(program) == []


READ: dict[str, Any] = {
    "numpy": lambda x: x.grad.numpy(),
    "list": lambda x: x.grad.list(),
    "print": lambda x: str(x.grad),
    "an element": lambda x: x.grad[1],
    "interface": lambda x: np.asarray(x.grad),
    "launch": lambda x: wp.launch(descend, 4, [x, x.grad]),
    "in and out": lambda x: wp.launch(step_and_clear, 4, [x, x.grad]),
    "updated": lambda x: wp.launch(decay, 4, [x, x.grad]),
    "a part updated": lambda x: wp.launch(decay, 2, [x, x.grad[:2]]),
    "command": lambda x: wp.launch(descend, 4, [x, x.grad], record_cmd=True).launch(),
    "struct": lambda x: wp.launch(pack, 4, [x.grad, wp.zeros(4, dtype=Cell)]),
    "copy": lambda x: wp.copy(zeros(4), x.grad),
    "clone": lambda x: wp.clone(x.grad),
    "detach": lambda x: x.grad.detach(),
    "array": lambda x: wp.array(x.grad),
    "assign": lambda x: zeros(4).assign(x.grad),
    "a part": lambda x: x.grad[2:].numpy(),
    "a part in place": lambda x: x.grad[:2].numpy().__iadd__(1.0),
    "strides": lambda x: x.grad[::3].list(),
    "cotangent": lambda x: seeded(x),
    "adjoint": lambda x: wp.launch(
        square, 4, [x], [zeros(4)], adjoint=True, adj_inputs=[zeros(4)], adj_outputs=[x.grad]
    ),
}


def seeded(x: Any) -> None:
    z, y = floats(1, 2, 3, 4), zeros(4)
    with wp.Tape() as tape:
        wp.launch(square, 4, [z], [y])
    tape.backward(grads={y: x.grad})


@pytest.mark.parametrize("how", READ.values(), ids=list(READ))
def test_a_mixture_that_is_read(how: Any) -> None:
    def program() -> None:
        x = mixed()
        how(x)
        x.grad.zero_()

    assert [(f.kind, f.array, f.passes) for f in facts(program)] == [("values", "a", 1)]


def test_on_a_tape_too() -> None:
    def program() -> None:
        x, y = mixed(), zeros(4)
        with wp.Tape():
            wp.launch(square, 4, [x.grad], [y])

    assert [f.kind for f in facts(program)] == ["values"]


NOT_READ: dict[str, Any] = {
    "never": lambda x: None,
    "the other part": lambda x: x.grad[3:].list(),
    "an element": lambda x: x.grad[3],
    "after a part was cleared": lambda x: (x.grad[:2].zero_(), x.grad[:2].list()),
    "the array itself": lambda x: (x.numpy(), wp.clone(x)),
    "into it": lambda x: wp.copy(x.grad, zeros(4)),
    "a copy of the array": lambda x: copy.deepcopy(x),
}


@pytest.mark.parametrize("how", NOT_READ.values(), ids=list(NOT_READ))
def test_what_does_not_read_it(how: Any) -> None:
    assert facts(lambda: how(mixed())) == []


def test_a_part_is_cleared_and_the_rest_is_read() -> None:
    def program() -> None:
        x = mixed()
        x.grad[:2].numpy()[...] = 0.0
        x.grad.numpy()

    assert [f.kind for f in facts(program)] == ["values"]


@pytest.mark.parametrize("how", ["launch", "numpy", "views"])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.host("arrays of NumPy that are views", only=("views",))
def test_players_who_take_turns(how: str, steps: int) -> None:
    """Each clears its own gradients before its passes, and leaves alone what the other adds."""

    def program(clears: bool) -> Any:
        def run() -> None:
            a, b = floats(1, 2, 3), floats(3, 1, 2)
            views = {p: (p.numpy(), p.grad.numpy()) for p in (a, b)} if how == "views" else {}
            for _ in range(3):
                for p, count in ((a, 1), (b, steps)):
                    for _ in range(count):
                        if clears and how == "views":
                            views[p][1][...] = 0.0
                        elif clears:
                            p.grad.zero_()
                        play(a, b)
                        if how == "launch":
                            wp.launch(descend, 3, [p, p.grad])
                        elif how == "numpy":
                            p.assign(p.numpy() - 0.1 * p.grad.numpy())
                        else:
                            value, gradient = views[p]
                            value -= 0.1 * gradient

        return run

    assert facts(program(True)) == []
    assert {(f.kind, f.array) for f in facts(program(False))} == {("values", "a"), ("values", "b")}


def test_players_who_share_one_array() -> None:
    def program() -> None:
        p = floats(1, 2, 3, 4, 5, 6)
        for _ in range(3):
            for mine in (p[:3], p[3:]):
                mine.grad.zero_()
                play(p[:3], p[3:])
                wp.launch(descend, 3, [mine, mine.grad])

    assert facts(program) == []


def test_what_is_passed_on_counts_where_it_went() -> None:
    """The hidden array's gradient is left over: wrong for the weights, and they alone are read."""

    def program(read: str) -> Any:
        def run() -> None:
            w, v, h, loss = floats(1, 2, 3), floats(1, 2, 3), zeros(), zeros(1)
            for _ in range(2):
                h.zero_()
                with wp.Tape() as tape:
                    wp.launch(add, 3, [w], [h])
                    wp.launch(total, 3, [h], [loss])
                    wp.launch(total, 3, [v], [loss])
                tape.backward(loss)
                wp.clone(w.grad if read == "w" else v.grad)
                w.grad.zero_()
                v.grad.zero_()

        return run

    assert [(f.kind, f.array) for f in facts(program("w"))] == [("passed on", "h")]
    assert facts(program("v")) == []


def test_a_long_loop_that_reads_nothing_keeps_little() -> None:
    with watched() as found:
        a, b = floats(1, 2, 3), floats(3, 1, 2)
        for k in range(6):
            play(a, b)
            a.assign([k, k, k])
            b.grad.zero_()
        a.grad.list()
    assert [(f.kind, f.array, f.passes) for f in found] == [("values", "a", 5)]


def test_structs() -> None:
    def program(read: bool) -> Any:
        def run() -> None:
            c, y = wp.zeros(3, dtype=Cell, requires_grad=True), zeros()
            for k in range(2):
                wp.launch(pack, 3, [floats(k, 1, 2), c])
                with wp.Tape() as tape:
                    wp.launch(unpack, 3, [c, y])
                tape.backward(grads=ones(y))
                if read:
                    c.grad.list()

        return run

    assert facts(program(False)) == []
    assert [(f.kind, f.array) for f in facts(program(True))] == [("values", "c")]
