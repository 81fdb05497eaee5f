"""Escapes the user's text in Markdown: no markup, links or mentions."""

from __future__ import annotations

import re

from engine.characters import clean

_BREAK = "\u200b"  # no width; parts what would be made a link
_MARKUP = re.compile(r"[\\`*_\[\]|~>$]")
_CODE = re.compile(r"`([^`\n]+)`")


def escaped(text: str) -> str:
    """Text of one line (line ends are spaces) as text, in paragraphs and cells of tables."""
    text = " ".join(clean(text).split("\n"))
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    text = _MARKUP.sub(lambda m: "\\" + m[0], text)
    text = re.sub(r"[@#](?=\w)", lambda m: m[0] + _BREAK, text)
    text = re.sub(r":(?=//)|\bwww(?=\.)", lambda m: m[0] + _BREAK, text)
    # At the start of a line: a list, a heading, a rule.
    return re.sub(r"^(\s*(?:\d+(?=[.)])|(?=[-+=#])))(.)", r"\1\\\2", text)


def code(text: str, cell: bool = False) -> str:
    """The same as a code span. cell: in a table, where a bar would end the cell."""
    text = " ".join(clean(text).split("\n"))
    if not text.strip():
        return escaped(text)
    if cell and "|" in text:  # what stands before the bar might escape its escape
        return f"<code>{escaped(text)}</code>"
    ticks = "`" * (longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or text[:1] + text[-1:] == "  " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def prose(text: str, cell: bool = False) -> str:
    """A message: what stands in backquotes is code, all else is text."""
    parts = _CODE.split(" ".join(text.split("\n")))
    return "".join(code(p, cell) if i % 2 else escaped(p) for i, p in enumerate(parts))


def fenced(lines: list[str], language: str = "") -> str:
    """Lines as a block of code, whatever they hold."""
    cleaned = [clean(line.replace("\n", " ")) for line in lines]
    fence = "`" * max(3, longest_run("\n".join(cleaned)) + 1)
    return "\n".join([fence + language, *cleaned, fence])


def longest_run(text: str) -> int:
    """The length of the longest run of backquotes."""
    return max(map(len, re.findall("`+", text)), default=0)
