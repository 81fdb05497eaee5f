"""Settings: what of it changes once launches are warm."""

from __future__ import annotations

import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
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
    entered,
    floats,
    halve,
    read,
    scale,
    set_and_back,
    square,
    zeros,
)


@change("enable_backward, of all, of a module, of a kernel")
def _() -> Steps:
    """What a launch is recorded with counts, not what holds when its tape runs backward."""
    places = (
        (vars(wp.config), False), (square.module.options, False), (square.options, False),
    )  # fmt: skip
    for options, value in places:
        p, kept = Squares(), Kept()
        yield p.step, [X * X, 2 * X]
        yield kept.step, [X * X, 2 * X]
        with entered(options, "enable_backward", value):
            yield p.step, [X * X, ZERO]
            yield kept.step, [X * X, 2 * X]
            without = Kept()
            yield without.step, [X * X, ZERO]
        yield p.step, [X * X, 2 * X]
        yield without.step, [X * X, ZERO]


@change("tape_snapshots")
def _() -> Steps:
    for how in ("eager", "off"):
        for p in (Squares(), Kept()):
            yield from set_and_back(p, "tape_snapshots", how, [X * X, 2 * X])


@change("native_after")
def _() -> Steps:
    for p in (Squares(), Kept()):
        yield from set_and_back(p, "native_after", -1, [X * X, 2 * X])


@change("num_threads and deterministic")
def _() -> Steps:
    for name, value in (("num_threads", 1), ("deterministic", False), ("deterministic", True)):
        for p in (Squares(), Kept()):
            yield from set_and_back(p, name, value, [X * X, 2 * X])


@change("overwrites")
def _() -> Steps:
    x, y = floats(), zeros()
    fills = False

    def step() -> list[Any]:
        x.assign(X)
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [y])
            if fills:
                x.fill_(9.0)
        try:
            tape.backward(grads={y: ONE})
        except wp.TapeError:
            return [ZERO - 1]
        return [read(x.grad)]

    yield step, [2 * X]
    for fills in (True, False, True):
        for how, want in (
            ("present", 18 * ONE), ("restore", 2 * X), ("error", ZERO - 1), ("warn", 2 * X),
            ("restore", 2 * X),
        ):  # fmt: skip
            wp.config.overwrites = how
            yield step, [want if fills else 2 * X]


@change("overwrites, of a tape that is kept")
def _() -> Steps:
    """What counts is the setting of the backward pass; nothing is known of what came before."""
    p = Kept()
    yield p.step, [X * X, 2 * X]
    with p.tape:
        wp.launch(scale, N, [p.cotangent, p.x, 7.0])
    grad = lambda: p.step()[1:]  # noqa: E731
    for how, want in (("restore", 2 * X), ("present", 14 * ONE), ("warn", 2 * X)):
        wp.config.overwrites = how
        yield grad, [want]


@wp.kernel
def powers(x: F, y: F):
    i = wp.tid()
    a = x[i]
    for _ in range(50):
        a = 0.5 * (a * a + 1.0)
    y[i] = a


@change("limits of what threads save")
def _() -> Steps:
    """A loop of which each iteration is saved, at a fixed point: the gradient is 1.

    Of one thread, since loops of several need Python. Adjoints that save something come to run
    without it only where that was so from the first one on.
    """
    powers.forget()
    x, y, one = floats([1]), zeros(1), np.float32([1])

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(powers, 1, [x], [y])
        try:
            tape.backward(grads={y: one})
        except wp.LaunchError as e:
            return [read(y), e.diagnostics[0].code]
        return [read(y), read(x.grad)]

    before = wp.config.stack_limit_bytes
    yield step, [one, one]
    wp.config.stack_limit_bytes = 16
    yield step, [one, "E209"]
    wp.config.stack_limit_bytes = before
    yield step, [one, one]


@change("limits of what is saved and copied")
def _() -> Steps:
    for name, value in (
        ("stack_limit_bytes", 1), ("journal_limit_bytes", 1), ("snapshot_limit_bytes", 0),
        ("snapshot_exposed_bytes", 1 << 20),
    ):  # fmt: skip
        for p in (Squares(), Kept()):
            yield from set_and_back(p, name, value, [X * X, 2 * X])


@change("the limit of copies, where something is overwritten")
def _() -> Steps:
    x, y = floats(), zeros()

    def step() -> list[Any]:
        x.assign(X)
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [y])
        wp.launch(halve, N, [x])  # off the tape: the hold of the record is to copy
        tape.backward(grads={y: ONE})
        return [[r.inputs_at_record()[0] is None for r in tape.records], read(x.grad)]

    yield step, [[False], X]
    wp.config.snapshot_limit_bytes = 0
    yield step, [[True], X]
    wp.config.snapshot_limit_bytes = 1 << 30
    yield step, [[False], X]


@change("messages of settings")
def _() -> Steps:
    """Each launch and adjoint is told of, as soon as a setting says so, and no longer."""
    p = Squares()

    def told() -> list[Any]:
        out = StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            p.step()
        text = out.getvalue()
        return [text.count("kernel: square"), text.count("NaN") + text.count("nan") > 0]

    yield told, [0, False]
    wp.config.print_launches = True
    yield told, [1, False]
    wp.config.print_launches = False
    yield told, [0, False]
    p.x.fill_(np.nan)
    yield told, [0, False]
    wp.config.verify_fp = True
    yield told, [0, True]
    wp.config.verify_fp = False
    yield told, [0, False]


@change("verify_autograd_array_access")
def _() -> Steps:
    p = Squares()

    def warned() -> list[Any]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            p = Squares()  # marks stay
            with wp.Tape():
                wp.launch(square, N, [p.x], [p.y])
                wp.launch(scale, N, [p.y, p.x, 1.0])
        return ["is being written to" in str(w.message) for w in told]

    yield p.step, [X * X, 2 * X]
    yield warned, []
    wp.config.verify_autograd_array_access = True
    yield warned, [True]
    wp.config.verify_autograd_array_access = False
    yield warned, []
