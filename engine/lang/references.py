"""`ref[T]`: parameters of functions whose changes the caller sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Reference:
    """The annotation `ref[T]`. dtype, value_type: T."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    @property
    def value_type(self) -> Any:
        return self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((Reference, self.dtype))

    def __repr__(self) -> str:
        return f"wp.ref[{getattr(self.dtype, '__name__', self.dtype)}]"


class ref:
    """`ref[T]` annotates a parameter of a function that gets a variable, or an element of an array.

    What the function assigns to it, the caller's variable or element has after the call.
    """

    def __class_getitem__(cls, dtype: Any) -> Reference:
        return Reference(dtype)


def reference_names(func: Callable[..., Any], evaluate: Callable[[Any], Any]) -> tuple[str, ...]:
    """The parameters of a function that are references, in order. evaluate: of what is text."""
    notes = getattr(func, "__annotations__", {})
    return tuple(name for name, note in notes.items() if name != "return" and _is(note, evaluate))


def _is(note: Any, evaluate: Callable[[Any], Any]) -> bool:
    if isinstance(note, str) and "ref[" in note:
        try:
            note = evaluate(note)
        except Exception:
            return False
    return isinstance(note, Reference)


def positions_of(names: Iterable[str], func: Callable[..., Any]) -> frozenset[int]:
    """Where these parameters stand."""
    code = getattr(func, "__code__", None)
    if code is None:
        return frozenset()
    every = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return frozenset(every.index(n) for n in names if n in every)
