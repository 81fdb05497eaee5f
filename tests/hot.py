"""`--hot`: tests run by Python alone and natively, and both give the same bits.

The compiled launcher takes over after some hundred launches, which hardly any test has. Here the
function of a test runs without it (`config.native_after = -1`), which also compiles its kernels,
then with it, and where the first run had backward passes, from the first launch and the first pass
on: what takes two of each as a rule is prepared (`Warmth`). After each backward pass the gradients
of the tape's arrays, its loss and what its operations wrote are noted; both lists have to be equal,
bit for bit. A session in which no pass that compiled code had a part in was compared fails. Tests
that a further run in one process changes, or that say by themselves how they run, are marked
`cold("why")`, and run once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import pytest

import engine as wp
from engine.accel import launcher
from engine.compile.backend import Limits
from engine.compile.cpu import CPU
from engine.compile.cpu.cached_launch import CachedLaunch
from engine.diagnostics import EngineError
from engine.runtime import events, launch
from engine.runtime.execute import Executable, Execution
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import BoundLaunch
from engine.tape.pass_log import PassLog, noting
from engine.tape.records.launch import LaunchRecord

__engine_tool__ = True  # the calls are those of tests


class Warmth:
    """Has launches run natively from the first one of a kernel and a grid on.

    count: how many calls of compiled code ran launches here, or adjoints.
    """

    def __init__(self) -> None:
        self.count = 0
        self._active = False
        made = launcher.maker.made
        assert made is not None
        plain = launch.run

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any) -> Any:
                came = function(*given)
                self.count += came is not None and came != 0
                return came

            return call

        @wraps(plain)
        def run(bound: BoundLaunch) -> Execution:
            if self._active and bound.on_tape and events.tape() is not None:
                plan, n = bound.plan, bound.inputs
                prepare(plan, bound.dim, bound.values, bound.blob)
                given = bound.values[:n], bound.values[n:]
                came = made.try_run(plan.kernel, bound.dim, *given, None, None, True)
                if came is not None:
                    self.count += 1
                    return Execution()
            return plain(bound)

        self._functions = made._replace(
            try_run=counted(made.try_run), back_all=counted(made.back_all)
        )
        launch.run = run

    @contextmanager
    def active(self, early: bool) -> Iterator[None]:
        """Has launches of a block run natively; early: from the first one on.

        What other tests have left is put aside: other native functions.
        """
        functions = self._functions
        with pytest.MonkeyPatch.context() as m:
            m.setattr(launcher.maker, "made", functions)
            m.setattr(self, "_active", early)
            yield


def prepare(plan: Plan, dim: tuple[int, ...], values: list[Any], blob: bytes) -> None:
    """Does what the first launch of a kernel and a grid, and its first pass, leave for others."""
    if 0 in dim or plan.backend is not CPU or plan.aliased(values):
        return
    plan.forward  # noqa: B018  # made where it is missing
    selection = plan.select(values, frozenset())
    shorten(selection.executable, dim, blob)
    if not selection.useful or dim in selection.ready_grids:
        return
    record = LaunchRecord(plan, dim, values, blob, 0, None, frozenset(), selection)
    try:
        plan.adjoint(selection.wrt, selection.journaled)
        record.requests()
    except EngineError:
        return  # its backward pass says it
    if selection.adjoint is not None:
        # Gradients lie as their arrays do: what a launch costs does not depend on where.
        blob += b"".join(values[i]._packed for i in selection.gradients)
        shorten(selection.adjoint, dim, blob)


def shorten(executable: Executable, dim: tuple[int, ...], args: bytes) -> None:
    """Has a grid run in the short way, if there is one."""
    entry = executable._entry
    if entry is not None and not executable.cached_launches.get(dim):
        limits = Limits(wp.config.stack_limit_bytes, wp.config.journal_limit_bytes)
        executable._prepare_cached_launch(entry, dim, args, limits)
    if cached_launch := executable.cached_launches.get(dim):
        cast("CachedLaunch", cached_launch).request_native()


@contextmanager
def running(after: int) -> Iterator[PassLog]:
    """Notes passes of a block, in which native code takes over after so many launches."""
    log, before = PassLog(thorough=True), dict(vars(wp.config))
    wp.config.native_after = after
    try:
        with noting(log):
            yield log
    finally:
        vars(wp.config).update(before)  # what tests set stays until their fixtures end


class Hot:
    """The plugin."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        wp.Tape, wp.launch  # noqa: B018  # say what they know
        launcher.maker.asked = True
        launcher.maker.make()
        self.warmth = Warmth()

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        if pyfuncitem.get_closest_marker("cold"):
            self.counts["cold"] += 1
            return None
        names = pyfuncitem._fixtureinfo.argnames
        given = {name: pyfuncitem.funcargs[name] for name in names}
        with running(-1) as log:
            pyfuncitem.obj(**given)
        plain = log.notes()
        before = self.warmth.count
        with running(0) as log, self.warmth.active(plain.count > 0):
            pyfuncitem.obj(**given)
        native = log.notes()
        assert plain.count == native.count, "natively there are other backward passes"
        for number in range(plain.count):
            same = plain.layout(number) == native.layout(number)
            assert same, f"natively, backward pass {number} has other arrays"
            same = plain.value(number) == native.value(number)
            assert same, f"natively, backward pass {number} leaves other numbers"
        if not plain.count:
            self.counts["without"] += 1
        elif self.warmth.count > before:
            self.counts["tests"] += 1
            self.counts["passes"] += native.count
        else:
            self.counts["python"] += 1
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["hot"] = dict(self.counts)
        elif not self.counts["passes"] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.counts.update(getattr(node, "workeroutput", {}).get("hot", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        c = self.counts
        nothing = c["without"] + c["python"] + c["cold"]
        terminalreporter.write_line(
            f"hot: {c['tests']} tests compared {c['passes']} backward passes in which compiled "
            f"code had a part; {nothing} compared nothing: {c['without']} have no such pass, "
            f"{c['python']} stay with Python, {c['cold']} run once"
        )
        if not c["passes"]:
            terminalreporter.write_line("hot: FAILED, since nothing was compared", red=True)
