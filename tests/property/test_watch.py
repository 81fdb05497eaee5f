"""Random programs under the witness: what is told of them is what is true of their gradients.

Overwrites. A program is a list of operations over parts of a few arrays, and writes between its
two `with` blocks and before its backward pass, which no tape sees. What `"restore"` gives without
those writes is the gradient of what ran, held to differences in float64. A fact of kind `wrong` or
`outside` is there exactly if, at some moment of the pass, some gradient is another one than in the
right pass. So each wrong gradient of a leaf is told of; one of something in between, which reaches
no leaf, may be. In the same sense a fact of kind `restored` is there exactly if `"present"` would
have been wrong.

Gradients that are added to, and tapes that are evaluated again: any sequence of steps, beside a
bookkeeping of its own of what belongs to which values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.autograd import Overwritten, Stale, Witness
from tests.emulated import are_same

T = wp.float64
D = wp.array(dtype=T)
N, ARRAYS, PART = 6, 4, 3
Operation = Callable[[list[Any]], None]


@wp.kernel
def mix(x: D, y: D, out: D):
    i = wp.tid()
    out[i] = wp.sin(x[i]) * wp.cos(y[i]) + T(0.5) * x[i]


@wp.kernel
def product(x: D, y: D, out: D):
    i = wp.tid()
    out[i] = x[i] * y[i]


@wp.kernel
def linear(x: D, out: D):
    i = wp.tid()
    out[i] = T(2.0) * x[i] - x[0]


@wp.kernel
def in_place(x: D, out: D):
    i = wp.tid()
    out[i] = wp.sin(out[i]) * wp.cos(x[i]) + T(0.3)


@wp.kernel
def accumulate(x: D, out: D):
    i = wp.tid()
    out[i] += wp.sin(x[i])


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    config.overwrites = "restore"


def reduced(count: int, whole: int) -> list[Any]:
    """Seeds: some always, the rest in sweeps."""
    return [*range(count), *(pytest.param(k, marks=pytest.mark.sweep)
                             for k in range(count, whole))]  # fmt: skip


# ---- overwrites


def part(rng: np.random.Generator) -> Callable[[list[Any]], Any]:
    """Some elements of one of the arrays."""
    a = int(rng.integers(ARRAYS))
    first, step = [(0, 1), (1, 1), (3, 1), (0, 2), (1, 2), (5, -2)][rng.integers(6)]
    stop = first + PART * step
    key = slice(first, stop if stop >= 0 else None, step)
    return lambda state: state[a][key]


def operation(rng: np.random.Generator) -> Operation:
    x, y, out = part(rng), part(rng), part(rng)
    kind, values = int(rng.integers(10)), rng.uniform(0.5, 1.5, PART)

    def run(s: list[Any]) -> None:
        if kind in (0, 1):
            wp.launch(mix, PART, [x(s), y(s)], [out(s)])
        elif kind == 2:
            wp.launch(product, PART, [x(s), y(s)], [out(s)])
        elif kind == 3:
            wp.launch(linear, PART, [x(s)], [out(s)])
        elif kind == 4:
            wp.launch(in_place, PART, [x(s)], [out(s)])
        elif kind == 5:
            wp.launch(accumulate, PART, [x(s)], [out(s)])
        elif kind == 6:
            wp.copy(out(s), x(s))
        elif kind == 7:
            out(s).assign(values)
        elif kind == 8:
            out(s).fill_(values[0])
        else:
            wp.launch(product, PART, [x(s), x(s)], [out(s)])

    return run


def outside(rng: np.random.Generator) -> Operation:
    out, values, how = part(rng), rng.uniform(0.5, 1.5, PART), int(rng.integers(3))

    def run(s: list[Any]) -> None:
        if how == 0:
            out(s).assign(values)
        elif how == 1:
            out(s).fill_(values[0])
        else:
            unseen(out(s), values)

    return run


def unseen(a: Any, values: Any) -> None:
    """Writes through a NumPy view, which nobody is told of; a GPU has none."""
    if a.device.is_cpu:
        a.numpy()[...] = values
    else:
        a.assign(values)


class Program:
    """Two blocks of operations on one tape, and writes after the last one."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        count = 3 + seed % 8
        self.operations = [operation(rng) for _ in range(count)]
        self.cut = int(rng.integers(count + 1))
        # Off the tape, after its end: nothing there changes what ran.
        self.writes = [outside(rng) for _ in range(int(rng.integers(3)))] if seed % 3 else []
        self.start = rng.uniform(0.5, 1.5, (ARRAYS, N))
        self.weights = rng.uniform(-1.0, 1.0, (ARRAYS, N))
        self.direction = rng.standard_normal((ARRAYS, N))

    def state(self, contents: Any) -> list[Any]:
        return [wp.array(c, dtype=T, requires_grad=True) for c in contents]

    def value(self, shift: float) -> float:
        state = self.state(self.start + shift * self.direction)
        for run in self.operations:
            run(state)
        return float(sum((w * a.numpy()).sum() for w, a in zip(self.weights, state, strict=True)))

    def gradient(self, mode: Any, writes: bool) -> tuple[Any, list[Any]]:
        """Of all arrays, at the end and at each moment of the pass."""
        config.overwrites = mode
        state = self.state(self.start)
        tape, moments = wp.Tape(), []

        def note() -> None:
            moments.append(np.array([a.grad.numpy() for a in state]))

        for some in (self.operations[: self.cut], self.operations[self.cut :]):
            with tape:
                for run in some:
                    tape.record_func(note, [])
                    run(state)
        if writes:
            for run in self.writes:
                run(state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tape.backward(grads=dict(zip(state, self.weights, strict=True)))
        return np.array([a.grad.numpy() for a in state]), moments


def differs(a: Any, b: Any) -> bool:
    return not np.allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", ["present", "restore"])
@pytest.mark.parametrize("seed", reduced(60, 600))
def test_a_wrong_gradient_is_told(seed: int, mode: Any) -> None:
    program = Program(seed)
    right, moments = program.gradient("restore", writes=False)
    h = 1e-6
    slope = (program.value(h) - program.value(-h)) / (2 * h)
    np.testing.assert_allclose((right * program.direction).sum(), slope, rtol=1e-6, atol=1e-7)
    alone, _ = program.gradient(mode, writes=True)
    with wp.capturing(watcher=Witness()) as capture:
        found, seen = program.gradient(mode, writes=True)
    assert are_same(found, alone)
    facts = [f for t in capture.tapes for f in t.facts if isinstance(f, Overwritten)]
    told = [f for f in facts if f.kind in ("wrong", "outside")]
    assert bool(told) == any(map(differs, seen, moments)), facts
    assert differs(found, right) <= bool(told)
    assert all(f.count > 0 and f.gradients and f.launches > 0 for f in told)
    if mode == "restore":
        assert all(f.kind == "outside" for f in told) and bool(told) <= bool(program.writes)
    restored = [f for f in facts if f.kind == "restored"]
    assert all(f.nbytes >= f.count * 8 for f in restored)
    if mode == "restore" and not program.writes:  # what the other setting would have made wrong
        _, present = program.gradient("present", writes=False)
        assert bool(restored) == any(map(differs, present, moments)), facts


# ---- gradients that are added to


class Book:
    """What a gradient is made of: which values of the leaf, on which tape, from which data."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, int, int]] = []
        self.unread: list[str] = []

    def kind(self, part: tuple[int, int, int]) -> str | None:
        """What is wrong with adding to it."""
        if not self.parts:
            return None
        if self.parts[-1][0] != part[0]:
            return "values"
        return "twice" if self.parts[-1] == part else None


@pytest.mark.parametrize("seed", reduced(30, 400))
def test_gradients_that_are_added_to(seed: int) -> None:
    """Random moves, clears, data, reads and passes over two leaves: told as in the books.

    Told of is what the pass before last left, so a mixture is told where it comes about, and
    again at each pass that adds to it at yet other values; all of it once somebody reads it.
    """
    rng = np.random.default_rng(seed)
    leaves = [wp.array(rng.uniform(0.5, 1.5, PART), dtype=T, requires_grad=True) for _ in "ab"]
    data = wp.array(rng.uniform(0.5, 1.5, PART), dtype=T)
    hidden = [wp.zeros(PART, dtype=T, requires_grad=True) for _ in range(2)]
    y = wp.zeros(PART, dtype=T, requires_grad=True)
    books, values, batch, expected = [Book(), Book()], [0, 0], 0, []

    def forward() -> None:
        wp.launch(mix, PART, [leaves[0], leaves[1]], [hidden[0]])
        wp.launch(product, PART, [hidden[0], data], [hidden[1]])
        wp.launch(mix, PART, [hidden[1], data], [y])

    with wp.capturing(watcher=Witness()) as capture:
        tape, number = wp.Tape(), 0
        with tape:
            forward()
        steps = ("move", "clear", "batch", "anew", "pass", "pass", "pass", "read", "nothing")
        for _ in range(20):
            k = int(rng.integers(2))
            step = steps[rng.integers(len(steps))]
            if step == "move":
                if rng.integers(2):
                    leaves[k].assign(rng.uniform(0.5, 1.5, PART))
                else:
                    unseen(leaves[k], rng.uniform(0.5, 1.5, PART))
                values[k] += 1
            elif step == "clear":
                leaves[k].grad.zero_()
                books[k] = Book()
            elif step == "batch":
                data.assign(rng.uniform(0.5, 1.5, PART))
                batch += 1
            elif step == "nothing":
                leaves[k].assign(leaves[k].numpy().copy())
            elif step == "read":
                _read(leaves[k].grad, int(rng.integers(4)))
                expected += [(wrong, k) for wrong in books[k].unread]
                books[k].unread.clear()
            elif step == "anew":
                tape, number = wp.Tape(), number + 1
                with tape:
                    forward()
            else:
                forward()
                # What the other leaf is counts too where the same evaluation is meant.
                for j, book in enumerate(books):
                    part = (values[j], number, hash((values[1 - j], batch)))
                    wrong = book.kind(part)
                    if wrong:
                        book.unread.append(wrong)
                    book.parts.append(part)
                tape.backward(grads={y: np.ones(PART)})
    names = {"leaves[0]": 0, "leaves[1]": 1}
    found = [
        (f.kind, names[f.array])
        for t in capture.tapes for f in t.facts for _ in range(f.passes) if isinstance(f, Stale)
    ]  # fmt: skip
    assert sorted(found) == sorted(expected)


def _read(gradient: Any, how: int) -> None:
    """One of the ways to read at least a part of it."""
    if how == 0:
        gradient.numpy()
    elif how == 1:
        wp.launch(product, 1, [gradient[1:], gradient[1:]], [wp.zeros(1, dtype=T)])
    elif how == 2:
        wp.copy(wp.zeros(PART, dtype=T), gradient)
    else:
        gradient[0]


# ---- tapes that are evaluated again


@pytest.mark.parametrize("seed", reduced(30, 400))
def test_tapes_that_are_evaluated_again(seed: int) -> None:
    """A chain of launches, of which any were run again after a leaf was changed.

    Told exactly if the gradient is not that at the present leaves.
    """
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(2, 5))
    picks = [(int(rng.integers(2 + k)), int(rng.integers(2 + k)), int(rng.integers(3)))
             for k in range(depth)]  # fmt: skip
    again = [bool(rng.integers(4)) for _ in range(depth)] if seed % 3 else [True] * depth
    which = int(rng.integers(2))

    def launches(s: list[Any]) -> list[Callable[[], None]]:
        def one(k: int) -> Callable[[], None]:
            i, j, kind = picks[k]

            def run() -> None:
                if kind == 2:
                    wp.launch(linear, PART, [s[i]], [s[2 + k]])
                else:
                    wp.launch((mix, product)[kind], PART, [s[i], s[j]], [s[2 + k]])

            return run

        return [one(k) for k in range(depth)]

    def made(contents: Any) -> tuple[list[Any], Any]:
        s = [wp.array(c, dtype=T, requires_grad=True) for c in contents]
        s += [wp.zeros(PART, dtype=T, requires_grad=True) for _ in range(depth)]
        with wp.Tape() as tape:
            for run in launches(s):
                run()
        return s, tape

    def gradient(s: list[Any], tape: Any) -> Any:
        tape.zero()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tape.backward(grads={s[-1]: np.linspace(0.5, 1.5, PART)})
        return np.array([a.grad.numpy() for a in s[:2]])

    start, other = rng.uniform(0.5, 1.5, (2, 2, PART))
    now = start.copy()
    now[which] = other[which]
    right = gradient(*made(now))
    with wp.capturing(watcher=Witness()) as capture:
        s, tape = made(start)
        gradient(s, tape)
        s[which].assign(now[which])
        for run, wanted in zip(launches(s), again, strict=True):
            if wanted:
                run()
        found = gradient(s, tape)
    told = [f for f in capture.tapes[0].facts if isinstance(f, Stale)]
    assert all(f.kind == "recompute" and f.by.launch >= 0 for f in told)
    assert differs(found, right) <= bool(told)
    if all(again):
        assert not told
    if told and not differs(found, right):
        # What an adjoint read was old all the same: no gradient came that far.
        assert not all(again)
