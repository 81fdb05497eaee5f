"""`adtool check --changed-since`, overrides and `scripts` of a project, as a user has them."""

from __future__ import annotations

import json
import subprocess
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
    assert done.stdout == "note: no script is touched by the changes since HEAD\n"
    data = project.report("--changed-since", "HEAD")
    assert (data["ok"], data["exit_code"], data["runs"]) == (True, 0, [])
    assert data["notes"] == ["no script is touched by the changes since HEAD"]
    for format in ("sarif", "junit", "markdown", "github"):
        assert project("check", "--changed-since", "HEAD", "--format", format).returncode == 0
    done = project("check", "--changed-since", "nowhere", "--format", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"] == (
        "--changed-since: there is no revision `nowhere` here"
    )


def test_what_is_touched_is_checked(project: Any) -> None:
    project.script("x = 1\n", "helper.py")
    data = project.report("--changed-since", "HEAD")
    assert [r["script"] for r in data["runs"]] == ["a.py"]
    assert data["notes"] == ["1 of 2 scripts is touched by the changes since HEAD"]


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
