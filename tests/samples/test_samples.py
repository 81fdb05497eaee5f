"""Every sample runs by plain Python, and `adtool check` says of it what samples/README.md says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.invariants import passing_errors
from tests.sweeps import reduced

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
GOOD = sorted(p.name for p in SAMPLES.glob("*.py") if not p.name.startswith("broken_"))
PLUME = "wp.launch(plume, dim=(SIDE, SIDE), inputs=[place, rate], outputs=[grid])"
# Of each broken one: the finding, its severity, and the start of the line that it is at.
BROKEN = {
    "broken_wrong_gradient.py": ("G001", "error", "def adj_pseudo_huber("),
    "broken_nan_gradient.py": ("G002", "error", "out[i] = wp.sqrt(wp.dot(d, d))"),
    "broken_overwrite.py": ("G003", "error", "wp.launch(compute_forces,"),
    "broken_missing_requires_grad.py": ("G004", "error", "wp.launch(fly,"),
    "broken_kink.py": ("G005", "note", "depth += wp.max(absorption[k], 0.0)"),
    "broken_inconclusive.py": ("G006", "warning", "def stir("),
    "broken_nondeterministic.py": ("G007", "warning", "def noisy_scores("),
    "broken_out_of_bounds.py": ("G008", "error", "right = before[rod, i + 1]"),
    "broken_data_race.py": ("G009", "error", "force[i] = force[i] + d"),
    "broken_composition.py": (
        "G010",
        "error",
        "wp.launch(plume, dim=(SIDE, SIDE), inputs=[place, rate]",
    ),
    "broken_rounding.py": ("G011", "warning", "def path_difference("),
    "broken_unchecked.py": ("G012", "warning", "tape.record_func(room.backward,"),
    "broken_stale_gradient.py": ("G013", "error", "tape.backward(loss)"),
    "broken_unassigned_read.py": ("G014", "warning", "cost[i] = drag + 2.0 * time"),
}
# What the engine itself says of a sample, while plain Python runs it.
TOLD = {"broken_unassigned_read.py": "`drag` may be read before it has a value"}
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


@cache
def check(name: str, gate: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Runs `adtool check` on a sample. Returns the finished process and its JSON report."""
    path = str(Path("samples") / name)
    done = run_python("-m", "adtool", "check", "--format", "json", "--gate", gate, path)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
        assert not passing_errors(report)
    except json.JSONDecodeError:
        report = {}
    return done, report


def test_every_sample_is_covered() -> None:
    assert {p.name for p in SAMPLES.glob("*.py")} == {*GOOD, *BROKEN}
    assert len(GOOD) == 8


def test_there_is_a_broken_sample_for_each_finding() -> None:
    documented = run_python("-m", "adtool", "explain")
    codes = set(re.findall(r"\bG\d{3}\b", documented.stdout))
    # By a baseline, by an accuracy of the gate, and by --as-run (of a fault of the engine).
    asked_for = {"G015", "G016", "G018"}
    assert asked_for < codes
    assert sorted(code for code, _, _ in BROKEN.values()) == sorted(codes - asked_for)


# The check runs the broken ones, too.
@pytest.mark.parametrize("name", reduced([*GOOD, *BROKEN], lambda name: name in {*GOOD, *TOLD}))
def test_runs_by_plain_python(name: str) -> None:
    done = run_python(str(SAMPLES / name))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if name in TOLD:
        assert TOLD[name] in done.stderr
    else:
        assert not done.stderr.strip()


@pytest.mark.parametrize("name", GOOD)
def test_good_sample_is_clean(name: str) -> None:
    done, report = check(name, gate="warning")
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["ok"] is True
    assert [f for f in report["findings"] if f["severity"] != "note"] == []
    pairs = [pair for launch in report["launches"] for pair in launch["pairs"]]
    assert sum(pair["checked"] for pair in pairs) > 0
    assert {pair["verdict"] for pair in pairs} <= {"pass", "skipped"}


@pytest.mark.host("arrays of NumPy that are views", only=("broken_composition.py",))
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sample_is_found_out(name: str) -> None:
    """It fails at the gate of its finding, which is at its line, and is the only one so severe."""
    code, severity, line = BROKEN[name]
    done, report = check(name, gate=severity)
    assert done.returncode == 1, done.stdout + done.stderr
    own = [f for f in report["findings"] if (f["code"], f["severity"]) == (code, severity)]
    others = [f for f in report["findings"] if f not in own]
    assert [f for f in others if f["severity"] != "note"] == []
    source = (SAMPLES / name).read_text().splitlines()
    assert len(own) == 1
    assert Path(own[0]["file"]).name == name
    assert source[own[0]["line"] - 1].strip().startswith(line)


@pytest.mark.parametrize("name", [n for n, (_, level, _) in BROKEN.items() if level != "error"])
def test_what_is_no_error_passes_the_default_gate(name: str) -> None:
    done, report = check(name, gate="error")
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["ok"] is True
    assert [f for f in report["findings"] if f["severity"] == "error"] == []


@pytest.mark.host("arrays of NumPy that are views", only=("broken_composition.py",))
@pytest.mark.parametrize(
    ("name", "kernel", "words"),
    [
        ("broken_wrong_gradient.py", "robust_loss", "d loss[0] / d residual["),
        ("broken_overwrite.py", "simulate", "overwritten by kernel `compute_forces` in launch 18"),
        ("broken_missing_requires_grad.py", "fly", "it has no requires_grad"),
        ("broken_composition.py", "plume", "shares memory with another array"),
    ],
)
def test_the_cause_is_named(name: str, kernel: str, words: str) -> None:
    _, report = check(name, gate="error")
    (found,) = [f for f in report["findings"] if f["severity"] == "error"]
    assert found["kernel"] == kernel
    assert words in found["message"]


@pytest.mark.host("arrays of NumPy that are views", only=("broken_composition.py",))
@pytest.mark.parametrize(
    "name", ["broken_overwrite.py", "broken_missing_requires_grad.py", "broken_composition.py"]
)
def test_a_wrong_whole_is_seen(name: str) -> None:
    """Where every launch is right by itself."""
    _, report = check(name, gate="error")
    assert {e["verdict"] for e in report["end_to_end"]} == {"fail"}
    assert {p["verdict"] for x in report["launches"] for p in x["pairs"]} <= {"pass", "skipped"}


def test_a_seed_makes_the_unchecked_sample_checked(tmp_path: Path) -> None:
    """As its text says: with a seed, the program can be run again, and its gradient is right."""
    text = (SAMPLES / "broken_unchecked.py").read_text()
    assert text.count("default_rng()") == 1
    seeded = tmp_path / "seeded.py"
    seeded.write_text(text.replace("default_rng()", "default_rng(38)"))
    done = run_python("-m", "adtool", "check", "--format", "json", "--gate", "warning", str(seeded))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [e["verdict"] for e in json.loads(done.stdout)["end_to_end"]] == ["pass"]


def test_readme_table_agrees_with_the_tests() -> None:
    """samples/README.md lists each sample with its finding, severity and docstring's gate."""
    text = (SAMPLES / "README.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+\.py)` \|(.*)\|$", text, re.MULTILINE))
    assert set(rows) == {*GOOD, *BROKEN}
    for name, (code, severity, _) in BROKEN.items():
        assert f"{code} " in rows[name]
        assert rows[name].split("|")[-1].strip() == severity
        source = (SAMPLES / name).read_text()
        assert code in source.split('"""')[1]
        assert (f"`adtool check --gate {severity}`" in " ".join(source.split())) == (
            severity != "error"
        )
