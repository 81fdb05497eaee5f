"""Applies edits to the bytes of a file, and prints unified diffs."""

from __future__ import annotations

import codecs
import difflib
import io
import os
import re
import tokenize
from collections.abc import Iterable, Sequence

from adtool.report import Edit

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class EditError(Exception):
    """A file is no text, or has no such place."""


def applied(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The file with edits that do not overlap. Its encoding, its mark of one, and its ends of lines
    stay as they are; new lines end as those beside them.

    Raises EditError.
    """
    encoding = _encoding(data)
    marked = data.startswith(codecs.BOM_UTF8)
    try:
        text = data[3 * marked :].decode(encoding)
        lines = _LINE.findall(text)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        for e in sorted(edits, key=_begin, reverse=True):
            first = _offset(lines, starts, e.line, e.column)
            last = _offset(lines, starts, e.end_line, e.end_column)
            near = lines[min(e.line, len(lines)) - 1] if lines else "\n"
            end = near[len(near.rstrip("\r\n")) :] or _usual_end(lines)
            text = text[:first] + e.text.replace("\n", end) + text[last:]
        return codecs.BOM_UTF8 * marked + text.encode(encoding)
    except (UnicodeError, LookupError) as error:
        raise EditError(f"its text cannot be changed: {error}") from None


def apart(edits: Sequence[Edit], others: Iterable[Edit]) -> bool:
    """Whether edits touch no place of others. Insertions at one place do not keep apart."""
    return not any(
        e.file == o.file and _begin(e) <= _end(o) and _begin(o) <= _end(e)
        for o in others
        for e in edits
    )


def lines_of(data: bytes) -> list[str]:
    """The lines of a file as they are known to tracebacks. Raises EditError."""
    try:
        text = data[3 * data.startswith(codecs.BOM_UTF8) :].decode(_encoding(data))
    except (UnicodeError, LookupError) as error:
        raise EditError(f"it is not text: {error}") from None
    return [line.rstrip("\r\n") + "\n" for line in _LINE.findall(text)]


def diff(before: bytes, after: bytes, name: str) -> bytes:
    """A unified diff of a file, as `git apply` and `patch -p1` take it. name: with `/`."""
    path = os.fsencode(name)
    tab = b"\t" if b" " in path else b""
    old, new = _split(before), _split(after)
    found = list(
        difflib.diff_bytes(
            difflib.unified_diff, old, new, b"a/" + path, b"b/" + path, lineterm=b"\n"
        )
    )
    out = []
    for number, line in enumerate(found):
        head = number < 2
        line = line[:-1] + tab + b"\n" if head else line
        out.append(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n")
    return b"".join(out)


def _begin(e: Edit) -> tuple[int, int]:
    return e.line, e.column


def _end(e: Edit) -> tuple[int, int]:
    return e.end_line, e.end_column


def _offset(lines: list[str], starts: list[int], line: int, column: int) -> int:
    if line == len(lines) + 1 and column == 1:
        return starts[-1]
    if not 1 <= line <= len(lines) or not 1 <= column <= len(lines[line - 1]) + 1:
        raise EditError(f"it has no line {line}, column {column}")
    return starts[line - 1] + column - 1


def _usual_end(lines: list[str]) -> str:
    first = lines[0] if lines else ""
    return first[len(first.rstrip("\r\n")) :] or "\n"


def _encoding(data: bytes) -> str:
    try:
        found, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise EditError(f"it is not text: {error}") from None
    return "utf-8" if found == "utf-8-sig" else found


def _split(data: bytes) -> list[bytes]:
    """Lines as other tools count them: at line feeds alone."""
    parts = data.split(b"\n")
    return [p + b"\n" for p in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
