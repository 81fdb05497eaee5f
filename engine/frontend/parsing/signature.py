"""The signature of a Python function, as far as it is known without its source."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from engine.classes import dataclass
from engine.frontend.parsing.annotations import BadAnnotation, evaluate, patterns, to_type
from engine.frontend.parsing.scope import Scope
from engine.lang.generics import NOT_OF_KERNELS, Pattern
from engine.lang.structs import UserType


@dataclass(frozen=True, slots=True)
class Signature:
    """types: of the parameters, in order, None where open or badly annotated.

    patterns: what the open ones take. Parameters in neither have a mistake in them, which
    lowering tells.
    """

    types: dict[str, UserType | None]
    patterns: dict[str, Pattern]

    @property
    def is_generic(self) -> bool:
        """Whether arguments decide on types."""
        return bool(self.patterns)


def signature_of(func: Callable[..., Any], kernel: bool) -> Signature:
    """The signature of a kernel or function. Bad annotations are told when it is lowered."""
    func = inspect.unwrap(func)
    scope = Scope(func)
    notes = getattr(func, "__annotations__", {})
    code = func.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    types: dict[str, UserType | None] = {}
    for name in names:
        try:
            types[name] = to_type(evaluate(notes[name], scope)) if name in notes else None
        except BadAnnotation:
            types[name] = None
    found = patterns(func, [n for n in names if types[n] is None], scope, kernel)
    if kernel:  # which cannot take functions or tuples
        found = {n: p for n, p in found.items() if p.role not in NOT_OF_KERNELS}
    return Signature(types, found)
