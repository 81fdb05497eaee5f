"""Asks git what has changed, without running anything that the repository configures.

No hook, no pager, no file monitor, no diff or filter program is run, and nothing is fetched.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from adtool.exits import ToolError
from engine.classes import dataclass

_LIMIT = 300.0  # seconds
_SETTINGS = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.sshCommand=false",
    "core.askPass=false", "core.alternateRefsCommand=false",
)  # fmt: skip
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # Of a partial clone, git would fetch what it lacks, by a program of the repository's choice.
    "GIT_NO_LAZY_FETCH": "1",  # git 2.44, and what was mended since
    "GIT_ALLOW_PROTOCOL": "",  # none, whatever is configured
    "LC_ALL": "C",
}
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"


@dataclass(frozen=True, slots=True)
class Changes:
    """root: the repository's top folder. commit: the revision, resolved, or the empty tree where
    there is no commit yet. paths: absolute ones of files that were changed, added or removed since,
    committed or not; a folder among them stands for all in it.
    """

    root: str
    commit: str
    paths: frozenset[str]

    def has(self, path: str) -> bool:
        """Whether a file has changed: what the path names, or what it leads to."""
        return any(self._has(p) for p in {_named(path), os.path.realpath(path)})

    def _has(self, path: str) -> bool:
        while path not in self.paths:
            above = os.path.dirname(path)
            if above == path or path == self.root:
                return False
            path = above
        return True

    def inside(self, path: str) -> bool:
        """Whether a path lies in the repository."""
        return _named(path).startswith(os.path.join(self.root, ""))

    def before(self, path: str) -> bytes | None:
        """What a file contained at the revision; None where it was not there."""
        below = os.path.relpath(path, self.root).replace(os.sep, "/")
        done = _git(self.root, "cat-file", "blob", f"{self.commit}:{below}")
        return done.stdout if done.returncode == 0 else None


def _named(path: str) -> str:
    """The path with its folder resolved, but not what it names."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def changes_since(revision: str, folder: Path) -> Changes:
    """What has changed in the repository of a folder.

    Raises ToolError where there is no git, no repository, or no such revision.
    """
    if revision.startswith("-") or not revision.strip() or "\0" in revision:
        raise ToolError(f"--changed-since: {revision!r} is not a revision",
                        "name a commit, branch or tag, like origin/main")  # fmt: skip
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top.returncode != 0:
        said = _said(top)
        if "not a git repository" in said:
            raise ToolError(f"--changed-since: {folder} is not in a git repository",
                            "run it in a clone of the project")  # fmt: skip
        raise ToolError(f"--changed-since: git cannot read this repository: {said}", "",
                        "environment")  # fmt: skip
    root = os.path.realpath(os.fsdecode(top.stdout).rstrip("\n"))
    found = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    commit = found.stdout.decode("ascii", "replace").strip()
    if (found.returncode != 0 or not commit) and revision == "HEAD" and _is_new(root):
        commit = _git(root, "hash-object", "-t", "tree", os.devnull).stdout.decode().strip()
    elif found.returncode != 0 or not commit:
        raise _unknown(revision, root)
    filters = sorted(_filters(root, revision, set()))
    paths = {
        os.path.join(root, os.fsdecode(name).rstrip("/"))
        for arguments in (
            # Of a rename both names: scripts may import either.
            ("diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames",
             "--ignore-submodules=none", commit, "--"),
            ("ls-files", "--others", "--exclude-standard", "-z"),
        )
        for name in _listed(root, revision, *arguments, settings=filters)
    }  # fmt: skip
    return Changes(root, commit, frozenset(paths))


def _is_new(root: str) -> bool:
    """Whether the current branch has no commit yet: every file is then new."""
    return (
        _git(root, "symbolic-ref", "--quiet", "HEAD").returncode == 0
        and _git(root, "rev-list", "--all", "-n", "1").stdout == b""
    )


def _unknown(revision: str, root: str) -> ToolError:
    shallow = _git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
    help = "`git log` and `git branch --all` list the revisions"
    if shallow:
        help = (
            "this clone has only a part of the history: fetch all of it with `fetch-depth: 0` for "
            "actions/checkout, GIT_DEPTH: 0 on GitLab, or `git fetch --unshallow`"
        )
    return ToolError(f"--changed-since: the revision `{revision}` does not exist", help)


def _filters(root: str, revision: str, seen: set[str]) -> set[str]:
    """Settings that turn off all filters of files, those of submodules too, which git looks into.

    Git compares a file with what its filter makes of it. Without, a filtered file that was touched
    counts as changed.
    """
    real = os.path.realpath(root)
    if real in seen:
        return set()
    seen.add(real)
    found = set()
    done = _git(root, "config", "--includes", "--name-only", "-z", "--get-regexp", _FILTERS)
    for name in map(os.fsdecode, done.stdout.split(b"\0")):
        if "=" in name:  # `-c` would set another key
            raise ToolError(f"--changed-since: git's setting `{name}` cannot be turned off",
                            "give the filter a name without `=`", "environment")  # fmt: skip
        if name:
            found.add(name + ("=false" if name.endswith(".required") else "="))
    for entry in _listed(root, revision, "ls-files", "--stage", "-z"):
        about, _, path = entry.partition(b"\t")
        below = os.path.join(root, os.fsdecode(path))
        if about.startswith(b"160000 ") and os.path.lexists(os.path.join(below, ".git")):
            found |= _filters(below, revision, seen)
    return found


def _listed(root: str, revision: str, *arguments: str, settings: Sequence[str] = ()) -> list[bytes]:
    done = _git(root, *arguments, settings=settings)
    if done.returncode != 0:
        raise ToolError(
            f"--changed-since: git cannot list the changes since `{revision}`: {_said(done)}",
            _partial(root), "environment",
        )  # fmt: skip
    return [name for name in done.stdout.split(b"\0") if name]


def _partial(root: str) -> str:
    """What helps where objects are left out of a clone, of which none is fetched."""
    if _git(root, "config", "--get-regexp", r"^remote\..*\.promisor$").returncode != 0:
        return ""
    return ("this is a partial clone, and adtool does not fetch: run `git diff "
            "REVISION`, or clone without --filter")  # fmt: skip


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit code {done.returncode}"


def _git(
    folder: str | Path, *arguments: str, settings: Sequence[str] = ()
) -> subprocess.CompletedProcess[bytes]:
    env = {k: v for k, v in os.environ.items() if k not in ("GIT_EXTERNAL_DIFF", "GIT_PAGER")}
    env |= _ENVIRONMENT
    own = [word for setting in (*_SETTINGS, *settings) for word in ("-c", setting)]
    try:
        return subprocess.run(
            ["git", "--no-pager", *own, *arguments], cwd=folder, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=_LIMIT,
        )  # fmt: skip
    except FileNotFoundError:
        raise ToolError("--changed-since needs git, which is not installed", "install git",
                        "environment") from None  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"--changed-since: git cannot be run: {error}", "",
                        "environment") from None  # fmt: skip
