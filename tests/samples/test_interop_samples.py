"""Samples with other frameworks run by plain Python, and `adtool check` says what they say of it.

Each has two lines after its docstring: `# needs: torch, jax`, the packages that it imports, and
`# check:` with `passes`, `no tape` (nothing to check, exit code 2), or what is found: code,
severity and the start of the line that it is at, as in `# check: G001 error def backward(`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.invariants import passing_errors
from tests.sweeps import reduced

pytestmark = pytest.mark.host("tensors and arrays of others are memory of the host")

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
INTEROP = sorted((SAMPLES / "interop").glob("*.py"))
PLAIN = {"jax_kernels", "torch_conversions", "dlpack_paddle"}
TIMEOUT = 300.0


def said(path: Path, what: str) -> str:
    """The one line of a sample that begins with `# what:`."""
    (line,) = re.findall(rf"^# {what}: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return str(line).strip()


def skip_without(path: Path) -> None:
    """Skips, by name, where a package is missing that the sample needs."""
    for name in said(path, "needs").split(", "):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], cwd=SAMPLES.parent, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=TIMEOUT,
    )  # fmt: skip


# The check runs them, too, and shows what they print.
@pytest.mark.parametrize("path", reduced(INTEROP, lambda p: p.stem in PLAIN), ids=lambda p: p.stem)
def test_runs_by_plain_python(path: Path) -> None:
    skip_without(path)
    done = run(str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("path", INTEROP, ids=lambda p: p.stem)
def test_the_check_says_what_the_sample_says(path: Path) -> None:
    skip_without(path)
    code, _, rest = said(path, "check").partition(" ")
    severity, _, line = rest.partition(" ")
    gate = severity if code.startswith("G") else "warning"
    name = str(path.relative_to(SAMPLES.parent))
    done = run("-m", "adtool", "check", "--format", "json", "--gate", gate, name)
    report = json.loads(done.stdout)
    assert not passing_errors(report)
    shown = done.stderr.partition("error: nothing was checked")[0]
    assert shown.strip(), "the sample printed nothing"
    loud = [f for f in report["findings"] if f["severity"] != "note"]
    if code == "passes":
        assert done.returncode == 0, done.stdout + done.stderr
        assert loud == []
        assert any(p["verdict"] == "pass" for x in report["launches"] for p in x["pairs"])
    elif (code, rest) == ("no", "tape"):
        assert done.returncode == 2, done.stdout + done.stderr
        assert report["error"]["kind"] == "no-tape"
    else:
        assert done.returncode == 1, done.stdout + done.stderr
        (found,) = loud
        assert (found["code"], found["severity"]) == (code, severity)
        assert Path(found["file"]).name == path.name
        source = path.read_text(encoding="utf-8").splitlines()
        assert source[found["line"] - 1].strip().startswith(line)


def test_all_are_listed() -> None:
    """samples/README.md has a row for each, and no other."""
    text = (SAMPLES / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `interop/(\w+\.py)` \|", text, re.MULTILINE)
    assert sorted(listed) == [p.name for p in INTEROP]
