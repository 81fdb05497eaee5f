"""Lowered functions that several kernels share while their inputs are unchanged."""

from __future__ import annotations

from dataclasses import field
from typing import Any, TypeAlias

from engine.classes import dataclass
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.operands.kinds import Kind
from engine.frontend.parsing.captures import Captures, snapshot
from engine.frontend.parsing.signature import Signature
from engine.ir.nodes import Function

Key: TypeAlias = tuple[UserFunc, tuple[Kind, ...]]


@dataclass(slots=True, eq=False)
class Dependencies:
    """What one instance is made from, besides its text and its kinds.

    captures: readings from Python, of the function and of its custom gradient and replay.
    calls: instances of others. overloads: signatures and defaults of functions among which
    calls chose. overridden: instances among all these that were not the usual ones.
    """

    key: Key
    captures: list[Captures] = field(default_factory=list)
    calls: dict[Key, Function] = field(default_factory=dict)
    overloads: dict[UserFunc, tuple[Signature, object]] = field(default_factory=dict)
    overridden: set[Key] = field(default_factory=set)

    def add_call(self, key: Key, made: Function, overridden: set[Key]) -> None:
        """Notes an instance that this one calls, or that its custom gradient calls."""
        if key != self.key:
            self.calls[key] = made
            self.overridden |= overridden - {self.key}


@dataclass(frozen=True, slots=True)
class Shared:
    """An instance with what it was made from. custom: the function's gradient and replay then."""

    made: Function
    needs: Dependencies
    custom: tuple[Any, Any]


def custom_of(function: UserFunc) -> tuple[Any, Any]:
    """The custom gradient and replay of a function."""
    return function.grad_func, function.replay_func


def defaults_of(function: UserFunc) -> object:
    """Equal as long as the defaults of the parameters mean the same."""
    func = function.func
    named = getattr(func, "__kwdefaults__", None) or {}
    return snapshot((*(getattr(func, "__defaults__", None) or ()), *sorted(named.items())))
