"""Waiting for child processes."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from engine.processes import wait


@pytest.mark.parametrize("limit", [30.0, 3e6, 1e9, math.inf])
def test_limits_of_any_size(limit: float) -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        assert wait(process, limit) == 3
        assert wait(process, limit) == 3


def test_what_takes_longer() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            wait(process, 0.01)
        process.kill()
        assert wait(process, 30.0) < 0
