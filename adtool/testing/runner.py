"""Captures and checks the tapes of tests, around their phases.

Setup and call of a test make one capture, which is checked before the test ends: what is found
fails the test as an exception in it would, so that `xfail`, `--maxfail`, JUnit and other plugins
need to know nothing of it. What the teardown records is checked with the teardown.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

import engine
from adtool.checking import recorded
from adtool.exits import ToolError
from adtool.in_process import Observation, Terms
from adtool.render.verdict import verdict_text
from adtool.report import Finding, Report, at_gate
from adtool.suppressions import codes
from adtool.testing.settings import Settings, checked, terms_with
from engine.classes import dataclass

NAME = "adtool"
_UNABLE = (
    "help: checks run before pytest tears down the fixtures of the test, so they see its "
    "replacements (`monkeypatch`). To skip the checks of this test, use "
    "`@pytest.mark.adtool(enabled=False)`"
)
_OWN = ("expect", "enabled")  # keywords of the marker alone
_SEEN = pytest.StashKey[Observation]()
_DATA = pytest.StashKey[dict[str, Any]]()


@dataclass(frozen=True, slots=True)
class Plan:
    """How one test is checked. asked: whether a marker asks for it, and not `--adtool` alone.

    expect: codes of findings that must be there.
    """

    terms: Terms
    expect: tuple[str, ...] = ()
    asked: bool = False


class Runner:
    """The hooks that run tests. everywhere: whether tests are checked that have no marker."""

    def __init__(self, settings: Settings, everywhere: bool) -> None:
        self._settings = settings
        self._everywhere = everywhere
        # Modules that recorded tapes while they were imported, and how many, until that is told.
        self._imported: dict[str, int] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        if not (self._everywhere and isinstance(collector, pytest.Module)):
            return (yield)
        with engine.capturing(wants=lambda _: False) as capture:
            report = yield
        if made := len(recorded(capture.tapes)):
            self._imported[collector.nodeid] = made
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            return (yield)
        finally:
            self._leave(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        plan = self._plan(item)
        if plan is not None:
            self._look(item, plan)
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        result = yield
        # A unittest.TestCase keeps to itself how it failed.
        if not getattr(item, "_excinfo", None):
            self._check(item, self._leave(item), "call")
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._leave(item)  # of a test that failed by itself
        plan = self._plan(item)
        if plan is not None:
            self._look(item, plan)
        result = yield
        self._check(item, self._leave(item), "teardown")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report = yield
        data = item.stash.get(_DATA, None)
        if data is not None:
            # Goes from workers to the process that they report to: plain data.
            report.adtool = data
            del item.stash[_DATA]
        if self._imported:
            report.adtool_imported, self._imported = self._imported, {}
        return report

    def _plan(self, item: pytest.Item) -> Plan | None:
        """How a test is checked; None where it is not."""
        markers = list(item.iter_markers(NAME))
        base = self._settings.of(str(item.path))
        if not markers:
            return Plan(base) if self._everywhere else None
        given: dict[str, Any] = {}
        for marker in reversed(markers):
            given.update(marker.kwargs)
        if not given.get("enabled", True):
            return None
        expect = _codes(given.get("expect", ()))
        return Plan(terms_with(base, given), expect, True)

    def _look(self, item: pytest.Item, plan: Plan) -> None:
        seen = item.stash[_SEEN] = Observation(plan.terms.options)
        seen.open()

    def _leave(self, item: pytest.Item) -> Observation | None:
        """Ends the capture of a test, if there is one."""
        seen = item.stash.get(_SEEN, None)
        if seen is not None:
            del item.stash[_SEEN]
            seen.close()
        return seen

    def _check(self, item: pytest.Item, seen: Observation | None, when: str) -> None:
        """Checks what a phase recorded. Fails it where it must."""
        __tracebackhide__ = True
        plan = self._plan(item)
        if seen is None or plan is None:
            return
        at_end = when == "teardown"
        if seen.empty and (at_end or not plan.asked):
            return  # tapes that hold nothing are not worth a word
        try:
            known = replace(plan.terms.choice, known=() if at_end else plan.expect)
            report = seen.report(item.nodeid, replace(plan.terms, choice=known))
        except Exception as error:  # as where the test has replaced what checks need
            pytest.fail(f"adtool: the check failed: {type(error).__name__}: {error}\n{_UNABLE}",
                        pytrace=False)  # fmt: skip
        text = _objection(report, plan, at_end)
        item.stash[_DATA] = _summary(report, plan.expect, bool(text))
        if text:
            pytest.fail(text, pytrace=False)


def refuse_markers(item: pytest.Item) -> None:
    """Raises ToolError for a marker of adtool with arguments that it does not take."""
    for marker in item.iter_markers(NAME):
        if marker.args:
            raise ToolError(
                f"{item.name}: the marker `adtool` takes keywords, not {marker.args[0]!r}",
                "write @pytest.mark.adtool(gate='warning')",
            )
        try:
            checked(marker.kwargs, _OWN)
            _codes(marker.kwargs.get("expect", ()))
            if not isinstance(marker.kwargs.get("enabled", True), bool):
                raise ToolError(f"enabled is True or False, not {marker.kwargs['enabled']!r}")
        except ToolError as error:
            raise ToolError(
                f"{item.name}: the marker `adtool`: {error.message}", error.help
            ) from None


def _codes(given: Any) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else given
    if not isinstance(words, (list, tuple)) or not all(isinstance(w, str) for w in words):
        raise ToolError(f"expect is a code of a finding, or a list of them, not {given!r}")
    return codes("expect", words)


def _objection(report: Report, plan: Plan, at_end: bool) -> str:
    """Why a test fails; empty where it does not."""
    found = {f.code for f in report.findings if not f.suppressed}
    expect = () if at_end else plan.expect
    missing = [c for c in expect if c not in found]
    bad = [
        f for f in report.findings
        if not f.suppressed and f.code not in plan.expect and at_gate(f.severity, report.gate)
    ]  # fmt: skip
    head = ""
    if bad:
        head = _head(bad[0], len(bad))
    elif missing:
        head = f"{', '.join(missing)} was expected but not found"
    elif report.error is not None and plan.asked and not expect and not at_end:
        head = report.error.message
    return f"adtool: {head}\n\n{verdict_text(report)}" if head else ""


def _head(finding: Finding, count: int) -> str:
    more = f" and {count - 1} more" if count > 1 else ""
    of = f" in kernel {finding.kernel}" if finding.kernel else ""
    return f"{finding.code} {finding.name}{of}{more}"


def _summary(report: Report, expect: tuple[str, ...], failed: bool) -> dict[str, Any]:
    """What the end of the run tells, as plain data."""
    error = report.error
    shown = [f for f in report.findings if not f.suppressed]
    return {
        "test": report.script,
        "failed": failed,
        "tapes": report.tapes,
        "launches": len(report.launches),
        "pairs": report.decided,
        "suppressed": sum(f.suppressed for f in report.findings),
        "expected": sum(f.code in expect for f in shown),
        "findings": [[f.code, f.severity, f.message] for f in shown if f.code not in expect],
        "unchecked": "" if error is None else error.message,
    }
