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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import engine as wp
from engine.compile.cpu import launcher, runner
from engine.tape.passes import PassLog, noting


@contextmanager
def running(after: int) -> Iterator[PassLog]:
    """Notes passes of a block, in which native code takes over after so many launches."""
    log, before = PassLog(), dict(vars(wp.config))
    wp.config.native_after = after
    try:
        with noting(log):
            yield log
    finally:
        vars(wp.config).update(before)  # what tests set stays until their fixtures end


class Hot:
    """The plugin."""

    def __init__(self) -> None:
        self.tests = self.passes = self.cold = 0
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
        with running(-1) as log:
            pyfuncitem.obj(**given)
        plain = log.notes()
        for _ in range(2):
            with running(0) as log:
                pyfuncitem.obj(**given)
            native = log.notes()
            assert plain.count == native.count, "natively there are other backward passes"
            for number in range(plain.count):
                same = plain.layout(number) == native.layout(number)
                same = same and plain.value(number) == native.value(number)
                assert same, f"natively, backward pass {number} gives other gradients"
        if native.native:
            self.tests += 1
            self.passes += native.count
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["hot"] = (self.tests, self.passes, self.cold)

    def pytest_testnodedown(self, node: Any) -> None:
        tests, passes, cold = node.workeroutput.get("hot", (0, 0, 0))
        self.tests += tests
        self.passes += passes
        self.cold += cold

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(
            f"hot: {self.tests} tests had launches that compiled code recorded, and "
            f"{self.passes} backward passes; {self.cold} tests run once"
        )
