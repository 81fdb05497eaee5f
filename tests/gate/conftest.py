"""The sample repository is run by `test_gate.py`; its own tests are not tests of adtool."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate.machine import Machine

collect_ignore = ["repository"]

_BOOT = "import sys; sys.path[0] = {!r}; from adtool.__main__ import main; main()"


@pytest.fixture
def machine(tmp_path: Path, root: Path, kernels: Path) -> Machine:
    """A machine with the sample repository checked out, and commands `adtool` and `python`."""
    home = tmp_path / "repository"
    shutil.copytree(root / "tests" / "gate" / "repository", home)
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in (
        ("adtool", f'exec "{sys.executable}" -c "$ADTOOL_BOOT" "$@"'),
        ("python", f'exec "{sys.executable}" "$@"'),
    ):
        file = commands / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    env = {
        k: v for k, v in os.environ.items()
        if not k.startswith(("PYTEST_", "GITHUB_", "RUNNER_", "INPUT_", "CI_", "FORCE_COLOR"))
    }  # fmt: skip
    env |= {
        "PATH": f"{commands}{os.pathsep}{env['PATH']}",
        "ADTOOL_BOOT": _BOOT.format(str(root)),
        # In place of `pip install -e .`, which needs a network.
        "PYTHONPATH": os.pathsep.join([str(home / "src"), str(root)]),
        "ENGINE_CACHE_DIR": str(kernels),
        "COLUMNS": "200",
    }
    return Machine(home, tmp_path, root, env)
