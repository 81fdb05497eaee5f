"""Settings of every run, and the paths of the checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--parts`, `--native`, `--device`: see `tests.parts`, `tests.native`, `tests.emulated`."""
    parser.addoption("--native", action="store_true", help="run launches without Python")
    parser.addoption(
        "--parts", action="store_true", help="run all launches in parts, by 1, 2 and 7 threads"
    )
    parser.addoption(
        "--device",
        choices=["cpu", "emulated-cuda"],
        default="cpu",
        help="run what names no device there",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draws no window; child processes import this checkout, whatever is installed.

    The IR is checked between all passes, here and in child processes.
    """
    os.environ.setdefault("ENGINE_VERIFY_IR", "1")  # before `engine` is imported
    os.environ.setdefault("MPLBACKEND", "Agg")
    path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(part for part in path if part)
    if config.getoption("--parts"):
        from tests import parts

        parts.install()
    if config.getoption("--native"):
        from tests import native

        native.install()
    if config.getoption("--device") == "emulated-cuda":
        from tests import emulated

        emulated.install(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the rest of large tables out, unless `-m` says something about it."""
    if "sweep" in config.option.markexpr:
        return
    rest = [item for item in items if item.get_closest_marker("sweep")]
    if rest:
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]
        config.hook.pytest_deselected(items=rest)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says that they were left out: with several processes, nothing else does."""
    if "sweep" not in config.option.markexpr:
        terminalreporter.write_line(
            'LEFT OUT tests marked `sweep`: the rest of large tables (-m "sweep or not sweep")'
        )


@pytest.fixture(autouse=True)
def _whole(request: pytest.FixtureRequest) -> Iterator[None]:
    """With `--parts`: a test that is marked `whole` has launches as users have them."""
    if not (request.config.getoption("--parts") and request.node.get_closest_marker("whole")):
        yield
        return
    from tests import parts

    parts.divide(parts.LARGE)
    yield
    parts.divide(parts.SMALL)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def samples_dir() -> Path:
    """The folder of the sample programs."""
    return ROOT / "samples"
