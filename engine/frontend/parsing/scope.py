"""Resolves names in a kernel: closure cells, globals, Python's builtins."""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.frontend.parsing.captures import Captures
from engine.itself import ENGINE
from engine.lang.structs import ElementType, StructType
from engine.lang.types import BY_NAME, MatrixType, ScalarType, VectorType
from engine.lang.values import to_value_type

MISSING = object()
_BUILTINS = vars(builtins)


class Scope:
    """The names around a Python function, as they are when it is lowered.

    captures: what was read, by lowering too, which reads attributes and computes
    static expressions.
    """

    def __init__(self, func: Callable[..., Any]) -> None:
        func = inspect.unwrap(func)
        self.captures = Captures(func)
        self.globals: dict[str, Any] = getattr(func, "__globals__", {})
        code = getattr(func, "__code__", None)
        cells = getattr(func, "__closure__", None) or ()
        self._cells = dict(zip(code.co_freevars if code else (), cells, strict=False))

    @property
    def closure(self) -> dict[str, Any]:
        """The names of the functions around this one that it uses, with their values."""
        out: dict[str, Any] = {}
        for name, cell in self._cells.items():
            try:
                out[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        return out

    def lookup(self, name: str) -> object:
        """The Python object behind a name; MISSING where there is none."""
        return self.captures.read(("name", name), lambda: self.find(name))

    def find(self, name: str) -> object:
        """The same, for what is not lowering: nothing is noted."""
        if name in self._cells:
            try:
                return self._cells[name].cell_contents
            except ValueError:
                pass
        if name in self.globals:
            return self.globals[name]
        return _BUILTINS.get(name, MISSING)

    def member(self, obj: object, name: str) -> object:
        """An attribute of a module, class or enumeration. Raises whatever `getattr` raises."""
        return self.captures.read(("member", id(obj), name), lambda: getattr(obj, name))

    def names(self) -> list[str]:
        """Every name that `lookup` finds, for suggestions."""
        return [*self.closure, *self.globals]

    @property
    def api(self) -> str:
        """The name that the user gave the engine: `wp` where nothing tells."""
        for names in (self.closure, self.globals):
            for name, obj in names.items():
                if is_engine(obj) and not name.startswith("_"):
                    return name
        return "wp"

    def evaluate(self, text: str) -> object:
        """A Python expression (an annotation) in this scope. Raises whatever it raises."""
        return self.captures.read(("annotation", text), lambda: self._evaluate(text))

    def _evaluate(self, text: str) -> object:
        return eval(text, self.globals, self.closure)


def is_engine(obj: object) -> bool:
    """True for the module `engine` itself, under another name too."""
    if not isinstance(obj, types.ModuleType):
        return False
    return obj is ENGINE or "__is_engine__" in vars(obj)


def type_of(obj: object) -> ScalarType | VectorType | MatrixType | None:
    """The type of the language that an object (a class) names; None for anything else."""
    if obj is float or obj is int or obj is bool:
        return to_value_type(obj)
    found = getattr(obj, "__ir_type__", None) if isinstance(obj, type) else None
    if found is None and isinstance(obj, type) and issubclass(obj, np.generic):
        found = BY_NAME.get(obj.__name__.rstrip("_"))
    return found if isinstance(found, (ScalarType, VectorType, MatrixType)) else None


def struct_of(obj: object) -> StructType | None:
    """The type of a class made by `@struct`; None for anything else."""
    found = getattr(obj, "__ir_type__", None) if isinstance(obj, type) else None
    return found if isinstance(found, StructType) else None


def element_of(obj: object) -> ElementType | None:
    """The type of array elements that an object (a class) names; None for anything else."""
    return type_of(obj) or struct_of(obj)
