"""Prints plain lines of commands, with control characters removed."""

from __future__ import annotations

import sys
from typing import TextIO

from engine.characters import line


def say(*lines: str, file: TextIO | None = None) -> None:
    """Prints lines, to standard output as a rule. Line ends in one are spelt out.

    Raises OSError where it cannot be written.
    """
    stream = sys.stdout if file is None else file
    for text in lines:
        stream.write(line(text) + "\n")
    stream.flush()
