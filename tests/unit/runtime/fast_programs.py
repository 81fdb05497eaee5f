"""Programs for which every fast path has to give what the plain one gives: one table.

Each gives a trace: what its arrays and gradients hold, bit for bit, and what its tapes remember.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import engine as wp
from engine.diagnostics import EngineError
from tests.unit.runtime import copy_programs, sequences
from tests.unit.runtime.launching import grid, in_place, made, scale, total, turns
from tests.unit.runtime.random_launches import Launches, OneTape, both
from tests.unit.tape import passes, unseen_sequences

Iteration = Callable[[], Any]
Repeat = Callable[[Iteration], Iteration]
# How the iterations of a program are repeated (by a call, by a graph) is of the path.
Program = Callable[[Repeat], list[Any]]

RANDOM = int(os.environ.get("ENGINE_LAUNCHED_PROGRAMS", "40"))


def launches(n: int) -> dict[str, Callable[[], list[Any]]]:
    """Each gives arrays whose contents and gradients are to be the same in all ways."""

    def several() -> list[Any]:
        x, y, loss = made(n), made(n), wp.zeros(1, dtype=float, requires_grad=True)
        for _ in range(4):
            tape = wp.Tape()
            with tape:
                wp.launch(scale, n, [x, y, 2.0])
                wp.launch(scale, dim=(n,), inputs=(y,), outputs=(x, 0.5))
                wp.launch(total, dim=n, inputs=[x], outputs=[loss])
            tape.backward(loss)
            tape.backward(loss)
        return [x, y, loss]

    def overwriting() -> list[Any]:
        x, loss = made(n), wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            for _ in range(5):
                wp.launch(in_place, n, [x])
            wp.launch(total, n, [x, loss])
        tape.backward(loss)
        tape.zero()
        tape.backward(loss)
        return [x, loss]

    def looping() -> list[Any]:
        x, y = made(n), made(n)
        for k in (3, 3, 3, 40, 0, 3):
            tape = wp.Tape()
            with tape:
                wp.launch(turns, n, [x, y, k])
            tape.backward(grads={y: np.ones(n, np.float32)})
        return [x, y]

    def strided() -> list[Any]:
        x, y = made(n, 3), made(n, 2)
        for _ in range(3):
            tape = wp.Tape()
            with tape:
                wp.launch(scale, n, [x, y, 1.5])
            tape.backward(grads={y: y})
        return [x, y]

    def flat() -> list[Any]:
        x = wp.array(np.linspace(0, 1, 3 * n).reshape(3, n), dtype=float, requires_grad=True)
        y = wp.zeros_like(x)
        for dim in ((3, n), [3, n], (2, n), (3, n)):
            tape = wp.Tape()
            with tape:
                wp.launch(grid, dim=dim, inputs=[x], outputs=[y])
            tape.backward(grads={y: x})
        return [x, y]

    def switched() -> list[Any]:
        """Gradients that come and go between backward passes of one tape."""
        x, y = made(n), made(n)
        tape = wp.Tape()
        with tape:
            wp.launch(scale, n, [x, y, 2.0])
        seed, seen = np.ones(n, np.float32), []
        for change in ("", "", "grad", "off", "on", ""):
            if change == "grad":
                x.grad = wp.full(n, 3.0, dtype=float)
            elif change:
                x.requires_grad = change == "on"
            tape.backward(grads={y: seed})
            seen.append(np.zeros(n) if x.grad is None else x.grad.numpy().copy())
        return [x, y, wp.array(np.stack(seen), dtype=float)]

    def seeded_anew() -> list[Any]:
        """The last pass begins with an array that required no gradient before."""
        out: list[Any] = []
        for k in range(4):
            x, w, z = made(n), made(n), made(n)
            x.requires_grad = False
            tape = wp.Tape()
            with tape:
                wp.launch(both, n, [x, w, z])
            given = {z: wp.ones(n, dtype=float)}
            tape.backward(grads=given if k < 3 else {**given, x: wp.full(n, 10.0, dtype=float)})
            out += [x, w]
        return out

    def seeded_again() -> list[Any]:
        """The same of a graph's tape, with one seed and then with two."""
        x, w, z, y = (made(n) for _ in range(4))
        x.requires_grad = False
        tape = wp.Tape()
        with wp.ScopedCapture() as capture, tape:
            wp.launch(both, n, [x, w, z])
            wp.launch(both, n, [z, w, y])
        seen = []
        for k in range(6):
            wp.capture_launch(capture.graph)
            given = {y: wp.ones(n, dtype=float)}
            tape.backward(grads=given if k < 5 else {**given, x: wp.full(n, 10.0, dtype=float)})
            seen.append(w.grad.numpy().copy())
            if k < 5:
                tape.zero()
        return [x, w, z, wp.array(np.stack(seen), dtype=float)]

    programs = (several, overwriting, looping, strided, flat, switched, seeded_anew, seeded_again)
    return {f.__name__: f for f in programs}


def bits(arrays: list[Any]) -> list[bytes]:
    found = list(arrays) + [a.grad for a in arrays if a.grad is not None]
    return [a.numpy().tobytes() for a in found]


def plain(program: Callable[[], list[Any]]) -> Program:
    """One that repeats nothing."""
    return lambda repeat: program()


def iterations(seed: int) -> Program:
    """Six turns of a random iteration that makes tapes of its own, up to one that fails."""

    def program(repeat: Repeat) -> list[Any]:
        arrays, iteration = unseen_sequences.fitted(seed)
        turn, out = repeat(iteration), []
        for _ in range(6):
            try:
                turn()
            except EngineError:
                return [*out, "failed"]
            out.append(unseen_sequences.bits_of(arrays))
        return out

    return program


LAUNCHES: dict[str, Program] = {
    f"{name}-{n}": plain(lambda name=name, n=n: bits(launches(n)[name]()))
    for n in (7, 0, 1, 16, 33)
    for name in launches(1)
}
RANDOM_LAUNCHES: dict[str, Program] = {
    f"launches-{seed}": plain(lambda seed=seed: Launches(seed).run()) for seed in range(RANDOM)
}
PASSES: dict[str, Program] = {
    f"{make.__name__}-{n}": plain(partial(passes.seen, make, n))
    for n in (7, 1, 33)
    for make in (passes.chain, passes.mixed, passes.apart)
}
TAPES: dict[str, Program] = {
    f"tape-{seed}": plain(lambda seed=seed: OneTape(seed).run()) for seed in range(1, 31)
}
CAPTURED: dict[str, Program] = {
    f"{make.__name__}-{n}{'-looked-at' if look else ''}": plain(
        partial(sequences.seen, make, n, look)
    )
    for n in (7, 0, 1, 33)
    for look in (False, True)
    for make in sequences.PROGRAMS
}
ITERATIONS: dict[str, Program] = {f"iteration-{k}": iterations(k) for k in range(120)}
COPIES: dict[str, Program] = {
    "read-only": plain(copy_programs.to_read_only),
    **{f"copies-{k}": plain(partial(copy_programs.copies, k, 50)) for k in range(0, 1500, 50)},
    **{
        f"lists-{t.__name__}": plain(partial(copy_programs.assigned, t))
        for t in copy_programs.DTYPES
    },
}
