"""Start-up stays light: neither `import engine` nor `adtool --help` loads a heavy package."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ["matplotlib", "graphviz", "rich.table", "cupy", "torch", "jax"]

REPORT = """
import json, sys
{code}
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""

HELP = """
import contextlib, io, runpy
sys.argv = ["adtool", "--help"]
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
    runpy.run_module("adtool", run_name="__main__", alter_sys=True)
assert "check" in out.getvalue()
"""


def modules_after(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after running `code`."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT.format(code=code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("code", ["import engine", HELP], ids=["import engine", "adtool --help"])
def test_no_heavy_module_is_loaded(code: str) -> None:
    loaded = modules_after(code)
    assert "numpy" in loaded or "adtool.cli" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_engine_loads_no_part_of_the_tool() -> None:
    loaded = modules_after("import engine")
    assert not any(name.split(".")[0] in {"adtool", "typer", "rich"} for name in loaded)
