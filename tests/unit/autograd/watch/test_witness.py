"""A program that is watched does what it does alone, to the bit, and keeps no more alive."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from tests.unit.autograd.watch.programs import (
    F,
    facts,
    floats,
    ones,
    overwrites,
    quiet,
    square,
    square_in_place,
    times,
    total,
    twice,
    watched,
    zeros,
)


@wp.func
def stored(x: F, out: F, i: int):
    out[i] = x[i] * x[i]


@wp.func_grad(stored)
def adj_stored(x: F, out: F, i: int):
    wp.adjoint[x][i] += 2.0 * x[i] * wp.adjoint[out][i]
    out[i] = out[i] + 1.0  # counts its calls


@wp.func_native(
    "out[i] = x[i] * x[i];", "adj_x[i] += 2.f * x[i] * adj_out[i]; out[i] += 1.f;"
)  # fmt: skip
def native(x: F, out: F, i: int): ...


@wp.kernel
def by_hand(x: F, out: F):
    i = wp.tid()
    stored(x, out, i)


@wp.kernel
def in_cpp(x: F, out: F):
    i = wp.tid()
    native(x, out, i)


@wp.kernel
def largest(x: F, out: F):
    i = wp.tid()
    wp.atomic_max(out, 0, x[i])


@wp.kernel
def carried(x: F, y: F):
    i = wp.tid()
    for _ in range(3):
        y[i] = wp.sin(y[i]) * x[i] + y[i]


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    config.overwrites = "restore"


def handwritten(kernel: Any) -> Callable[[], list[Any]]:
    def program() -> list[Any]:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(kernel, 3, [x, y])
            x.fill_(4.0)
        tape.backward(grads=ones(y))
        return [x, y, x.grad, y.grad]

    return program


def mixed() -> list[Any]:
    """Journals, extrema, a retained gradient, NaN and infinities, a signed zero, two passes."""
    x, y, m = floats(1, 2, np.nan, 4), floats(1, 2, 3, 4), zeros(1)
    y.retain_grad = True
    with wp.Tape() as tape:
        wp.launch(carried, 4, [x, y])
        wp.launch(largest, 4, [y, m])
        wp.launch(carried, 4, [x, y])
        x.fill_(3.0)
        wp.launch(square_in_place, 4, [y])
    seed = np.array([1, np.nan, -0.0, np.inf], np.float32)
    for _ in range(2):
        tape.backward(grads={m: np.ones(1, np.float32), y: seed})
    return [x, y, m, x.grad, y.grad, m.grad]


def recorded_function() -> list[Any]:
    x, y, seen = floats(1, 2, 3), zeros(), zeros(grad=False)

    def backward() -> None:
        seen.assign(x.numpy() + seen.numpy())
        x.grad.assign(x.grad.numpy() + 1)

    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        tape.record_func(backward, [x])
        x.fill_(9.0)
    tape.backward(grads=ones(y))
    return [x, y, seen, x.grad, y.grad]


def evaluated_again() -> list[Any]:
    x, y, z = floats(1, 2, 3), zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.launch(times, 3, [x, y], [z])
    for _ in range(3):
        tape.backward(grads=ones(z))
        x.assign(x.numpy() - 0.1 * x.grad.numpy())
    return [x, y, z, x.grad, y.grad, z.grad]


PROGRAMS = {
    "by hand": handwritten(by_hand), "C++": handwritten(in_cpp), "mixed": mixed,
    "function": recorded_function, "again": evaluated_again,
}  # fmt: skip


@pytest.mark.parametrize("mode", ["restore", "present", "warn"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_the_program_is_the_same_to_the_bit(program: Any, mode: Any) -> None:
    config.overwrites = mode

    def bits() -> list[bytes]:
        with quiet():
            return [a.numpy().tobytes() for a in program()]

    alone = bits()
    with watched() as found:
        again = bits()
    assert again == alone
    assert found


def test_warnings_are_those_of_the_program() -> None:
    config.overwrites = "warn"
    told = []
    for watch in (False, True):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            if watch:
                with watched():
                    mixed()
            else:
                mixed()
        told.append([str(w.message) for w in seen])
    assert told[0] == told[1] and told[0]


def test_nothing_of_the_program_is_kept_alive() -> None:
    refs: list[weakref.ref[Any]] = []

    def program() -> None:
        x, y, z = floats(1, 2, 3), zeros(), zeros()
        tape = wp.Tape()
        with tape:
            wp.launch(square, 3, [x], [y])
            wp.launch(square, 3, [y], [z])
            wp.launch(square, 3, [x], [y])
            x.zero_()
        wp.launch(twice, 3, [y], [z])
        for _ in range(2):
            tape.backward(grads=ones(z))
        refs.extend(weakref.ref(a.storage) for a in (x, y, z, x.grad, y.grad, z.grad))

    with wp.capturing(watcher=wp.autograd.Witness()) as capture:
        for _ in range(2):
            program()
        gc.collect()
        assert [r() for r in refs] == [None] * 12
    assert all(t.facts for t in capture.tapes)


def test_an_exception_in_a_pass() -> None:
    def program() -> None:
        def fails() -> None:
            raise ValueError("of the user")

        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            tape.record_func(fails, [y])
        with pytest.raises(ValueError, match="of the user"):
            tape.backward(grads=ones(y))
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        tape.zero()
        x.fill_(7.0)
        tape.backward(grads=ones(y))

    (f,) = overwrites(facts(program))
    assert f.kind == "outside" and f.by.site is not None


def test_nested_captures_find_the_same() -> None:
    with watched() as outer:
        with watched() as inner:
            mixed()
        evaluated_again()
    kinds = [f.kind for f in inner]
    assert kinds and [f.kind for f in outer][: len(kinds)] == kinds
    assert len(outer) > len(inner)


def test_a_pass_after_the_capture() -> None:
    x, y = floats(1, 2, 3), zeros()
    with watched() as found, wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        x.zero_()
    tape.backward(grads=ones(y))
    assert x.grad.list() == [2, 4, 6]
    assert [f.kind for f in found] == ["restored"]  # as it was at the end of the capture


def test_a_tape_from_before_the_capture() -> None:
    x, y = floats(1, 2, 3), zeros()
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        x.zero_()
    with watched() as found:
        tape.backward(grads=ones(y))
    assert x.grad.list() == [2, 4, 6]
    assert found == []


def test_right_programs_are_silent() -> None:
    def program() -> None:
        x, y, z, loss = floats(1, 2, 3), zeros(), zeros(), zeros(1)
        tape = wp.Tape()
        for _ in range(3):
            with tape:
                loss.zero_()
                wp.launch(square, 3, [x], [y])
                wp.launch(times, 3, [x, y], [z])
                wp.launch(total, 3, [z], [loss])
            tape.backward(loss)
            x.assign(x.numpy() - 0.01 * x.grad.numpy())
            tape.reset()

    assert facts(program) == []


def test_tapes_in_threads() -> None:
    def work() -> None:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            x.zero_()
        tape.backward(grads=ones(y))

    with wp.capturing(watcher=wp.autograd.Witness()) as capture:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
            t.join()
    assert [[f.kind for f in t.facts] for t in capture.tapes] == [["restored"]] * 3
