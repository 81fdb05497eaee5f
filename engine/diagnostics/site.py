"""Finds the frame of user code that called into the package."""

from __future__ import annotations

import re
import sys
from itertools import islice
from types import CodeType, FrameType

from engine.diagnostics.span import Span
from engine.itself import FOLDER
from engine.reading import getline

_NAME = __name__.split(".")[0] + "."
# Packages that call on behalf of the user: a kernel may be an operator of theirs.
_FRAMEWORKS = frozenset({"functorch", "jax", "jaxlib", "paddle", "torch"})
# Files of the package that were met: every launch and every write asks for its caller.
_own_files: set[str] = set()
_DECORATED = 20  # lines of decorators before a `def`, at most


class Site:
    """A call in user code. Cheap to make; the columns are looked up when `span` is asked for."""

    __slots__ = ("_span", "code", "instruction", "line")

    def __init__(self, code: CodeType, instruction: int, line: int) -> None:
        self.code = code
        self.instruction = instruction
        self.line = line
        self._span: Span | None = None

    @property
    def file(self) -> str:
        """The file of the call; cheaper than that of `span`."""
        return self.code.co_filename

    @property
    def span(self) -> Span:
        """The call's place; the whole line where Python keeps no columns (before 3.11)."""
        if self._span is None:
            self._span = self._found()
        return self._span

    def _found(self) -> Span:
        file = self.code.co_filename
        positions = getattr(self.code, "co_positions", None)
        if positions is not None:
            found = next(islice(positions(), self.instruction // 2, None), None)
            if found is not None and None not in found:
                line, end_line, col, end_col = found
                return Span(file, line, column(file, line, col), end_line,
                            column(file, end_line, end_col))  # fmt: skip
        return Span(file, self.line, 1, self.line, 1)


def column(file: str, line: int, offset: int) -> int:
    """The column from 1, in characters, of an offset in bytes of UTF-8, as Python counts."""
    text = getline(file, line)
    if text.isascii():
        return offset + 1
    return len(text.encode()[:offset].decode(errors="replace")) + 1


def definition_of(code: CodeType) -> Span:
    """The line of a function's `def`, to the end of its name; of a lambda all of the line.

    Where the source is not to be had, the first line that Python has of it.
    """
    file, first = code.co_filename, code.co_firstlineno  # of its decorators, where it has some
    for line in range(first, first + _DECORATED):
        text = getline(file, line)
        if found := re.match(rf"\s*(async\s+)?def\s+{re.escape(code.co_name)}\b", text):
            begin = len(text) - len(text.lstrip()) + 1
            return Span(file, line, begin, line, found.end() + 1)
        if code.co_name == "<lambda>" and re.search(r"\blambda\b", text):
            return Span(file, line, 1, line, len(text.rstrip()) + 1)
    return Span(file, first, 1, first, 1)


def call_site(depth: int = 1) -> Site | None:
    """The nearest user frame, at least `depth` frames up; None where there is none."""
    try:
        frame: FrameType | None = sys._getframe(depth)
    except ValueError:  # called by what is not Python, as the first function of a thread
        return None
    while frame is not None:
        if frame.f_code.co_filename not in _own_files:
            key = id(frame.f_code), frame.f_lasti
            found = _known.get(key)
            if found is not None:
                return found
            if not is_own(frame):
                break
        frame = frame.f_back
    else:
        return None
    if len(_known) >= _KEPT:
        _known.clear()
    at = _call_at(frame.f_code, frame.f_lasti)
    found = _known.get((key[0], at)) or Site(frame.f_code, at, frame.f_lineno)
    _known[key] = _known[key[0], at] = found
    return found


_TWO: bool = sys.version_info[:2] == (3, 11)


def _call_at(code: CodeType, at: int) -> int:
    """The instruction of a call, of which Python 3.11 has two.

    Functions of C are called by the first one where Python has made that fast, else by the second.
    """
    if not _TWO:
        return at
    from opcode import opmap

    text = code.co_code
    call = at + 4
    pair = text[at] == opmap["PRECALL"] and call < len(text) and text[call] == opmap["CALL"]
    return call if pair else at


# One object for all calls at a place, as of a loop. They keep the code: its number stays its own.
_known: dict[tuple[int, int], Site] = {}
_KEPT = 4096


def is_own(frame: FrameType) -> bool:
    """Whether a frame is the package's, or of code that was generated for it (dataclasses).

    So is that of a tool that calls on behalf of its own caller, and whose module says so by
    `__engine_tool__ = True`, and of frameworks that run kernels as their operators.
    """
    file = frame.f_code.co_filename
    if file.startswith(FOLDER):
        _own_files.add(file)
        return True
    if "__engine_tool__" in frame.f_globals:
        return True
    name = str(frame.f_globals.get("__name__"))
    if name.partition(".")[0] in _FRAMEWORKS:
        return True
    return file == "<string>" and name.startswith(_NAME)


def call_span() -> Span | None:
    """The span of the nearest user frame."""
    site = call_site(2)
    return None if site is None else site.span
