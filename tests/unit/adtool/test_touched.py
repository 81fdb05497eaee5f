"""Targets that a change touches: files that git names, and files that import them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from adtool.exits import ToolError
from adtool.job import Target
from adtool.repository import changes_since
from adtool.touched import touched


def git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false",
           "-c", "protocol.file.allow=always")  # fmt: skip
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)


Files = Callable[..., Path]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Writes files (None: removes them) into a repository, which is the current folder."""
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q")
    monkeypatch.chdir(root)

    def write(commit: bool = False, **files: str | None) -> Path:
        for name, text in files.items():
            path = root / (name if "." in name else name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        if commit:
            git(root, "add", "-A")
            git(root, "commit", "-qm", "x", "--allow-empty")
        return root

    return write


def found(folder: Path, *names: str, revision: str = "HEAD") -> list[str]:
    targets = [Target(name) for name in names]
    return [t.name for t in touched(targets, revision, folder)[0]]


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("import lib.deep.low", "lib/deep/low.py"),
        ("import lib.deep.low", "lib/__init__.py"),
        ("import lib.deep.low as x, os", "lib/deep/__init__.py"),
        ("from lib.deep import low", "lib/deep/low.py"),
        ("from lib.deep.low import *", "lib/deep/low.py"),
        ("def f():\n    from lib import top", "lib/top.py"),
        ("from lib import top", "lib/deep/low.py"),  # through top
        ("from lib import dots", "lib/deep/low.py"),  # through relative imports
        ("import importlib; importlib.import_module('lib.deep.low')", "lib/deep/low.py"),
        ("from importlib import import_module as m, import_module; import_module('lib.top')",
         "lib/top.py"),
        ("__import__('lib.top')", "lib/top.py"),
        ("import sys; sys.path.insert(0, 'odd'); import hidden", "odd/place/hidden.py"),
        ("import gone", "gone.py"),
        ("import added", "added.py"),
    ],
)  # fmt: skip
def test_what_is_imported(repository: Files, line: str, changed: str) -> None:
    root = repository(
        s=line, other="import os, json\nimport lib.aside", lib__aside="",
        lib__top="from lib.deep import low", lib__dots="from . import middle",
        lib__middle="from .deep.low import x", lib__deep__low="x = 1",
        odd__place__hidden="", gone="",
    )  # fmt: skip
    for folder in ("lib", "lib/deep"):
        (root / folder / "__init__.py").write_text("")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    assert found(root, "s.py", "other.py") == []
    if changed == "gone.py":
        (root / changed).unlink()
    else:
        (root / changed).write_text("x = 2\n")
    # What is a part of `lib` itself touches all that import anything of it.
    assert found(root, "s.py", "other.py")[:1] == ["s.py"]
    assert ("other.py" in found(root, "s.py", "other.py")) == (changed == "lib/__init__.py")


def test_kinds_of_changes(repository: Files) -> None:
    root = repository(True, committed="", staged="", edited="", same="", old="x = 1\n" * 20)
    repository(True, committed="x = 1")
    repository(staged="x = 2")
    git(root, "add", "-A")
    repository(edited="x = 3", new="")
    git(root, "mv", "old.py", "moved.py")
    (root / "a b\nc.py").write_text("")
    every = ("committed.py", "staged.py", "edited.py", "same.py", "new.py", "moved.py", "a b\nc.py")
    assert found(root, *every, revision="HEAD~1") == [n for n in every if n != "same.py"]
    assert found(root, *every, revision="HEAD")[:1] == ["staged.py"]
    (root / "user.py").write_text("import old\n")
    (root / ".gitignore").write_text("user.py\n")
    assert found(root, "user.py") == ["user.py"]  # what it imports has another name now


def test_what_cannot_be_followed_counts_as_touched(repository: Files, tmp_path: Path) -> None:
    root = repository(True, broken="import (", user="import broken", fine="import json")
    assert found(root, "broken.py", "user.py", "fine.py") == ["broken.py", "user.py"]
    (tmp_path / "outside.py").write_text("")
    targets, notes = touched(
        [Target(str(tmp_path / "outside.py")), Target("fine.py")], "HEAD", root
    )
    assert [t.name for t in targets] == [str(tmp_path / "outside.py")]
    assert "not in the repository, so it is always checked" in notes[1]
    assert [t.name for t in touched([Target(None, "nowhere.at.all")], "HEAD", root)[0]] == [
        "-m nowhere.at.all"
    ]


def test_modules(repository: Files) -> None:
    root = repository(True, pack__part="", rest="", **{"pack/__main__.py": "import pack.part"})
    module = Target(None, "pack")
    assert touched([module], "HEAD", root)[0] == ()
    (root / "rest.py").write_text("x = 1")
    assert touched([module], "HEAD", root)[0] == ()
    (root / "pack" / "part.py").write_text("x = 1")
    assert touched([module], "HEAD", root)[0] == (module,)


def test_settings_touch_all(repository: Files) -> None:
    root = repository(True, s="", **{"pyproject.toml": "[tool.adtool]\ngate = 'note'\n"})
    project = root / "pyproject.toml"
    project.write_text("[project]\nname = 'x'\n[tool.adtool]\ngate = 'note'\n")
    assert found(root, "s.py") == []
    project.write_text("[tool.adtool]\ngate = 'error'\n")
    targets, notes = touched([Target("s.py")], "HEAD", root)
    assert len(targets) == 1 and "[tool.adtool] of pyproject.toml changed since" in notes[0]
    project.unlink()
    assert found(root, "s.py") == ["s.py"]


def test_a_submodule(repository: Files, tmp_path: Path) -> None:
    root = repository(True, s="import part.inner", t="")
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "inner.py").write_text("")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "x")
    git(root, "submodule", "add", "-q", str(inner), "part")
    git(root, "commit", "-qm", "with it")
    assert found(root, "s.py", "t.py") == []
    (root / "part" / "inner.py").write_text("x = 1")
    assert found(root, "s.py", "t.py") == ["s.py"]


def test_faults(repository: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(True, s="")
    repository(True, s="x = 1")
    for revision in ("--output=x", "-x", "", " "):
        with pytest.raises(ToolError, match="is not a revision"):
            changes_since(revision, root)
    with pytest.raises(ToolError, match="the revision `nowhere` does not exist"):
        changes_since("nowhere", root)
    with pytest.raises(ToolError, match="is not in a git repository"):
        changes_since("HEAD", tmp_path)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", root.as_uri(), str(shallow))
    with pytest.raises(ToolError) as caught:
        changes_since("HEAD~1", shallow)
    assert "fetch-depth: 0" in caught.value.help
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="needs git, which is not installed"):
        changes_since("HEAD", root)


def test_nothing_of_the_repository_is_run(repository: Files, tmp_path: Path) -> None:
    root = repository(True, s="x = 1")
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "diff.x.textconv",
                "diff.x.command"):  # fmt: skip
        git(root, "config", key, str(program))
    hooks = root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").symlink_to(program)
    (root / ".gitattributes").write_text("*.py diff=x\n")
    (root / "s.py").write_text("x = 2")
    assert found(root, "s.py") == ["s.py"]
    assert not ran.exists()
