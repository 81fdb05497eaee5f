"""A reader: an empty home with a fresh checkout, a plain shell, and a document to follow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tools.documents.comparison import same
from tools.documents.markdown import Block, Command, Document
from tools.documents.shell import ShellSession

_SYSTEM = "/usr/local/bin:/usr/bin:/bin"
# How this machine gets to packages is no part of what a document says.
_PASSED_ON = re.compile(r"PIP_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|(?i:https?|no|all)_proxy")
_SECONDS = 900.0
_COLUMNS = "88"


@dataclass(frozen=True)
class Step:
    """A command that was run. wrong: what is not as the document says; empty where all is."""

    command: Command
    printed: str
    code: int
    line: int

    @property
    def wrong(self) -> str:
        """Why the step fails: its exit code, or its output."""
        if self.code != self.command.code:
            return f"exit code {self.code}, the document says {self.command.code}"
        shown = self.command.shown
        return "" if shown is None or same(shown, self.printed) else "another output"


@dataclass
class Reader:
    """home: a folder of its own. venv: an environment to use in place of making one."""

    root: Path
    home: Path
    venv: Path | None = None
    steps: list[Step] = field(default_factory=list)

    def follow(self, document: Document) -> list[Step]:
        """Does what a document says, from top to end, and stops where a command fails.

        A file is a block with a title, a `diff` with a title changes it; commands are typed.
        Raises ValueError where the document cannot be followed.
        """
        checkout = self._fresh()
        steps: list[Step] = []
        with ShellSession(checkout, self._environment()) as shell:
            for block in document.blocks():
                if block.not_run:
                    continue
                if block.is_shell:
                    for command in block.commands():
                        steps.append(self._type(shell, command, block))
                        if steps[-1].code != command.code:
                            return steps
                elif block.title:
                    # Where the shell is by now.
                    where, _ = shell.run("pwd", _SECONDS)
                    _save(Path(where.strip()) / block.title, block)
        return steps

    def _type(self, shell: ShellSession, command: Command, block: Block) -> Step:
        printed, code = shell.run(self._without_setup(command.text), _SECONDS)
        printed = printed.replace(str(self.home), "/home/me")
        return Step(command, printed, code, block.line)

    def _without_setup(self, text: str) -> str:
        if self.venv is None:
            return text
        text = text.replace("python3 -m venv .venv", f"ln -sfn '{self.venv}' .venv")
        return re.sub(r"(\.venv/bin/)?pip install [^&\n]*", "true ", text)

    def _fresh(self) -> Path:
        """The checkout in a home with nothing else; an environment that was made in it stays."""
        checkout, kept = self.home / "adtool", self.home.with_name(self.home.name + "-venv")
        if (checkout / ".venv").is_dir() and not (checkout / ".venv").is_symlink():
            (checkout / ".venv").rename(kept)
        shutil.rmtree(self.home, ignore_errors=True)
        checkout.mkdir(parents=True)
        for name in _files(self.root):
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.root / name, checkout / name)
        git = ["git", "-C", str(checkout), "-c", "user.name=me", "-c", "user.email=me@example.org"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a clone"]):
            subprocess.run([*git, *words], check=True)
        if kept.exists():
            kept.rename(checkout / ".venv")
        return checkout

    def _environment(self) -> dict[str, str]:
        """What a shell has at its start: `python3`, and the system."""
        commands = self.home / ".local" / "bin"
        commands.mkdir(parents=True)
        base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        python = commands / "python3"
        python.write_text(f'#!/bin/sh\nexec "{base}" "$@"\n')
        python.chmod(0o755)
        env = {k: v for k, v in os.environ.items() if _PASSED_ON.fullmatch(k)}
        env |= {"HOME": str(self.home), "PATH": f"{commands}:{_SYSTEM}", "LANG": "C.UTF-8",
                "COLUMNS": _COLUMNS, "TMPDIR": str(self.home / "tmp")}  # fmt: skip
        (self.home / "tmp").mkdir()
        for name in ("adtool", "pytest"):
            if found := shutil.which(name, path=env["PATH"]):
                raise ValueError(f"{found} is on the PATH: a document could lean on it")
        return env


def _files(root: Path) -> list[str]:
    """Files of a checkout that git tracks, or would."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    return [name for name in listed if name and (root / name).is_file()]


def _save(path: Path, block: Block) -> None:
    """Writes a file, or changes one. Raises ValueError where the text to change is not there."""
    if block.language != "diff":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text + "\n", encoding="utf-8")
        return
    lines = block.text.splitlines()
    old = "".join(f"{x[1:]}\n" for x in lines if x.startswith("-"))
    new = "".join(f"{x[1:]}\n" for x in lines if x.startswith("+"))
    before = path.read_text(encoding="utf-8")
    if before.count(old) != 1:
        raise ValueError(f"line {block.line}: {path.name} does not have exactly once: {old}")
    path.write_text(before.replace(old, new), encoding="utf-8")
