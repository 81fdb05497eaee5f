"""Settings of every run, and the paths of the checkout."""

from __future__ import annotations

import gc
import os
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Where tests are about what compiled kernels compute, they are compiled as users have them. The
# others (verdicts, messages, formats) leave it a third of its time, and hold that results do not
# depend on it. `ENGINE_OPTIMIZATION_LEVEL=3 pytest` runs all of them so, and a lower number none.
AS_USERS_HAVE = (
    "backend", "corpus", "docs", "property", "samples", "unit/builtins", "unit/codegen",
    "unit/compile",
)  # fmt: skip
_LEVEL, _CHOSEN = "ENGINE_OPTIMIZATION_LEVEL", "ENGINE_TESTS_CHOSE_THE_LEVEL"

# Before `engine` is imported, as conftest files of folders do before `pytest_configure`. The IR is
# checked between all passes, here and in child processes.
os.environ.setdefault("ENGINE_VERIFY_IR", "1")
if _LEVEL not in os.environ:
    os.environ |= {_LEVEL: "1", _CHOSEN: "1"}


_NO_ACCEL = "engine.accel is not there"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--parts`, `--native`, `--hot`, `--device`: see these modules of `tests` (`emulated`)."""
    parser.addoption("--native", action="store_true", help="run launches without Python")
    parser.addoption(
        "--hot", action="store_true", help="run tests by Python, then natively: the same bits"
    )
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

    No test is held to a time: machines are shared.
    """
    from hypothesis import HealthCheck, settings

    settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("shared")
    os.environ.setdefault("MPLBACKEND", "Agg")
    path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(part for part in path if part)
    if config.getoption("--parts"):
        from tests import parts

        parts.install()
    if config.getoption("--native"):
        from tests import native

        native.install()
    if config.getoption("--hot"):
        from tests import hot

        config.pluginmanager.register(hot.Hot())
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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What the tests are made of stays, so that no search of the heap goes through it.

    It is 640,000 objects: each `gc.collect` of a test took a third of a second, and those that
    Python does by itself a third of the time that it takes to collect the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def _lacks_accel(error: Exception) -> bool:
    """Whether it says that `engine.accel` is not there: the engine is right without that folder."""
    there = (ROOT / "engine" / "accel" / "__init__.py").exists()
    return not there and "No module named 'engine.accel" in str(error)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule(module_path: Path) -> Generator[None, Any, Any]:
    """Leaves out files about `engine.accel` where it is not there."""
    module = yield
    real = module._getobj

    def found() -> Any:
        try:
            return real()
        except pytest.Collector.CollectError as e:
            if _lacks_accel(e):
                raise pytest.skip.Exception(_NO_ACCEL, allow_module_level=True) from None
            raise

    module._getobj = found
    return module


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """The same of single tests."""
    try:
        return (yield)
    except ImportError as e:
        if _lacks_accel(e):
            pytest.skip(_NO_ACCEL)
        raise


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


@pytest.fixture(autouse=True)
def _own_numbers(request: pytest.FixtureRequest) -> None:
    """A file's `RNG` begins anew for each test: what one draws is the same in any order."""
    if hasattr(request.module, "RNG"):
        import numpy as np

        request.module.RNG = np.random.default_rng(zlib.crc32(request.node.name.encode()))


@pytest.fixture(autouse=True, scope="module")
def _as_users_have(request: pytest.FixtureRequest) -> Iterator[None]:
    """All that the compiler can do, in the folders where tests are about that."""
    folders = [ROOT / "tests" / name for name in AS_USERS_HAVE]
    if _CHOSEN not in os.environ or not any(f in request.path.parents for f in folders):
        yield
        return
    from engine import config

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(_LEVEL)
        patch.setattr(config, "optimization_level", None)
        yield


@pytest.fixture(autouse=True, scope="module")
def _left_behind() -> Iterator[None]:
    """What a file leaves (modules, kernels and their IR) is not searched again for later ones.

    Else each `gc.collect` of a test took longer the more files had run: half a second in the end.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One kernel cache for all processes of users: that of the run, or one for all its workers."""
    if given := os.environ.get("ENGINE_CACHE_DIR"):
        return Path(given)
    path = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        path = path.parent
    path /= "kernels-of-users"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def samples_dir() -> Path:
    """The folder of the sample programs."""
    return ROOT / "samples"
