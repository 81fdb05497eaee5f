"""Every sample runs by plain Python, and `adtool check` says of it what samples/README.md says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
GOOD = sorted(p.name for p in SAMPLES.glob("*.py") if not p.name.startswith("broken_"))
BROKEN = {
    "broken_wrong_gradient.py": "G001",
    "broken_nan_gradient.py": "G002",
    "broken_overwrite.py": "G003",
    "broken_missing_requires_grad.py": "G004",
    "broken_out_of_bounds.py": "G008",
    "broken_data_race.py": "G009",
}
NOT_SEEN_YET = {
    "G003": "overwritten arrays are not tracked yet: the whole is seen to be wrong (G010)",
    "G004": "broken paths are not looked for yet: the whole is seen to be wrong (G010)",
}
TIMEOUT = 300.0


def run_python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args],
        cwd=SAMPLES.parent,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT,
    )


def check(name: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Runs `adtool check` on a sample. Returns the finished process and its JSON report."""
    path = str(Path("samples") / name)
    done = run_python("-m", "adtool", "check", "--format", "json", path)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        report = {}
    return done, report


def broken_params() -> list[Any]:
    marks = {
        code: pytest.mark.xfail(reason=reason, strict=True) for code, reason in NOT_SEEN_YET.items()
    }
    return [
        pytest.param(name, code, id=name, marks=[marks[code]] if code in marks else [])
        for name, code in BROKEN.items()
    ]


def test_every_sample_is_covered() -> None:
    assert {p.name for p in SAMPLES.glob("*.py")} == {*GOOD, *BROKEN}
    assert len(GOOD) == 8


@pytest.mark.parametrize("name", [*GOOD, *BROKEN])
def test_runs_by_plain_python(name: str) -> None:
    done = run_python(str(SAMPLES / name))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not done.stderr.strip()


@pytest.mark.parametrize("name", GOOD)
def test_good_sample_is_clean(name: str) -> None:
    done, report = check(name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["ok"] is True
    assert [f for f in report["findings"] if f["severity"] == "error"] == []
    pairs = [pair for launch in report["launches"] for pair in launch["pairs"]]
    assert sum(pair["checked"] for pair in pairs) > 0
    assert {pair["verdict"] for pair in pairs} <= {"pass", "skipped"}


@pytest.mark.parametrize(("name", "code"), broken_params())
def test_broken_sample_is_found_out(name: str, code: str) -> None:
    done, report = check(name)
    assert done.returncode == 1, done.stdout + done.stderr
    errors = {f["code"] for f in report["findings"] if f["severity"] == "error"}
    assert errors == {code}


@pytest.mark.parametrize(
    ("name", "kernel", "words"),
    [
        ("broken_overwrite.py", "simulate", "`force` of kernel `simulate` in launch 17"),
        ("broken_missing_requires_grad.py", "miss", "no gradient flows to it"),
    ],
)
def test_a_wrong_whole_is_seen(name: str, kernel: str, words: str) -> None:
    done, report = check(name)
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = [f for f in report["findings"] if f["severity"] == "error"]
    assert (found["code"], found["kernel"]) == ("G010", kernel)
    assert words in found["message"]
    assert {e["verdict"] for e in report["end_to_end"]} == {"fail"}
    assert {p["verdict"] for x in report["launches"] for p in x["pairs"]} <= {"pass", "skipped"}


def test_wrong_gradient_is_located() -> None:
    """The finding names the kernel whose function has the wrong gradient, and a place in it."""
    _, report = check("broken_wrong_gradient.py")
    found = next(f for f in report["findings"] if f["code"] == "G001")
    assert found["kernel"] == "robust_loss"
    assert Path(found["file"]).name == "broken_wrong_gradient.py"
    source = (SAMPLES / "broken_wrong_gradient.py").read_text().splitlines()
    assert 1 <= found["line"] <= len(source)


def test_readme_table_agrees_with_the_tests() -> None:
    """samples/README.md lists each sample, its finding and whether it is seen yet."""
    text = (SAMPLES / "README.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+\.py)` \|(.*)\|$", text, re.MULTILINE))
    assert set(rows) == {*GOOD, *BROKEN}
    for name, code in BROKEN.items():
        assert code in rows[name]
        assert ("not yet" in rows[name]) == (code in NOT_SEEN_YET)
