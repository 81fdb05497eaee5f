"""An exception of the program as text of bounded length, or as an outcome.

Python writes all of a chain of exceptions, all frames and whole messages; a program can raise a
thousand exceptions from one another, in a circle too, a message of megabytes, or one that cannot
be had. Nothing here calls more of the exception than its message, and nothing recurses without a
bound.
"""

from __future__ import annotations

import builtins
import os
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from types import TracebackType
from typing import Any

import adtool
import engine
from adtool.counts import counted, more
from adtool.outcome import Outcome
from adtool.report import Problem
from adtool.target import TargetError
from engine.reading import pin

_OWN = tuple(os.path.join(os.path.dirname(str(m.__file__)), "") for m in (adtool, engine))

_MESSAGE = 4000  # characters of a message
_CHAIN = 8  # exceptions that are written, at the beginning and at the end
_FRAMES = 30  # places that are written, of the outermost calls and of the innermost ones
_SAME = 3  # times that one place is written
_DEPTH, _WIDTH = 3, 8  # of groups in groups, and of exceptions in one
_ALL = 100_000  # characters of the whole
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"
_HEAD = "Traceback (most recent call last):\n"


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning and its end, with how much is left out between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}... ({len(text) - 2 * half} characters left out) ...{text[-half:]}"


def shown(value: object) -> str:
    """A value as `repr` writes it, of a bounded length, or that it cannot be written."""
    try:
        return shortened(repr(value), 200)
    except Exception:
        return f"<{kind_of(value)} that cannot be printed>"


def kind_of(value: object) -> str:
    """The name of a value's type."""
    return shortened(str(type.__getattribute__(type(value), "__name__")), 200)


def is_normal(end: SystemExit) -> bool:
    """Whether a program that ends so has not failed; its code may be of any type."""
    return end.code is None or (isinstance(end.code, int) and int.__int__(end.code) == 0)


def text_of(error: BaseException) -> str:
    """The traceback, without frames of the tool, the engine and of Python's imports."""
    return shortened("".join(_written(error, 0)), _ALL)


def place_of(error: BaseException) -> str:
    """Where the innermost frame of the user's own code is, to be put behind a message."""
    libraries = tuple({os.path.join(p, "") for p in sysconfig.get_paths().values()})
    found = own = ""
    for trace in _traces(error):
        found = f" at {_file(trace)}:{trace.tb_lineno}"
        if not _file(trace).startswith(libraries):
            own = found
    return own or found


def file_of(error: BaseException) -> str:
    """The file of the innermost frame, but for those of the tool and of Python's imports."""
    return next(map(_file, reversed(list(_traces(error)))), "")


def lines_of(error: BaseException) -> list[tuple[str, int]]:
    """File and line of each frame, but for those of the tool and of Python's imports."""
    return [(_file(t), t.tb_lineno) for t in _traces(error)]


def chain_of(error: BaseException) -> list[BaseException]:
    """An exception, and those that it comes from."""
    return [e for e, _ in _chain(error)][::-1]


def message_of(error: BaseException) -> str:
    """The message, of a bounded length; empty where it cannot be had."""
    with suppress(Exception):
        return shortened(str(error), _MESSAGE)
    return ""


def _read(error: BaseException, name: str) -> Any:
    """An attribute that Python itself gives exceptions, whatever their class makes of its name."""
    return BaseException.__dict__[name].__get__(error)


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _traces(error: BaseException) -> Iterator[TracebackType]:
    trace = _read(error, "__traceback__")
    while trace is not None:
        if not _file(trace).startswith((*_OWN, "<frozen ")):
            yield trace
        trace = trace.tb_next


def _written(error: BaseException, depth: int) -> Iterator[str]:
    chain = list(_chain(error))
    left = len(chain) - 2 * _CHAIN
    for number, (e, link) in enumerate(chain):
        if left > 0 and number == _CHAIN:
            yield f"\n... ({counted(left, 'exception')} left out) ...\n"
        if left > 0 and _CHAIN <= number < _CHAIN + left:
            continue
        yield link
        yield from _one(e, depth)


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """An exception after those that it comes from, each with the words that lead to it."""
    found, seen = [error], {id(error)}
    links: list[str] = []
    while True:
        e, words = found[-1], _CAUSE
        before = _read(e, "__cause__")
        if before is None and not _read(e, "__suppress_context__"):
            before, words = _read(e, "__context__"), _CONTEXT
        if before is None or id(before) in seen:
            break
        seen.add(id(before))
        found.append(before)
        links.append(words)
    return zip(reversed(found), reversed([*links, ""]), strict=True)


