"""Exceptions of programs as text: like Python's, and bounded for every exception."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from adtool import raised


def of(raising: Callable[[], Any]) -> BaseException:
    try:
        raising()
    except BaseException as error:
        return error
    raise AssertionError


def _plain() -> None:
    {}["key"]


def _caused() -> None:
    try:
        _plain()
    except KeyError as error:
        raise ValueError("second\nline") from error


def _in_context() -> None:
    try:
        _caused()
    finally:
        int("x")


def _suppressed() -> None:
    try:
        _plain()
    except KeyError:
        raise ValueError from None


def _recursion(n: int = 200) -> None:
    _recursion(n - 1) if n else _plain()


def _no_python() -> None:
    compile("x = (\n1 +", "file.py", "exec")


def _unknown() -> None:
    known = 1
    print(knwon, known)  # type: ignore[name-defined]  # noqa: F821


def _noted() -> None:
    error = ValueError("m")
    if sys.version_info >= (3, 11):
        error.add_note("a note")
    raise error


@pytest.mark.parametrize(
    "raising",
    [_plain, _caused, _in_context, _suppressed, _recursion, _no_python, _unknown, _noted],
)
def test_ordinary_ones_are_written_as_python_does(raising: Callable[[], None]) -> None:
    error = of(raising)
    assert raised.text_of(error) == "".join(traceback.format_exception(error))
    assert raised.place_of(error).startswith(f" at {__file__}:")


# ---- others

_COUNT = 1100


def _chain() -> None:
    error: BaseException | None = None
    for n in range(_COUNT):
        try:
            raise ValueError(n) from error
        except ValueError as e:
            error = e
    assert error is not None
    raise error


def _contexts() -> None:
    error: BaseException = ValueError("first")
    for n in range(_COUNT):
        after = ValueError(n)
        after.__context__ = error
        error = after
    raise error


def _circle() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    raise one


def _group(members: list[Exception]) -> Exception:
    if sys.version_info < (3, 11):
        pytest.skip("there are no groups")
    made: Exception = ExceptionGroup("group", members)  # type: ignore[name-defined]  # noqa: F821
    return made


def _nested() -> None:
    error: Exception = ValueError("inner")
    for _ in range(_COUNT):
        error = _group([error])
    raise error


def _wide() -> None:
    raise _group([ValueError("x" * 1000) for _ in range(10_000)])


def _wide_and_deep() -> None:
    error: Exception = ValueError("x" * 10_000)
    for _ in range(6):
        error = _group([error] * 50)
    raise error


def _long() -> None:
    raise ValueError("x" * 10_000_000)


def _lines() -> None:
    raise ValueError("x\n" * 1_000_000)


def _deep() -> None:
    def one(n: int) -> None:
        return other(n - 1) if n else _plain()

    def other(n: int) -> None:
        return one(n - 1) if n else _plain()

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        one(20_000)
    finally:
        sys.setrecursionlimit(before)


class _Odd(Exception):
    """All that may be asked of it fails."""

    def _fails(self, *_: Any) -> Any:
        raise ZeroDivisionError

    __str__ = __repr__ = __len__ = __bool__ = __hash__ = __eq__ = _fails  # type: ignore[assignment]
    __cause__ = __context__ = __traceback__ = __notes__ = property(_fails)  # type: ignore[assignment]
    __suppress_context__ = args = property(_fails)  # type: ignore[assignment]


def _odd() -> None:
    raise _Odd


def _odd_syntax() -> None:
    raise SyntaxError("m", ("f", "three", b"x", [1]))


def _odd_notes() -> None:
    error = ValueError("m")
    error.__notes__ = ["n" * 100_000] * 1000  # type: ignore[attr-defined]
    raise error


class _Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise ZeroDivisionError


class _OddKind(Exception, metaclass=_Meta):
    pass


def _odd_kind() -> None:
    raise _OddKind("m")


_HARD = (
    _chain, _contexts, _circle, _nested, _wide, _wide_and_deep, _long, _lines, _deep, _odd,
    _odd_syntax, _odd_notes, _odd_kind,
)  # fmt: skip


@pytest.mark.parametrize("raising", _HARD, ids=lambda f: f.__name__[1:])
def test_hard_ones_are_bounded(raising: Callable[[], None]) -> None:
    error = of(raising)
    start = time.perf_counter()
    text = raised.text_of(error)
    assert len(text) < 150_000 and time.perf_counter() - start < 20.0
    assert raised.place_of(error).startswith(f" at {__file__}:")
    assert "Traceback (most recent call last):" in text


def test_head_and_tail_of_a_chain() -> None:
    error = of(_chain)
    text = raised.text_of(error)
    kept = [
        int(line.partition(": ")[2]) for line in text.splitlines() if line[:11] == "ValueError:"
    ]
    left = int(text.partition("... (")[2].partition(" exceptions left out")[0].replace(",", ""))
    assert kept == [*range(8), *range(_COUNT - 8, _COUNT)] and left == _COUNT - len(kept)


def test_an_exception_is_what_it_was() -> None:
    error = of(_in_context)
    before = error.__cause__, error.__context__, error.__suppress_context__, error.__traceback__
    raised.text_of(error)
    assert before == (
        error.__cause__, error.__context__, error.__suppress_context__, error.__traceback__
    )  # fmt: skip


def test_values_that_cannot_be_written() -> None:
    assert raised.shown(_Odd()) == "<_Odd that cannot be printed>"
    assert raised.shown(3) == "3" and len(raised.shown("x" * 10_000)) < 300
