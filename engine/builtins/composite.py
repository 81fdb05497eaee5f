"""Composite builtins: functions of the language that are written in the language.

Their derivatives, in both modes, come from those of what they are made of. The
functions live in `engine.builtins.library`; the frontend makes an instance of one
for the argument types of a call, as it does for a user's function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any, TypeVar

from engine.classes import dataclass
from engine.ir.ops import Domain
from engine.lang.types import BOOL, FLOAT32, INT32, ScalarType, Type

Accepts = Callable[[Sequence[Type]], bool]
ANYWHERE = Domain()
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Composite:
    """One overload.

    user: the name in kernels, or an operator. func: a Python function in the kernel
    language, generic in its parameters. accepts: whether it takes arguments of these
    types. updates: positions of arguments that the call changes, where they are
    variables; func returns their new values after its results. domain: where to test,
    as for operations.
    """

    user: str
    func: Callable[..., Any]
    accepts: Accepts
    doc: str
    updates: tuple[int, ...] = ()
    domain: Domain = ANYWHERE


COMPOSITES: dict[str, list[Composite]] = {}
# Functions of the library that are no builtins themselves, for its other functions to call.
HELPERS: dict[object, Composite] = {}


def helper(func: F) -> F:
    """Lets other functions of the library call this one."""
    HELPERS[func] = Composite("", func, lambda types: True, "")
    return func


def composite(
    doc: str,
    accepts: Accepts,
    *,
    user: str = "",
    updates: tuple[int, ...] = (),
    domain: Domain = ANYWHERE,
) -> Callable[[F], F]:
    """Registers a function as an overload of `user` (its own name where left out).

    Raises ValueError for an empty doc.
    """

    def make(func: F) -> F:
        if not doc:
            raise ValueError(f"composite {func.__name__!r} has no doc")
        name = user or func.__name__
        COMPOSITES.setdefault(name, []).append(Composite(name, func, accepts, doc, updates, domain))
        return func

    return make


@dataclass(frozen=True, slots=True)
class Choice:
    """The overload that a call means. casts: as in `engine.builtins.resolve.Resolution`."""

    composite: Composite
    casts: tuple[ScalarType | None, ...]


def choose(user: str, types: Sequence[Type], weak: Sequence[bool]) -> Choice | None:
    """The overload of `user` for these types, or None. weak marks literals, which adapt."""
    from engine.builtins.resolve import ways_to_type

    found = COMPOSITES.get(user)
    if not found:
        return None
    for casts in ways_to_type(types, weak):
        typed = [t if c is None else c for t, c in zip(types, casts, strict=True)]
        for c in found:
            if c.accepts(typed):
                return Choice(c, casts)
    return None


def with_defaults(
    user: str, args: list[Any], types: list[Type], weak: list[bool]
) -> Iterator[tuple[list[Any], list[Type], list[bool]]]:
    """The arguments of a call, as they are and completed by each overload's defaults.

    args: what stands for the values; a default is added as a Python number.
    """
    yield args, types, weak
    for c in COMPOSITES.get(user, ()):
        rest = list(signature(c.func).parameters.values())[len(args) :]
        numbers = [p.default for p in rest if isinstance(p.default, (int, float))]
        if rest and len(numbers) == len(rest):
            kinds = [BOOL if isinstance(n, bool) else INT32 if isinstance(n, int) else FLOAT32
                     for n in numbers]  # fmt: skip
            plain = [not isinstance(n, bool) for n in numbers]
            yield [*args, *numbers], [*types, *kinds], [*weak, *plain]