def _one(error: BaseException, depth: int) -> Iterator[str]:
    """One exception without those that it comes from."""
    stack = list(_stack(list(_traces(error))))
    members = _members(error)
    head = _HEAD if members is None else f"Exception Group {_HEAD}"
    yield from ([head, *stack] if stack else [])
    yield from _words(error)
    if members is None:
        return
    if depth == _DEPTH:
        yield f"... ({counted(len(members), 'exception')} in it left out) ...\n"
        return
    for number, e in enumerate(members[:_WIDTH], 1):
        yield f"---------------- {number} of {len(members)}\n"
        for text in _written(e, depth + 1):
            yield "".join(f"  {line}" for line in text.splitlines(True))
    if len(members) > _WIDTH:
        yield f"... ({more(len(members) - _WIDTH, 'exception')} left out) ...\n"


def _members(error: BaseException) -> Sequence[BaseException] | None:
    """The exceptions of a group; None of what is no group."""
    group: Any = getattr(builtins, "BaseExceptionGroup", None)  # of Python 3.11
    if group is None or not isinstance(error, group):
        return None
    found: Sequence[BaseException] = group.__dict__["exceptions"].__get__(error)
    return found


def _stack(traces: Sequence[TracebackType]) -> Iterator[str]:
    """The frames: those of recursion a few times, and of many the first and the last."""
    places = [list(g) for _, g in groupby(traces, lambda t: (t.tb_frame.f_code, t.tb_lineno))]
    left = len(places) - 2 * _FRAMES
    for number, same in enumerate(places):
        if left > 0 and number == _FRAMES:
            count = sum(map(len, places[_FRAMES : _FRAMES + left]))
            yield f"  ... ({counted(count, 'frame')} left out) ...\n"
        if left > 0 and _FRAMES <= number < _FRAMES + left:
            continue
        pin([_file(same[0])])
        link: TracebackType | None = None
        for t in reversed(same[:_SAME]):
            link = TracebackType(link, t.tb_frame, t.tb_lasti, t.tb_lineno)
        yield from (shortened(x, _MESSAGE) for x in traceback.format_tb(link))
        if len(same) > _SAME:
            more = len(same) - _SAME
            yield f"  [Previous line repeated {more} more time{'s' * (more > 1)}]\n"


def _words(error: BaseException) -> Iterator[str]:
    """The kind and the message, with the place of a syntax error and notes."""
    lines: list[str] = []
    if _members(error) is None:  # of a group Python would walk through all
        # Fails where an exception is made of other things than Python gives it.
        with suppress(Exception), _alone(error):
            lines = traceback.format_exception_only(type(error), error)
    if not lines:
        message = "<exception str() failed>"
        with suppress(Exception):
            message = str(error)
        lines = [f"{kind_of(error)}: {message}\n"]
    yield from (shortened(line.rstrip("\n"), _MESSAGE) + "\n" for line in lines[:_CHAIN])
    if len(lines) > _CHAIN:
        yield f"... ({len(lines) - _CHAIN} lines left out) ...\n"


@contextmanager
def _alone(error: BaseException) -> Iterator[None]:
    """Within the block the exception comes from no other one, which Python would walk through."""
    names = ("__cause__", "__context__", "__suppress_context__")
    before = [(BaseException.__dict__[n], _read(error, n)) for n in names]
    try:
        for place, _ in before[:2]:
            place.__set__(error, None)
        yield
    finally:
        for place, value in before:
            place.__set__(error, value)


def exited(error: SystemExit) -> Outcome:
    """The outcome of a target that ended with another status than 0."""
    return Outcome(
        "exited",
        f"the script ended by sys.exit({shown(error.code)}){place_of(error)}",
        "adtool checks gradients after a normal end: let the script end with status 0",
    )


def not_started(error: TargetError) -> Outcome:
    """The outcome of a target that cannot be found, read or compiled."""
    problems: tuple[Problem, ...] = ()
    if error.cause is not None:
        cause = error.cause
        found = Problem(type(cause).__name__, cause.msg, file=cause.filename)
        if line := cause.lineno:
            column = max(1, cause.offset or 1)
            last, end = cause.end_lineno or line, cause.end_offset or 0
            if last <= line:
                last, end = line, max(end, column + 1)
            found = replace(found, line=line, column=column, end_line=last, end_column=end)
        problems = (found,)
    return Outcome("target", error.message, error.help, problems=problems)
