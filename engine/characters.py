"""Removes control characters from foreign text before terminals and logs get it.

A name, a setting, a message or a line of source may hold what drives a terminal (ESC and other
controls, marks that turn the direction of text), and line ends, after which a log of GitHub Actions
takes `::error::` or `##[error]` for a command. All that is printed goes through here.
"""

from __future__ import annotations

import re

__all__ = ["clean", "line", "of_json", "spelled"]

# What a log would obey: `::` at the beginning of a line, behind blanks too, and `##[` anywhere.
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|##(?=\[)", re.MULTILINE)


def spelled(text: str) -> str:
    """The text with all that has no shape of its own as escapes, but for line ends and tabs.

    A tab is a space. Half characters (of file names that are no UTF-8) are escapes, too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else _escape(c) for c in text)


def _escape(c: str) -> str:
    if c == "\t":
        return " "
    number = ord(c)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def clean(text: str) -> str:
    """The same for lines that are printed as they are: none is a command to a log."""
    return _COMMAND.sub(_harmless, spelled(text))


def _harmless(found: re.Match[str]) -> str:
    return "#\\x23" if found[0] == "##" else f"{found[1]}\\x3a"


def line(text: str) -> str:
    """The same as one line, with line ends spelt out: for a message with words of others."""
    return clean(text.replace("\r\n", "\n").replace("\n", "\\n"))


def of_json(text: str) -> str:
    """A text of JSON in ASCII, of the same data, in which a log finds no command."""
    return text.replace("##[", "##\\u005b")
