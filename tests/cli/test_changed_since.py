"""`adtool check --changed-since`, overrides and `scripts` of a project, as a user has them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adtool import schemas
from tests.executing import GOOD


@pytest.fixture
def project(adtool: Any) -> Any:
    """A repository with a.py, which imports helper.py, and b.py."""
    adtool.script("import helper\n" + GOOD, "a.py")
    adtool.script(GOOD, "b.py")
    adtool.script("", "helper.py")
    adtool.script(
        "[tool.adtool]\nscripts = ['[ab].py']\n[[tool.adtool.overrides]]\npaths = ['b.py']\n"
        "max-inputs = 1\ngate = 'note'\n",
        "pyproject.toml",
    )
    own = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        subprocess.run(["git", *own, *words], cwd=adtool.folder, check=True)
    return adtool


def test_nothing_touched_is_said(project: Any) -> None:
    done = project("check", "--changed-since", "HEAD")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "note: the changes since HEAD touch no script\n"
    data = project.report("--changed-since", "HEAD")
    assert (data["ok"], data["exit_code"], data["runs"]) == (True, 0, [])
    assert data["notes"] == ["the changes since HEAD touch no script"]
    for format in ("sarif", "junit", "markdown", "github"):
        assert project("check", "--changed-since", "HEAD", "--format", format).returncode == 0
    done = project("check", "--changed-since", "nowhere", "--format", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"] == (
        "--changed-since: the revision `nowhere` does not exist"
    )


def test_without_a_commit_all_files_are_new(adtool: Any) -> None:
    adtool.script(GOOD, "a.py")
    git(adtool.folder, "init", "-q")
    for words in ((), ("add", "-A")):
        if words:
            git(adtool.folder, *words)
        data = adtool.report("--changed-since", "HEAD", "--each", "a.py")
        assert [r["script"] for r in data["runs"]] == ["a.py"] and data["exit_code"] == 0
        assert data["notes"] == ["1 of 1 script is touched by the changes since HEAD"]
    done = adtool("check", "--changed-since", "main", "a.py")
    assert done.returncode == 2 and "the revision `main` does not exist" in done.stderr


def test_what_is_touched_is_checked(project: Any) -> None:
    project.script("x = 1\n", "helper.py")
    data = project.report("--changed-since", "HEAD")
    assert [r["script"] for r in data["runs"]] == ["a.py"]
    assert data["notes"] == ["1 of 2 scripts is touched by the changes since HEAD"]


def git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)


# Settings of a repository that have git run a program, which is put in the place of {}.
RUNNING = {
    "filter.x.clean": "{}",
    "filter.y.smudge": "{}",
    "filter.y.process": "{}",
    "filter.y.required": "true",
    "filter.z.w.clean": "{}",
    "core.fsmonitor": "{}",
    "core.sshCommand": "{}",
    "core.askPass": "{}",
    "core.alternateRefsCommand": "{}",
    "core.pager": "{}",
    "diff.external": "{}",
    "diff.d.command": "{}",
    "diff.d.textconv": "{}",
    "credential.helper": "!{}",
    "alias.diff": "!{}",
}
# Where a partial clone has its objects from.
FETCHING = [
    {"remote.origin.url": "ext::{} %S", "protocol.ext.allow": "always"},
    {"remote.origin.url": "ext::{} %S", "protocol.allow": "always"},
    {"remote.origin.url": "/", "remote.origin.uploadpack": "{}"},
    {"remote.origin.url": "file:///", "remote.origin.uploadpack": "{}"},
    {"remote.origin.url": "ssh://nowhere.invalid/x", "core.sshCommand": "{}"},
    {"remote.origin.url": "git://nowhere.invalid/x", "core.gitProxy": "{}"},
]


def marking(project: Any) -> tuple[str, Path]:
    """A program that leaves a mark, and that mark."""
    marker = project.folder / ".git" / "marker"
    program = project.script(f"#!/bin/sh\ntouch '{marker}'\nexit 1\n", ".git/program")
    program.chmod(0o755)
    return str(program), marker


def later(project: Any, name: str) -> None:
    """Gives a file another time, so that git looks into it."""
    os.utime(project.folder / name, (1, 1))


def test_no_program_of_the_repository_is_run(project: Any) -> None:
    program, marker = marking(project)
    (project.folder / ".gitattributes").write_text("a.py filter=x diff=d\nb.py filter=y diff=d\n"
                                                   "helper.py filter=z.w\n")  # fmt: skip
    git(project.folder, "add", ".gitattributes")
    git(project.folder, "commit", "-qm", "y")
    hooks = project.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").symlink_to(program)
    for name, value in RUNNING.items():
        git(project.folder, "config", name, value.format(program))
    for name in ("a.py", "b.py", "helper.py"):
        later(project, name)
    done = project("check", "--changed-since", "HEAD")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "note: the changes since HEAD touch no script\n"
    project.script("x = 1\n", "helper.py")
    data = project.report("--changed-since", "HEAD")
    assert [r["script"] for r in data["runs"]] == ["a.py"] and not marker.exists()
    # The same settings do run it: `git diff` for a user.
    later(project, "a.py")
    subprocess.run(["git", "diff"], cwd=project.folder, capture_output=True, check=False)
    assert marker.exists()


def test_no_filter_of_a_submodule_is_run(project: Any) -> None:
    program, marker = marking(project)
    below = project.folder / "below"
    below.mkdir()
    project.script("", "below/helper.py")
    project.script("*.py filter=own\n", "below/.gitattributes")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        git(below, *words)
    git(project.folder, "add", "below")
    git(project.folder, "commit", "-qm", "y")
    git(below, "config", "filter.own.clean", program)
    os.utime(below / "helper.py", (1, 1))
    done = project("check", "--changed-since", "HEAD")
    assert done.stdout == "note: the changes since HEAD touch no script\n"
    assert done.returncode == 0 and not marker.exists()
    subprocess.run(["git", "diff"], cwd=project.folder, capture_output=True, check=False)
    assert marker.exists()


def test_a_filter_that_cannot_be_turned_off_is_refused(project: Any) -> None:
    program, marker = marking(project)
    (project.folder / ".gitattributes").write_text("*.py filter=a=b\n")
    git(project.folder, "config", "filter.a=b.clean", program)
    later(project, "a.py")
    done = project("check", "--changed-since", "HEAD")
    assert done.returncode == 2 and "`filter.a=b.clean` cannot be turned off" in done.stderr
    assert not marker.exists()


@pytest.mark.parametrize("settings", FETCHING, ids=lambda s: "-".join(s.values())[:20])
def test_nothing_is_fetched(project: Any, settings: dict[str, str]) -> None:
    program, marker = marking(project)
    project.script("x = 1\n", "pyproject.toml")
    git(project.folder, "commit", "-qam", "y")
    config = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.fetch": "+refs/*:refs/o/*",
    }
    for name, value in (config | settings).items():
        git(project.folder, "config", name, value.format(program))
    project.script("x = 2\n", "helper.py")
    names = ("HEAD:pyproject.toml", "HEAD:helper.py", "HEAD^^{tree}")
    found = subprocess.run(["git", "rev-parse", *names], cwd=project.folder, capture_output=True,
                           text=True, check=True)  # fmt: skip
    gone = found.stdout.split()
    for name in (gone[0], gone[2]):
        (project.folder / ".git" / "objects" / name[:2] / name[2:]).unlink()
    data = project.report("--changed-since", "HEAD", "[ab].py")
    assert [r["script"] for r in data["runs"]] == ["a.py"]
    (project.folder / ".git" / "objects" / gone[1][:2] / gone[1][2:]).unlink()
    for revision in ("HEAD", "HEAD^"):
        done = project("check", "--changed-since", revision, "a.py")
        assert done.returncode == 2 and "partial clone" in done.stderr
    done = project("check", "--changed-since", "0123456789" * 4, "a.py")
    assert done.returncode == 2 and "` does not exist" in done.stderr
    assert not marker.exists()
    subprocess.run(["git", "cat-file", "-p", gone[1]],
                   cwd=project.folder, capture_output=True, check=False, timeout=5)  # fmt: skip
    assert marker.exists()  # a user's git does


def test_overrides_and_the_command_line(project: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="validates JSON by schemas")
    data = project.report()
    jsonschema.validate(data, json.loads(schemas.published("report")))
    assert [(r["script"], r["gate"]) for r in data["runs"]] == [("a.py", "error"), ("b.py", "note")]
    checked = [r["launches"][0]["pairs"][0]["checked"] for r in data["runs"]]
    assert checked == [9, 3]  # all of the Jacobian, and one column
    data = project.report("--gate", "warning", "b.py")
    assert (data["gate"], data["launches"][0]["pairs"][0]["checked"]) == ("warning", 3)


def test_schemas_are_printed(adtool: Any) -> None:
    adtool.script("[tool.adtool]\nbogus = 1\n", "pyproject.toml")
    for name in schemas.FILES:
        done = adtool("schema", name)
        assert done.returncode == 0 and json.loads(done.stdout)["$schema"] == schemas.DIALECT
    assert adtool("schema", "other").returncode == 2
