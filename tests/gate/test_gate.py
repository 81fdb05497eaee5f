"""The sample repository's gate, run as a user's: green, and red with a spoiled gradient."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.gate.machine import Machine

yaml = pytest.importorskip("yaml", reason="pyyaml is in the extra `ci`")

KERNELS = "src/springs/kernels.py"
INSTALL = "python -m pip install --quiet -e ."  # the project, as the workflow does
RIGHT = "wp.adjoint[stretch] += adj_ret * stretch / root"
WRONG = "wp.adjoint[stretch] += adj_ret * stretch / (root * root)"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with nothing in it: its folder of commands."""
    folder = tmp_path_factory.mktemp("environment")
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    subprocess.run([base, "-m", "venv", str(folder)], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def filled(environment: Path, tmp_path_factory: pytest.TempPathFactory, root: Path) -> Machine:
    """A machine that has run the workflow as it stands, and so filled the environment."""
    machine = Machine.at(tmp_path_factory.mktemp("first"), root, environment)
    machine.github(workflow(machine))
    return machine


@pytest.fixture
def machine(filled: Machine, environment: Path, tmp_path: Path, root: Path) -> Machine:
    """A machine on which earlier steps have installed adtool and pytest."""
    return Machine.at(tmp_path, root, environment)


def workflow(machine: Machine, install: bool = True) -> Any:
    """That of the sample repository. install: as it stands; or an earlier step installed adtool."""
    found = yaml.safe_load((machine.home / ".github/workflows/gradients.yml").read_text())
    if not install:
        (gate,) = [s for s in found["jobs"]["gradients"]["steps"] if s.get("id") == "gate"]
        gate["with"]["install"] = "false"
    return found


def gitlab_job(machine: Machine) -> dict[str, Any]:
    """The job of the sample's file over that of the template, as GitLab merges them.

    The address of adtool's repository, which no machine here can reach, is that of the checkout.
    """
    own = yaml.safe_load((machine.home / ".gitlab-ci.yml").read_text())
    (included,) = own["include"]
    job = yaml.safe_load((machine.root / included["file"]).read_text())["adtool"]
    variables = {**job["variables"], **own["adtool"]["variables"]}
    address, rest = variables["ADTOOL_PACKAGES"].split("\n", 1)
    assert address == "git+https://HOST/GROUP/adtool"
    variables["ADTOOL_PACKAGES"] = f"{machine.root}\n{rest}"
    return {**job, **own["adtool"], "variables": variables}


def test_the_workflow_is_green(filled: Machine) -> None:
    machine = filled
    assert machine.outcome == "success", machine.out
    assert machine.outputs["gate"]["exit-code"] == "0"
    assert machine.ran[-1] == "Tests"
    assert "::error" not in machine.out
    assert "2 tests, 2 tapes, 2 launches, 4 pairs checked: passed" in machine.out
    files = machine.uploads["actions/upload-artifact"]
    assert set(files) == {"report.json", "report.sarif", "junit.xml", "report.html"}
    report = json.loads(files["report.json"])
    assert (report["ok"], report["findings"]) == (True, [])
    (sarif,) = machine.uploads["github/codeql-action/upload-sarif"].values()
    assert json.loads(sarif)["runs"][0]["results"] == []
    cases = list(ElementTree.fromstring(files["junit.xml"]).iter("testcase"))
    assert cases
    assert not any(case.findall("failure") for case in cases)
    assert machine.summary
    assert machine.outputs["page"]["html"]


def test_a_spoiled_gradient_turns_the_workflow_red(machine: Machine) -> None:
    machine.change(KERNELS, RIGHT, WRONG)
    machine.github(workflow(machine))
    assert machine.outcome == "failure"
    assert machine.outputs["gate"]["exit-code"] == "1"
    assert machine.outputs["page"]["html"]
    # Annotations are on the line of the change, and the summary says what is wrong.
    notes = [x for x in machine.out.splitlines() if x.startswith("::error ")]
    assert any(f"file={KERNELS}" in x and "line=14" in x and "G001" in x for x in notes), notes
    assert "G001" in machine.summary
    # Uploads come all the same.
    files = machine.uploads["actions/upload-artifact"]
    (sarif,) = machine.uploads["github/codeql-action/upload-sarif"].values()
    (result,) = json.loads(sarif)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert result["ruleId"] == "G001"
    assert place["artifactLocation"]["uri"] == KERNELS
    assert place["region"]["startLine"] == 14
    failures = list(ElementTree.fromstring(files["junit.xml"]).iter("failure"))
    assert failures
    page = files["report.html"].decode()
    assert "G001" in page
    assert "adj_softened" in page
    # The tests say it, too: of the two that make tapes, and of the one that asks.
    assert machine.ran[-1] == "Tests"
    tests = ElementTree.parse(machine.home / "tests.xml").getroot()
    failed = {c.get("name") for c in tests.iter("testcase") if c.findall("failure")}
    assert failed == {
        "test_energy_is_not_negative[1]", "test_energy_is_not_negative[4]", "test_gradient",
    }  # fmt: skip


def test_a_script_that_fails_turns_the_workflow_red(machine: Machine) -> None:
    machine.change("scripts/fit.py", "COUNT = 8", "COUNT = unknown")
    machine.github(workflow(machine, install=False))
    assert machine.outcome == "failure"
    assert machine.outputs["gate"]["exit-code"] == "2"


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_gitlab_job(machine: Machine, shell: str) -> None:
    if shell == "bash":  # the other colour by the other shell: one run each
        machine.change(KERNELS, RIGHT, WRONG)
    machine.gitlab(gitlab_job(machine), shell)
    assert machine.outcome == ("failure" if shell == "bash" else "success"), machine.out
    cases = list(ElementTree.fromstring(machine.uploads["junit"]["junit.xml"]).iter("testcase"))
    assert cases
    assert any(c.findall("failure") for c in cases) == (shell == "bash")
    assert (machine.home / "adtool-reports" / "report.html").read_text().startswith("<!")
    report = json.loads((machine.home / "adtool-reports" / "report.json").read_text())
    assert report["exit_code"] == int(shell == "bash")
    assert "G001" * (shell == "bash") in machine.out


def test_the_hook_before_a_commit(machine: Machine) -> None:
    (hook, _) = yaml.safe_load((machine.root / ".pre-commit-hooks.yaml").read_text())
    config = yaml.safe_load((machine.home / ".pre-commit-config.yaml").read_text())
    (own,) = config["repos"][0]["hooks"]
    files = ["README.md", KERNELS, "scripts/fit.py", "tests/test_springs.py"]
    machine.shell(INSTALL)
    assert machine.hook(hook, own, files) == 0, machine.out
    assert machine.hook(hook, own, ["README.md", KERNELS]) == 0  # none of its files
    machine.change(KERNELS, RIGHT, WRONG)
    assert machine.hook(hook, own, files) == 1
    assert "error[G001]" in machine.out


def test_the_hook_of_what_a_change_touches(machine: Machine) -> None:
    machine.shell(INSTALL)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "add", "."], cwd=machine.home, check=True)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=machine.home, check=True)
    (_, hook) = yaml.safe_load((machine.root / ".pre-commit-hooks.yaml").read_text())
    own = {"args": ["scripts"]}
    machine.change("README.md", "springs", "Springs")
    assert machine.hook(hook, own, ["tests/test_springs.py"]) == 0, machine.out
    assert "G001" not in machine.out
    machine.change(KERNELS, RIGHT, WRONG)  # the script imports it
    assert machine.hook(hook, own, [KERNELS]) == 1, machine.out
    assert "error[G001]" in machine.out


