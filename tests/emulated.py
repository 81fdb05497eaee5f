"""`--device emulated-cuda`: what names no device is on an emulated GPU.

The CUDA text of kernels is compiled by the C++ compiler, and a stand-in takes CuPy's calls: see
`tests.backend.cuda.emulated`. Tests of the CPU, or of what it alone promises, are marked `host` and
left out; so are those that end with a gradient that GPUs refuse by design (E407). Processes that
tests start are there, too, by `tests/children/sitecustomize.py`.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHILDREN = str(Path(__file__).parent / "children")


def install(config: pytest.Config) -> None:
    """Makes it so, in this process and those that it starts."""
    # A process that was started by one that has done so.
    sys.meta_path[:] = [f for f in sys.meta_path if type(f).__module__ != "sitecustomize"]
    from tests.backend.cuda.device import register

    os.environ["PYTHONPATH"] = _with_children(os.environ)
    start = subprocess.Popen.__init__

    @functools.wraps(start)
    def started(self: Any, *args: Any, env: Mapping[str, str] | None = None, **given: Any) -> None:
        if env is not None:
            env = {**env, "PYTHONPATH": _with_children(env)}
        start(self, *args, env=env, **given)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    config.pluginmanager.register(_LeavesOut(register()))


def _with_children(env: Mapping[str, str]) -> str:
    """`PYTHONPATH` of a process that is on the device; tests give their own, or none."""
    found = env.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([CHILDREN, *(p for p in found if p and p != CHILDREN)])


def are_same(found: Any, expected: Any) -> bool:
    """Whether numbers are the same to the bit, or on a GPU but for rounding."""
    from engine import config
    from tests.backend.cuda.device import NAME

    found, expected = np.asarray(found), np.asarray(expected)
    if str(config.device) != NAME or found.dtype.kind != "f":
        return np.array_equal(found, expected, equal_nan=True)
    digits = 64 * np.finfo(found.dtype).eps
    size = np.abs(expected).max(initial=1.0, where=np.isfinite(expected))
    return found.shape == expected.shape and np.allclose(
        found, expected, rtol=digits, atol=digits * size, equal_nan=True
    )


class _LeavesOut:
    """Skips what cannot be on a GPU. Tests marked `whole` have one order of threads."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for marker in item.iter_markers("host"):
                (why,), only = marker.args, marker.kwargs.get("only", ())
                if not only or set(only) & set(item.callspec.id.split("-")):
                    item.add_marker(pytest.mark.skip(reason=f"of the host: {why}"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        from engine import LaunchError

        self._cupy.turns = not item.get_closest_marker("whole")
        try:
            return (yield)
        except LaunchError as e:
            (said, *_) = e.diagnostics
            if said.code != "E407" or "on a GPU the order is not fixed" not in said.message:
                raise
            why = said.message.rpartition(": ")[2]
            pytest.skip(f"refused on a GPU: {said.span}: {why}")
