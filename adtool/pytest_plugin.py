"""The pytest plugin: fixture `gradcheck`, marker `adtool`, option `--adtool`.

Every run of pytest loads this file where adtool is installed, so it imports nothing but pytest;
`adtool.testing` does the work, and is loaded when some test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from adtool.testing.gradcheck import Gradcheck
    from adtool.testing.settings import Settings

_MARKER = (
    "adtool(gate='error', ignore=(), kernels=(), expect=(), enabled=True, ...): check the "
    "gradients of every tape that the test makes; see docs/ci.md of adtool"
)
_RUNNER, _REPORTS = "adtool-runner", "adtool-reports"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line."""
    group = parser.getgroup("adtool", "gradients (adtool)")
    group.addoption(
        "--adtool", action="store_true",
        help="check the gradients of every tape that a test makes",
    )  # fmt: skip
    group.addoption(
        "--adtool-gate", metavar="GATE", default=None,
        help="the lowest severity of a finding that fails a test: error, warning or note; or "
             "accuracy=1e-6, which every pair must reach (default: [tool.adtool], or error)",
    )  # fmt: skip
    group.addoption(
        "--adtool-alias", metavar="NAME", default=None,
        help="tests import the engine as the module NAME, with the behaviour of Warp (with "
             "--adtool: default from [tool.adtool])",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known, and with `--adtool` has all tests checked."""
    config.addinivalue_line("markers", _MARKER)
    config.pluginmanager.register(_Reports(config), _REPORTS)
    alias = config.getoption("adtool_alias")
    if config.getoption("adtool"):
        alias = alias or _settings(config).of("").options.alias
    if alias:
        _install(alias)
    if config.getoption("adtool"):
        _run_checks(config)


def _install(alias: str) -> None:
    import engine
    from engine.alias import install

    try:
        install(alias)
    except engine.EngineError as error:
        first = error.diagnostics[0]
        raise pytest.UsageError(f"adtool: {first.message}\nhelp: {first.help}") from None


def _run_checks(config: pytest.Config) -> None:
    """Puts in place what captures and checks tapes."""
    if not config.pluginmanager.has_plugin(_RUNNER):
        if getattr(pytest, "version_tuple", (0,)) < (8,):
            raise pytest.UsageError("adtool: checks of tests need pytest 8 or newer")
        settings = _settings(config)
        from adtool.testing.runner import Runner

        config.pluginmanager.register(Runner(settings, config.getoption("adtool")), _RUNNER)


def _settings(config: pytest.Config) -> Settings:
    """What the project's settings and the command line say. Raises UsageError."""
    from adtool.exits import ToolError
    from adtool.testing.settings import Settings

    kept: Any = config.pluginmanager.get_plugin(_REPORTS)
    found: Settings | None = kept.settings
    if found is None:
        try:
            found = Settings(config.rootpath, config.getoption("adtool_gate"))
        except ToolError as error:
            help = f"\nhelp: {error.help}" if error.help else ""
            raise pytest.UsageError(f"adtool: {error.message}{help}") from None
        kept.settings = found
    return found


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, Any, None]:
    """Looks for tests with the marker: refuses what it does not take, has the others checked."""
    outcome = yield
    report = outcome.get_result()
    marked = [
        item
        for item in report.result or ()
        if isinstance(item, pytest.Item) and item.get_closest_marker("adtool")
    ]
    if not marked:
        return
    from adtool.exits import ToolError
    from adtool.testing.runner import refuse_markers

    try:
        for item in marked:
            refuse_markers(item)
        _run_checks(collector.config)
    except ToolError as error:
        help = f"\nhelp: {error.help}" if error.help else ""
        report.outcome, report.result = "failed", []
        report.longrepr = f"adtool: {error.message}{help}"
    except pytest.UsageError as error:
        report.outcome, report.result = "failed", []
        report.longrepr = str(error)


@pytest.fixture
def gradcheck(request: pytest.FixtureRequest) -> Iterator[Gradcheck]:
    """`gradcheck(kernel, dim, inputs, outputs)`, `gradcheck(function, inputs=...)` or
    `gradcheck(tape)`: fails the test where a gradient is wrong, or nothing could be checked.
    """
    terms = _settings(request.config).of(str(request.path))
    from adtool.testing.gradcheck import Gradcheck, observation_of

    observation = observation_of(terms)
    observation.open()
    try:
        yield Gradcheck(request.node.nodeid, terms, observation)
    finally:
        observation.close()


class _Reports:
    """Sums up what the reports of tests say, also of those that other processes ran.

    settings: what the project's settings say, once somebody has asked.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._data: list[dict[str, Any]] = []
        self._imported: dict[str, int] = {}
        self.settings: Settings | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes what adtool put into a report."""
        data = getattr(report, "adtool", None)
        if data is not None:
            self._data.append(data)
        self._imported.update(getattr(report, "adtool_imported", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tells what was checked, and what was found."""
        asked = self._config.getoption("adtool") and not self._config.option.collectonly
        if not (asked or self._data or self._imported):
            return
        from adtool.testing.summary import lines

        terminalreporter.section("adtool")
        for line, colour in lines(self._data, asked, self._imported):
            terminalreporter.write_line(line, **({colour: True} if colour else {}))
