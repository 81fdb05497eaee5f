"""Functions that kernels call, as data: `@func`, its overloads, gradient and replay."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from engine.frontend.parsing.signature import Signature, signature_of
from engine.frontend.parsing.static_expressions import declared_text
from engine.frontend.parsing.text import FunctionText
from engine.lang.definition import Definition
from engine.lang.generics import FUNCTION

# Functions of these names are what operators mean for the types that they take.
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "mul", ast.Div: "div",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "bit_and",
    ast.BitOr: "bit_or", ast.BitXor: "bit_xor", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
}  # fmt: skip

_listeners: list[Callable[[], None]] = []
_changes = 0


def on_function_change(listener: Callable[[], None]) -> None:
    """Calls `listener` whenever a function was made, or given a gradient or a replay."""
    _listeners.append(listener)


def function_changes() -> int:
    """How often that happened. Bindings can differ only where this does."""
    return _changes


def _changed() -> None:
    global _changes
    _changes += 1
    for listener in _listeners:
        listener()


def _still_meant(before: UserFunc | None, text: FunctionText | None) -> tuple[UserFunc, ...]:
    """Functions of the same name and scope that a new one stands beside, by its text.

    One run of a text defines its functions from top to bottom, the same one again only in a
    loop. Anything else means that the text runs again, as when a module is reloaded: functions
    of the run before are gone. So are those of an earlier text of the same file.
    """
    if before is None or text is None:
        return ()
    earlier = [(f, f.text) for f in before.overloads if f.text is not None]
    same = [t.code for _, t in earlier if t.file == text.file and t.newest is text.newest]
    loop = any(code is text.code for code in same)
    below = all(code.co_firstlineno < text.code.co_firstlineno for code in same)

    def meant(other: FunctionText) -> bool:
        if other.file != text.file:
            return True
        return (loop or below) if other.newest is text.newest else not text.has_file

    return tuple(f for f, other in earlier if meant(other))


class UserFunc(Definition):
    """A Python function that kernels can call, and Python too.

    func: the Python function. In Python a call runs it on host values. text: what was there
    to read when it was made. overloads: the functions of this name that were defined with
    it, in order, itself being the last.
    """

    library = False  # True for those that come with the engine and never change
    __ir_pattern__ = FUNCTION  # as an annotation: a parameter that takes a function

    def __init__(self, func: Callable[..., Any], before: UserFunc | None = None) -> None:
        functools.update_wrapper(self, func)
        self.func = func
        self.text = declared_text(func)
        self.overloads: tuple[UserFunc, ...] = (*_still_meant(before, self.text), self)
        self.name = getattr(func, "__name__", "func")
        self.module: Any = None  # the group that it was defined in
        self._signature: Signature | None = None
        self._grad: Callable[..., Any] | None = None
        self._replay: Callable[..., Any] | None = None
        # What lowering made of it, kept here so that it goes with the function.
        self.lowered: dict[Any, Any] = {}
        if not self.library:
            _changed()

    def __repr__(self) -> str:
        return f"<engine function {self.name}>"

    @property
    def is_plain(self) -> bool:
        """Whether it is nothing but its text: without a gradient or replay of the user's own."""
        return self._grad is None and self._replay is None

    @property
    def key(self) -> str:
        """Its name."""
        return self.name

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.library:
            return self.func(*args, **named)
        from engine.frontend.functions.overloads import for_host  # late: rarely needed

        return for_host(self.overloads, args, named).func(*args, **named)

    @property
    def signature(self) -> Signature:
        """Its parameters, as its annotations were when this was asked for first."""
        if self._signature is None:
            self._signature = signature_of(self.func, kernel=False)
        return self._signature

    @property
    def user_overloads(self) -> dict[str, UserFunc]:
        """The functions of this name, by the annotations of their parameters."""
        notes = [getattr(f.func, "__annotations__", {}) for f in self.overloads]
        shown = [", ".join(f"{k}: {v}" for k, v in n.items() if k != "return") for n in notes]
        return dict(zip(shown, self.overloads, strict=True))

    @property
    def grad_func(self) -> Callable[..., Any] | None:
        """The user's own adjoint (a Python function, or one made by `@func`), if any."""
        return self._grad

    @grad_func.setter
    def grad_func(self, function: Callable[..., Any] | None) -> None:
        self._grad = function
        _changed()

    @property
    def replay_func(self) -> Callable[..., Any] | None:
        """The user's own forward code for the backward pass, if any."""
        return self._replay

    @replay_func.setter
    def replay_func(self, function: Callable[..., Any] | None) -> None:
        self._replay = function
        _changed()
