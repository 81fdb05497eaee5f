"""`--hot`: tests run by Python alone and natively, and their backward passes give the same bits.

The compiled launcher takes over after some hundred launches, which hardly any test has. Here the
function of a test runs without it (`config.native_after = -1`), which also compiles its kernels,
then with it (0), and once more, when its launches are native from the first one on. After each
backward pass the gradients of the tape's arrays are noted, in a way that leaves launches compact
rows; all lists have to be equal, bit for bit. Tests that a further run in one process changes, or
that say by themselves how they run, are marked `cold("why")`, and run once.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import engine as wp
from engine.compile.cpu import launcher, runner
from engine.runtime.device import HOST
from engine.tape import rows
from engine.tape.tape import Tape


class Notes:
    """What the backward passes of one run gave. native: of how many compiled code had recorded."""

    def __init__(self) -> None:
        self.passes: list[list[tuple[tuple[int, ...], bytes]]] = []
        self.native = 0

    def add(self, tape: Tape) -> None:
        found, seen = [], set[int]()
        for a in rows.arrays(tape._listed(), tape._made):
            g = a._grad
            if g is None or id(g) in seen or not g.is_contiguous or g.storage.device is not HOST:
                continue
            seen.add(id(g))
            found.append((g.shape, g.storage.bytes(g.lo, g.hi).tobytes()))
        self.passes.append(found)


@contextmanager
def noting(after: int) -> Iterator[Notes]:
    """Notes passes of a block, in which native code takes over after so many launches."""
    notes, plain, before = Notes(), Tape.backward, dict(vars(wp.config))

    @functools.wraps(plain)
    def backward(self: Tape, *args: Any, **given: Any) -> None:
        listed = self._listed()
        compact = rows.are_rows(listed) and rows.has_any(listed)
        plain(self, *args, **given)
        notes.native += compact
        if wp.config.native_after == after:  # else the test says by itself how it runs
            notes.add(self)

    # To messages, which name the user's line, it is a part of the engine.
    backward.__code__ = backward.__code__.replace(co_filename=plain.__code__.co_filename)
    wp.config.native_after = after
    Tape.backward = backward  # type: ignore[method-assign]
    try:
        yield notes
    finally:
        Tape.backward = plain  # type: ignore[method-assign]
        vars(wp.config).update(before)  # what tests set stays until their fixtures end


class Hot:
    """The plugin."""

    def __init__(self) -> None:
        self.tests = self.passes = self.native = self.cold = 0
        wp.Tape, wp.launch  # noqa: B018  # say what they know
        launcher.maker.asked = True
        launcher.maker.make(ctypes.sizeof(runner.Launch))
        assert launcher.maker.made is not None

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        if pyfuncitem.get_closest_marker("cold"):
            self.cold += 1
            return None
        names = pyfuncitem._fixtureinfo.argnames
        given = {name: pyfuncitem.funcargs[name] for name in names}
        with noting(-1) as plain:
            pyfuncitem.obj(**given)
        for _ in range(2):
            with noting(0) as native:
                pyfuncitem.obj(**given)
            count = len(plain.passes)
            assert count == len(native.passes), "natively there are other backward passes"
            for number, (x, y) in enumerate(zip(plain.passes, native.passes, strict=True)):
                assert x == y, f"natively, backward pass {number} gives other gradients"
        if native.native:
            self.tests += 1
            self.passes += len(native.passes)
            self.native += native.native
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["hot"] = (self.tests, self.passes, self.native, self.cold)

    def pytest_testnodedown(self, node: Any) -> None:
        tests, passes, native, cold = node.workeroutput.get("hot", (0, 0, 0, 0))
        self.tests += tests
        self.passes += passes
        self.native += native
        self.cold += cold

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(
            f"hot: {self.tests} tests compared, {self.passes} backward passes, {self.native} of "
            f"what compiled code had recorded; {self.cold} tests run once"
        )
