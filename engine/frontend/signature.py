"""The signature of a kernel as far as it is known without its source: which parameters are open."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.frontend.annotations import BadAnnotation, evaluate, patterns, to_type
from engine.frontend.scope import Scope
from engine.lang.generics import FUNCTION, Pattern
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
        """Whether the arguments of a launch decide on types."""
        return bool(self.patterns)


def signature_of(func: Callable[..., Any]) -> Signature:
    """The signature of a kernel's function. Bad annotations are told when it is lowered."""
    func = inspect.unwrap(func)
    scope = Scope(func)
    notes = getattr(func, "__annotations__", {})
    names = list(inspect.signature(func).parameters)
    types: dict[str, UserType | None] = {}
    for name in names:
        try:
            types[name] = to_type(evaluate(notes[name], scope)) if name in notes else None
        except BadAnnotation:
            types[name] = None
    found = patterns(func, names, scope, kernel=True)
    return Signature(types, {n: p for n, p in found.items() if p is not FUNCTION})
