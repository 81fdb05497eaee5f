"""The fast paths of launches, tapes, graphs and copies: one table.

A path says how it is switched on, for which programs, and of what parts it consists. A part can be
counted, which shows that programs take it, and broken, which shows that the comparison sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

import engine as wp
from engine.accel import launcher
from engine.accel.fused_graphs import FusedGraph
from engine.accel.graph_steps import Writes
from engine.compile.cpu import runner
from engine.runtime import transfer
from engine.runtime.execute import Executable
from tests import parts
from tests.unit.runtime import fast_programs as programs
from tests.unit.runtime.fast_programs import Iteration, Program, Repeat
from tests.unit.runtime.launching import way
from tests.unit.tape.unseen_sequences import quiet

Function = Callable[..., Any]
Switch = Callable[[pytest.MonkeyPatch], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Part:
    """A function of a path. broken: it as a fault could leave it, given the right one."""

    name: str
    put: Callable[[pytest.MonkeyPatch, Callable[[Function], Function]], None]
    broken: Callable[[Function], Function]


@dataclass(frozen=True)
class Path:
    """on, off: the way that is compared, and the plain one. again: how often it runs."""

    name: str
    on: Switch
    programs: dict[str, Program]
    parts: tuple[Part, ...]
    repeat: Repeat = lambda iteration: iteration
    off: Switch = lambda m: way(m, short=False)
    again: int = 1

    def differences(self, program: Program, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The steps at which the traces of a program differ; empty if they are the same."""
        with self.off(monkeypatch):
            expected = program(lambda iteration: iteration)
        found: list[int] = []
        for _ in range(self.again):
            with self.on(monkeypatch):
                mine = program(self.repeat)
            found += [k for k, (a, b) in enumerate(zip(mine, expected, strict=False)) if a != b]
            found += [min(len(mine), len(expected))] * (len(mine) != len(expected))
        return found

    def spoiled(self, part: Part) -> Path:
        """The path with a part of it broken."""

        @contextmanager
        def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
            with self.on(monkeypatch), monkeypatch.context() as m:
                part.put(m, part.broken)
                yield

        return replace(self, on=on, again=1)


# ------------------------------------------------------------ parts, and what a fault leaves


def twice(real: Function) -> Function:
    """What changes memory does it twice."""

    def broken(*args: Any, **named: Any) -> Any:
        came = real(*args, **named)
        return came if came is None or came is False else real(*args, **named)

    return broken


def nothing(gives: Any) -> Callable[[Function], Function]:
    """It says that all was done, and does nothing."""
    return lambda real: lambda *args: gives


def not_zero(real: Function) -> Function:
    def broken(*args: Any) -> Any:
        made = real(*args)
        if made is not None and made.dtype is wp.float32:
            made.numpy()[...] = 1.0
        return made

    return broken


def native(name: str, broken: Callable[[Function], Function] = twice) -> Part:
    """A compiled function, which Python's launch asks then."""

    def put(m: pytest.MonkeyPatch, wrap: Callable[[Function], Function]) -> None:
        functions = launcher.maker.made
        assert functions is not None
        functions = functions._replace(**{name: wrap(getattr(functions, name))})
        m.setattr(launcher.maker, "made", functions)

    return Part(name, put, broken)


def of(
    owner: Any, name: str, broken: Callable[[Function], Function] = twice, gives: bool = False
) -> Part:
    """A function of Python, in a module or a class. gives: True, since it gives nothing."""
    real = getattr(owner, name)
    found = (lambda *args: (real(*args), True)[1]) if gives else real
    return Part(name, lambda m, wrap: m.setattr(owner, name, wrap(found)), broken)


# ------------------------------------------------------------ ways


def natively(m: pytest.MonkeyPatch) -> AbstractContextManager[Any]:
    return way(m, "native")


def captured(iteration: Iteration) -> Iteration:
    """By a graph, whose tapes nobody has."""
    with wp.ScopedCapture() as capture:
        iteration()
    return lambda: wp.capture_launch(capture.graph)


def kept(iteration: Iteration) -> Iteration:
    """By a graph; somebody has its tapes."""
    with wp.ScopedCapture() as capture:
        tapes = iteration()

    def turn(tapes: Any = tapes) -> None:
        wp.capture_launch(capture.graph)

    return turn


@contextmanager
def long_copies(monkeypatch: pytest.MonkeyPatch, short: bool | str) -> Iterator[None]:
    with way(monkeypatch, short), monkeypatch.context() as m:
        for name in ("copied", "take", "take_list"):
            m.setattr(transfer, name, lambda *_: False)
        yield


def cut(threads: int) -> Switch:
    """Launches in parts, however small, by so many threads."""

    @contextmanager
    def on(m: pytest.MonkeyPatch) -> Iterator[None]:
        with way(m, short=False), parts.cut(threads):
            yield

    return on


COPIES = tuple(of(transfer, name, nothing(True)) for name in ("copied", "take", "take_list"))
PATHS = [
    Path("short launches", lambda m: way(m, short=True), programs.LAUNCHES,
         (of(Executable, "run_cached"),), again=2),
    Path("whole launches", natively, {**programs.LAUNCHES, **programs.RANDOM_LAUNCHES},
         (native("try_run"), native("back_all"), native("zeros", not_zero),
          native("seeded", nothing(True))), again=2),
    Path("passes of many records", natively, {**programs.PASSES, **programs.TAPES},
         (native("back_all"),), again=2),
    Path("sequences", natively, programs.CAPTURED,
         (native("many"), of(Writes, "announce", nothing(True), gives=True))),
    Path("sequences of tapes that nobody has", quiet, programs.ITERATIONS,
         (of(FusedGraph, "__call__", nothing(True)), native("many")), repeat=captured),
    Path("sequences of tapes that somebody has", quiet, programs.ITERATIONS,
         (native("many"),), repeat=kept),
    Path("parts by 2 threads", cut(2), {**programs.LAUNCHES, **programs.PASSES},
         (of(runner, "_in_parts"),), off=cut(1)),
    Path("parts by 7 threads", cut(7), {**programs.LAUNCHES, **programs.PASSES},
         (of(runner, "_in_parts"),), off=cut(1)),
    Path("copies of bytes", lambda m: way(m, short=True), programs.COPIES, COPIES,
         off=lambda m: long_copies(m, True)),
]  # fmt: skip
NAMES = {path.name: path for path in PATHS}
