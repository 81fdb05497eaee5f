"""What a name in a kernel stands for: closure cells, globals, Python's builtins."""

from __future__ import annotations

import builtins
import enum
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.frontend.operands import Known, Operand, Several, Value, literal
from engine.ir.nodes import Const
from engine.lang.structs import ElementType, StructType
from engine.lang.types import SCALARS, ArrayType, MatrixType, ScalarType, VectorType, scalar_of
from engine.lang.values import to_value_type

MISSING = object()


class Scope:
    """The names around a Python function, as they are when it is lowered."""

    def __init__(self, func: Callable[..., Any]) -> None:
        func = inspect.unwrap(func)
        self.globals: dict[str, Any] = getattr(func, "__globals__", {})
        self.closure: dict[str, Any] = {}
        code = getattr(func, "__code__", None)
        for name, cell in zip(
            code.co_freevars if code else (), getattr(func, "__closure__", None) or (), strict=False
        ):
            try:
                self.closure[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue

    def lookup(self, name: str) -> object:
        """The Python object behind a name; MISSING where there is none."""
        for names in (self.closure, self.globals, vars(builtins)):
            if name in names:
                return names[name]
        return MISSING

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
        return eval(text, self.globals, {**self.closure})


def is_engine(obj: object) -> bool:
    """True for the module `engine` itself."""
    return isinstance(obj, types.ModuleType) and obj.__name__ == "engine"


def type_of(obj: object) -> ScalarType | VectorType | MatrixType | None:
    """The type of the language that an object (a class) names; None for anything else."""
    if obj is float or obj is int or obj is bool:
        return to_value_type(obj)
    found = getattr(obj, "__ir_type__", None) if isinstance(obj, type) else None
    if found is None and isinstance(obj, type) and issubclass(obj, np.generic):
        found = SCALARS.get(obj.__name__.rstrip("_"))
    return found if isinstance(found, (ScalarType, VectorType, MatrixType)) else None


def struct_of(obj: object) -> StructType | None:
    """The type of a class made by `@struct`; None for anything else."""
    found = getattr(obj, "__ir_type__", None) if isinstance(obj, type) else None
    return found if isinstance(found, StructType) else None


def element_of(obj: object) -> ElementType | None:
    """The type of array elements that an object (a class) names; None for anything else."""
    return type_of(obj) or struct_of(obj)


def _nested(data: object) -> Any:
    return tuple(_nested(x) for x in data) if isinstance(data, list) else data


def _typed(obj: Any, t: ScalarType | VectorType | MatrixType) -> Value:
    """The constant of a value object such as `vec3(1, 2, 3)` or `float64(2)`."""
    data = np.asarray(obj, dtype=scalar_of(t).numpy).tolist()
    return Value(Const(_nested(data), t))


def operand_of(obj: Any) -> Operand | None:
    """What a Python object means in a kernel; None where it means nothing."""
    t = getattr(type(obj), "__ir_type__", None)
    if isinstance(t, (ScalarType, VectorType, MatrixType)):
        return _typed(obj, t)
    if isinstance(obj, (bool, np.bool_)):
        return literal(bool(obj))
    if isinstance(obj, (int, np.integer)):
        return literal(int(obj))
    if isinstance(obj, (float, np.floating)):
        return literal(float(obj))
    if isinstance(obj, tuple):
        items = [operand_of(x) for x in obj]
        found = tuple(x for x in items if x is not None)
        return Several(found) if len(found) == len(items) else None
    if hasattr(obj, "__builtin_name__") or isinstance(
        obj, (types.ModuleType, type, enum.Enum, np.dtype)
    ):
        return Known(obj)
    ir_type = getattr(obj, "__ir_type__", None)
    if callable(obj) and not isinstance(ir_type, ArrayType):
        return Known(obj)
    return None


def describe(obj: object) -> tuple[str, str]:
    """What an object that cannot be captured is, and what to write instead."""
    kind = type(obj).__name__
    if struct_of(type(obj)) is not None:
        return f"a value of the struct `{kind}`", "pass it as a parameter of the kernel"
    if hasattr(obj, "__array_interface__") or hasattr(obj, "shape"):
        return "an array", "pass it as a parameter of the kernel"
    if isinstance(obj, (list, tuple, set, frozenset, dict)):
        return f"a {kind}", "pass its numbers as an array parameter, or use a vector"
    if isinstance(obj, str):
        return "a string", "use an integer that stands for it"
    if obj is None:
        return "None", "give it a number before the kernel is launched first"
    return (
        f"an object of type `{kind}`",
        "copy the number that you need into a variable outside the kernel and use that",
    )
