"""A document: its fenced blocks, the commands in them, and the output that it shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# On the line before a block; an exit code is that of its last command.
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
_EXIT = re.compile(r"<!-- exit code (\d+) -->")
_OPENS = re.compile(r'^( *)```(\w*)(?: title="([^"]+)")?\s*$')
_SHELL = ("sh", "bash", "console")


@dataclass(frozen=True)
class Command:
    """A command. shown: the output under it; None where the document shows commands alone.

    first, last: where the shown lines are in the document, as a slice. code: its exit code.
    """

    text: str
    shown: str | None
    first: int
    last: int
    code: int = 0


@dataclass(frozen=True)
class Block:
    """A fenced block. line: of its fence, from 1. not_run: the reason, or nothing."""

    language: str
    title: str
    text: str
    line: int
    not_run: str
    code: int

    @property
    def is_shell(self) -> bool:
        """Whether a reader would type what is in it."""
        return self.language in _SHELL or (self.language == "text" and self.text.startswith("$ "))

    @property
    def has_prompts(self) -> bool:
        """Whether commands stand behind `$ `, with their output below."""
        return self.text.startswith("$ ")

    def commands(self) -> list[Command]:
        """What to type, in order. Raises ValueError where the block is neither of both forms."""
        lines = self.text.splitlines()
        if not self.has_prompts:
            if self.language == "console":
                raise ValueError(f"line {self.line}: a block `console` begins with `$ `")
            found = [Command(t, None, 0, 0) for t in _joined(lines) if not t.startswith("#")]
        else:
            starts = [k for k, line in enumerate(lines) if line.startswith("$ ")]
            found = []
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
                more = start + 1
                while lines[more - 1].endswith("\\"):
                    more += 1
                text = "\n".join([lines[start][2:], *lines[start + 1 : more]])
                shown = "\n".join(lines[more:end])
                if shown.split("\n").count("...") > 1:
                    raise ValueError(f"line {self.line}: more than one `...` under a command")
                found.append(Command(text, shown, self.line + more, self.line + end))
        for k, command in enumerate(found[:-1]):  # `echo $?` shows it
            if found[k + 1].text == "echo $?":
                code = int(found[k + 1].shown or 0)
                found[k] = Command(command.text, command.shown, command.first, command.last, code)
        last = found[-1]
        found[-1] = Command(last.text, last.shown, last.first, last.last, self.code or last.code)
        return found


@dataclass(frozen=True)
class Document:
    """A Markdown file. name: its path from the root of the checkout."""

    name: str
    text: str

    @classmethod
    def read(cls, root: Path, name: str) -> Document:
        """Reads one."""
        return cls(name, (root / name).read_text(encoding="utf-8"))

    def blocks(self) -> list[Block]:
        """Its fenced blocks, from top to end. Raises ValueError for one that does not end."""
        lines = self.text.splitlines()
        found, k = [], 0
        while k < len(lines):
            opened = _OPENS.match(lines[k])
            if opened is None:
                k += 1
                continue
            space, language, title = opened[1], opened[2], opened[3] or ""
            try:
                end = lines.index(space + "```", k + 1)
            except ValueError:
                raise ValueError(f"{self.name}:{k + 1}: a block that does not end") from None
            marks = "\n".join(lines[max(0, k - 2) : k])
            marks = marks[marks.rfind("```") + 3 :] if "```" in marks else marks
            not_run, code = _NOT_RUN.search(marks), _EXIT.search(marks)
            text = "\n".join(line.removeprefix(space) for line in lines[k + 1 : end])
            found.append(
                Block(language, title, text, k + 1, not_run[1] if not_run else "",
                      int(code[1]) if code else 0)
            )  # fmt: skip
            k = end + 1
        return found

    def not_run(self) -> list[Block]:
        """Blocks that a reader would type, and that are marked as not run."""
        return [b for b in self.blocks() if b.is_shell and b.not_run]


def _joined(lines: list[str]) -> list[str]:
    """Commands: lines, put together where one ends in a backslash."""
    found: list[str] = []
    for line in lines:
        if found and found[-1].endswith("\\"):
            found[-1] += "\n" + line
        elif line.strip():
            found.append(line)
    return found
