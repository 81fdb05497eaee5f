"""Tapes, and who looks on: what of it changes once launches are warm."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from threading import Thread
from typing import Any

import numpy as np

import engine as wp
from tests.unit.runtime.warm.changes import (
    ONE,
    ZERO,
    F,
    Kept,
    N,
    Squares,
    Steps,
    X,
    change,
    floats,
    halve,
    read,
    scale,
    square,
    total,
    zeros,
)


@change("a tape is reset and records again")
def _() -> Steps:
    x, y, tape = floats(), zeros(), wp.Tape()

    def step() -> list[Any]:
        tape.reset()
        with tape:
            wp.launch(square, N, [x], [y])
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad)]

    yield step, [X * X, 2 * X]
    x.assign(3 * X)
    yield step, [9 * X * X, 6 * X]
    tape.records  # noqa: B018  # is looked at
    yield step, [9 * X * X, 6 * X]


@change("records are looked at between a tape's blocks")
def _() -> Steps:
    x, y, z = floats(), zeros(), zeros()
    look: list[bool] = []

    def step() -> list[Any]:
        x.grad.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(square, N, [x], [y])
        if look:
            assert len(tape.records) == 1
        with tape:
            wp.launch(scale, N, [y, z, 3.0])
        if look:
            assert len(tape.launches) == 2
        tape.backward(grads={z: ONE})
        return [read(z), read(x.grad)]

    yield step, [3 * X * X, 6 * X]
    look.append(True)
    yield step, [3 * X * X, 6 * X]
    look.clear()
    yield step, [3 * X * X, 6 * X]


@change("another cotangent")
def _() -> Steps:
    for p in (Squares(), Kept()):
        yield p.step, [X * X, 2 * X]
        p.cotangent.fill_(3.0)
        yield p.step, [X * X, 6 * X]
        p.cotangent = floats(X, grad=False)
        yield p.step, [X * X, 2 * X * X]
        p.cotangent = 2 * ONE
        yield p.step, [X * X, 4 * X]
        p.cotangent = wp.array(np.repeat(X, 2), dtype=float)[::2]
        yield p.step, [X * X, 2 * X * X]


@change("a loss, then cotangents, then both")
def _() -> Steps:
    x, y, loss = floats(), zeros(), zeros(1)
    how: dict[str, Any] = {"loss": True}

    def step() -> list[Any]:
        x.grad.zero_()
        y.grad.zero_()
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [y])
            wp.launch(total, N, [y], [loss])
        tape.backward(loss if how["loss"] else None, how.get("grads"))
        return [read(loss), read(x.grad)]

    s = np.float32([np.sum(X * X)])
    yield step, [s, 2 * X]
    how = {"loss": False, "grads": {loss: np.float32([3.0])}}
    yield step, [s, 6 * X]
    how = {"loss": True, "grads": {y: 5 * ONE}}
    yield step, [s, 12 * X]
    how = {"loss": True}
    yield step, [s, 2 * X]


@change("somebody captures tapes meanwhile")
def _() -> Steps:
    from engine.tape.capture import capturing

    for p in (Squares(), Kept()):
        yield p.step, [X * X, 2 * X]
        with capturing() as found:

            def counted(p=p, found=found) -> list[Any]:
                before = found.launches
                wp.launch(square, N, [p.x], [p.y])
                return [*p.step(), found.launches - before]

            yield counted, [X * X, 2 * X, 2 if type(p) is Squares else 1]
        assert len(found.tapes) == (4 if type(p) is Squares else 0)
        yield p.step, [X * X, 2 * X]


@change("another thread runs the step")
def _() -> Steps:
    for p in (Squares(), Kept()):

        def elsewhere(p=p) -> list[Any]:
            out: list[Any] = []
            thread = Thread(target=lambda: out.extend(p.step()))
            thread.start()
            thread.join()
            return out

        yield p.step, [X * X, 2 * X]
        yield elsewhere, [X * X, 2 * X]
        yield p.step, [X * X, 2 * X]


@change("a launch raises an error, and all goes on")
def _() -> Steps:
    p = Squares()

    def wrong() -> list[Any]:
        told = []
        for args in ([p.x], [p.x, wp.zeros(N, dtype=int)], [p.x, wp.zeros((2, 2))]):
            try:
                with wp.Tape():
                    wp.launch(square, N, args)
            except wp.LaunchError as e:
                told.append(e.diagnostics[0].code)
        return told

    yield p.step, [X * X, 2 * X]
    yield wrong, ["E201", "E202", "E203"]
    yield p.step, [X * X, 2 * X]


@wp.kernel
def checks(x: F, y: F):
    i = wp.tid()
    wp.expect_neq(x[i], 3.0)
    y[i] = 2.0 * x[i]


@change("expectations fail, or are only told")
def _() -> Steps:
    x, y = floats(X + 10), zeros()

    def step() -> list[Any]:
        out = StringIO()
        x.grad.zero_()
        raised = False
        with redirect_stdout(out), redirect_stderr(out):
            try:
                with wp.Tape() as tape:
                    wp.launch(checks, N, [x], [y])
            except wp.LaunchError:
                raised = True
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad), raised]

    yield step, [2 * (X + 10), 2 * ONE, False]
    x.assign(X)
    yield step, [2 * X, 2 * ONE, True]
    wp.config.expect = "print"
    yield step, [2 * X, 2 * ONE, False]
    wp.config.expect = "raise"
    yield step, [2 * X, 2 * ONE, True]
    x.assign(X + 10)
    yield step, [2 * (X + 10), 2 * ONE, False]


@change("the list of a tape's records is changed")
def _() -> Steps:
    x, y, z = floats(), zeros(), zeros()
    how = ""

    def step() -> list[Any]:
        x.grad.zero_()
        y.grad.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(square, N, [x], [y])
            wp.launch(scale, N, [y, z, 3.0])
        if how == "none":
            tape.records.clear()
        if how == "others":
            tape.records = tape.records[1:]
        if how == "fewer":
            tape.records.pop(0)
        tape.backward(grads={z: ONE})
        return [read(x.grad), read(y.grad)]

    yield step, [6 * X, ZERO]
    for how, want in (
        ("none", [ZERO, ZERO]), ("others", [ZERO, 3 * ONE]), ("fewer", [ZERO, 3 * ONE]),
        ("", [6 * X, ZERO]),
    ):  # fmt: skip
        yield step, want


@change("the list of records is changed, of a tape that overwrites what it read")
def _() -> Steps:
    """Which records read that is known by their numbers, so none may go, or come before others."""
    x, y, z = floats(), zeros(), zeros()
    how: Any = None

    def step() -> list[Any]:
        x.assign(X)
        x.grad.zero_()
        y.grad.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(scale, N, [y, z, 3.0])
            wp.launch(square, N, [x], [y])
            if how is not None:
                wp.launch(halve, N, [x])
        if how is not None:
            tape.backward(grads={y: ONE})
            x.grad.zero_()
            how(tape)
        try:
            tape.backward(grads={y: ONE})
        except wp.TapeError as e:
            return [e.diagnostics[0].code]
        return [read(x.grad)]

    def again(tape: Any) -> None:
        tape.records.pop(0)
        with tape:
            wp.launch(scale, N, [y, z, 3.0])

    def more(tape: Any) -> None:
        with tape:
            wp.launch(scale, N, [z, z, 1.0])

    yield step, [2 * X]
    refused: list[Any] = ["E401"]
    for how, want in (
        (lambda tape: None, [2 * X]), (lambda tape: tape.records.pop(0), refused),
        (lambda tape: tape.records.pop(), refused), (again, refused), (more, [2 * X]),
        (lambda tape: tape.records.reverse(), refused), (lambda tape: tape.records.clear(), [ZERO]),
    ):  # fmt: skip
        yield step, want
    how = None
    yield step, [2 * X]


@change("functions are recorded between launches")
def _() -> Steps:
    x, y, z = floats(), zeros(), zeros()
    factor: list[float] = []

    def own(tape: Any) -> None:
        def backward() -> None:
            y.grad.assign(factor[0] * z.grad.numpy())
            z.grad.zero_()

        z.assign(factor[0] * y.numpy())
        tape.record_func(backward, [y, z])

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [y])
            if factor:
                own(tape)
            else:
                wp.launch(scale, N, [y, z, 2.0])
        tape.backward(grads={z: ONE})
        return [read(z), read(x.grad)]

    yield step, [2 * X * X, 4 * X]
    factor = [3.0]
    yield step, [3 * X * X, 6 * X]
    factor = [5.0]
    yield step, [5 * X * X, 10 * X]
    factor = []
    yield step, [2 * X * X, 4 * X]


@change("launches that no tape is to record")
def _() -> Steps:
    x, y, z = floats(), zeros(), zeros()
    record = True

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [y], record_tape=record)
            wp.launch(scale, N, [y, z, 2.0])
        tape.backward(grads={z: ONE})
        y.grad.zero_()
        return [read(z), read(x.grad)]

    yield step, [2 * X * X, 4 * X]
    record = False
    yield step, [2 * X * X, ZERO]
    record = True
    yield step, [2 * X * X, 4 * X]


@change("several tapes, of which each goes on from another")
def _() -> Steps:
    x, y, z = floats(), zeros(), zeros()
    late: list[bool] = []

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as first:
            wp.launch(square, N, [x], [y])
        with wp.Tape() as second:
            wp.launch(scale, N, [y, z, 2.0])
        if late:
            with first:
                wp.launch(halve, N, [y])
        second.backward(grads={z: ONE})
        first.backward()
        return [read(z), read(x.grad)]

    yield step, [2 * X * X, 4 * X]
    late.append(True)  # y is halved once more, after it was read
    yield step, [2 * X * X, 2 * X]
    late.clear()
    yield step, [2 * X * X, 4 * X]


@change("a device is there for a while", native=False)
def _() -> Steps:
    from tests.backend.cuda.emulated import emulated

    for p in (Squares(), Kept()):
        yield p.step, [X * X, 2 * X]
        with emulated() as (gpu, *_):

            def there(gpu=gpu) -> list[Any]:
                x = wp.array(X, dtype=float, device=gpu, requires_grad=True)
                y = wp.zeros(N, dtype=float, device=gpu, requires_grad=True)
                with wp.Tape() as tape:
                    wp.launch(square, N, [x], [y], device=gpu)
                tape.backward(grads={y: ONE})
                return [y.numpy(), x.grad.numpy()]

            yield p.step, [X * X, 2 * X]
            yield there, [X * X, 2 * X]
            yield p.step, [X * X, 2 * X]
        yield p.step, [X * X, 2 * X]