@pytest.mark.slow
def test_pre_commit_itself_runs_the_hook(machine: Machine, tmp_path: Path) -> None:
    """By `pre-commit try-repo`, with the environment of the tests in place of one of its own."""
    pytest.importorskip("pre_commit", reason="pre-commit is in the extra `ci`")
    machine.shell(INSTALL)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    text = (machine.root / ".pre-commit-hooks.yaml").read_text()
    (hooks / ".pre-commit-hooks.yaml").write_text(
        text.replace("language: python", "language: system").replace("^check", "^fit")
        .replace("check_gradients", "fit")
    )  # fmt: skip
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for place in (hooks, machine.home):
        subprocess.run(["git", "init", "-q", "."], cwd=place, check=True)
        subprocess.run([*git, "add", "."], cwd=place, check=True)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=hooks, check=True)
    env = machine.env | {"PRE_COMMIT_HOME": str(tmp_path / "home")}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), "adtool", "--all-files"],
            cwd=machine.home, env=env, text=True, capture_output=True, check=False,
        )  # fmt: skip

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    machine.change(KERNELS, RIGHT, WRONG)
    done = run()
    assert done.returncode == 1
    assert "error[G001]" in done.stdout


# The same function and gradient, with cancellation: accuracy alone gets worse.
WORSE = (
    "root = wp.sqrt(1.0 + ratio * ratio)\n    wp.adjoint[stretch] += adj_ret * stretch / root",
    "root = (wp.sqrt(1.0 + ratio * ratio) + 512.0) - 512.0\n"
    "    wp.adjoint[stretch] += adj_ret * stretch / root",
)


def test_a_regression_in_accuracy_alone_turns_the_workflow_red(machine: Machine) -> None:
    """Same derivative, worse rounding: no finding, but more digits lost than in the baseline."""
    machine.shell(f"{INSTALL}\nadtool baseline write -q --each scripts/fit.py -- 2")
    assert str(machine.home) not in (machine.home / "adtool-baseline.jsonl").read_text()
    steps = workflow(machine, install=False)
    # The tests of the repository know nothing of a baseline.
    (*_, gate, tests) = steps["jobs"]["gradients"]["steps"]
    assert (gate["id"], tests["name"]) == ("gate", "Tests")
    gate["with"]["baseline"] = "adtool-baseline.jsonl"
    del steps["jobs"]["gradients"]["steps"][-1]
    machine.github(steps)
    assert machine.outcome == "success", machine.out
    machine.change(KERNELS, *WORSE)
    machine.github(steps)
    assert machine.outcome == "failure"
    assert machine.outputs["gate"]["exit-code"] == "1"
    files = machine.uploads["actions/upload-artifact"]
    report = json.loads(files["report.json"])
    found = report["findings"]
    assert [(f["code"], f["severity"], f["kernel"]) for f in found] == [
        ("G015", "error", "energy")
    ]  # and so there is no other
    assert "digits lost" in found[0]["message"]
    verdicts = {p["verdict"] for x in report["launches"] for p in x["pairs"]}
    assert verdicts == {"pass"}
    (sarif,) = machine.uploads["github/codeql-action/upload-sarif"].values()
    assert [r["ruleId"] for r in json.loads(sarif)["runs"][0]["results"]] == ["G015"]
    assert list(ElementTree.fromstring(files["junit.xml"]).iter("failure"))
    assert "G015" in files["report.html"].decode()
    assert "G015" in machine.summary
