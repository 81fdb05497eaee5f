"""Kernels of NVIDIA Warp as kernels of the engine: the same Python text, with the engine's names.

A kernel of Warp is a Python function. The engine compiles that function's own text once more, where
every object of Warp that the text names stands for the engine's: types, builtins, functions with
their gradients and replays, structs. Nothing of Warp is changed, and it is never imported here.
"""

from __future__ import annotations

import enum
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import engine
from engine.diagnostics import EngineError
from engine.frontend import UserFunc
from engine.runtime.kernel import Kernel

_SHAPED = {
    "vec_t": lambda shape, dtype: engine.types.vector(length=shape[0], dtype=dtype),
    "mat_t": lambda shape, dtype: engine.types.matrix(shape=tuple(shape), dtype=dtype),
    "quat_t": lambda shape, dtype: engine.types.quaternion(dtype=dtype),
    "transform_t": lambda shape, dtype: engine.types.transformation(dtype=dtype),
}
_GENERIC = {"Int": engine.Int, "Float": engine.Float, "Scalar": engine.Scalar}
# Functions whose arguments refer to objects that Warp keeps, by numbers that mean nothing here.
_HANDLES = re.compile(r"(mesh|bvh|hash_grid|volume|texture|tile)_\w+")
_PLAIN = (bool, int, float, complex, str, bytes, np.generic, np.ndarray)


class Untranslatable(Exception):
    """Why a kernel of Warp cannot be one of the engine."""


def is_warps(obj: object) -> bool:
    """Whether an object's class is Warp's own."""
    return type(obj).__module__.partition(".")[0] == "warp"


def kind_of(obj: object) -> str:
    """The name of the class of an object of Warp, and "" for all others."""
    return type(obj).__name__ if is_warps(obj) else ""


class Translation:
    """What objects of Warp are in the engine; each is made once."""

    def __init__(self) -> None:
        # With the objects themselves, so that no id is given to another one.
        self._known: dict[int, tuple[Any, Any]] = {}
        self._kernels: dict[int, tuple[Any, Kernel | Untranslatable]] = {}
        self._failed: list[Untranslatable] = []  # names without a meaning, of one kernel

    def kernel(self, kernel: Any) -> Kernel:
        """The engine's kernel of a concrete kernel of Warp. Raises Untranslatable."""
        found = self._kernels.get(id(kernel))
        if found is None:
            made: Kernel | Untranslatable
            self._failed.clear()
            try:
                made = self._kernel(kernel)
                _ = made.ir  # lowers it
            except Untranslatable as why:
                made = why
            except EngineError as error:
                first = error.diagnostics[0]
                at = f" (at {first.span})" if first.span is not None else ""
                made = next(iter(self._failed), None) or Untranslatable(
                    f"the engine rejects it: {first.message}{at}"
                )
            found = self._kernels[id(kernel)] = kernel, made
        if isinstance(found[1], Untranslatable):
            raise found[1]
        return found[1]

    def _kernel(self, kernel: Any) -> Kernel:
        if getattr(kernel.adj, "transformers", None):
            raise Untranslatable("Warp compiled another source: code transformers changed it")
        notes = {a.label: self.type(a.type) for a in kernel.adj.args}
        func = self._function(kernel.func, notes)
        return Kernel(func, kernel.key, "unique", dict(kernel.options))

    def value(self, obj: Any) -> Any:
        """What an object is to a kernel of the engine. Raises Untranslatable."""
        if obj is None or type(obj) in _PLAIN or isinstance(obj, _PLAIN):
            return obj
        found = self._known.get(id(obj))
        if found is None:
            found = self._known[id(obj)] = obj, self._value(obj)
        return found[1]

    def _value(self, obj: Any) -> Any:
        if isinstance(obj, (tuple, list)):
            return type(obj)(map(self.value, obj)) if type(obj) in (tuple, list) else obj
        if isinstance(obj, types.ModuleType):
            return engine if obj.__name__ == "warp" else _Names(self, obj)
        if isinstance(obj, type):
            if issubclass(obj, enum.Enum) or obj.__module__ in ("builtins", "typing"):
                return obj
            return self.type(obj) if _is_type(obj) else _Names(self, obj)
        kind = kind_of(obj)
        if kind == "Function":
            return self._warp_function(obj)
        if kind == "Struct" or kind in ("array", "_ArrayAnnotation"):
            return self.type(obj)
        if hasattr(type(obj), "_wp_generic_type_str_"):
            return self.type(type(obj))(*np.ravel(np.array(obj)).tolist())
        if kind in engine.types.__dict__ and hasattr(obj, "value"):  # a scalar
            return getattr(engine, kind)(obj.value)
        if isinstance(obj, types.FunctionType):
            return self._host(obj)
        return obj if isinstance(obj, enum.Enum) or callable(obj) else _Names(self, obj)

    def _host(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A Python function that runs where a kernel is made, as in `static`."""

        def call(*args: Any, **named: Any) -> Any:
            return self.value(function(*args, **named))

        return call

    # ---- types

    def type(self, t: Any) -> Any:
        """The engine's type of one of Warp's, or of Python's. Raises Untranslatable."""
        if t in (bool, int, float) or t is typing.Any or t is None:
            return t
        found = self._known.get(id(t))
        if found is None:
            found = self._known[id(t)] = t, self._type(t)
        return found[1]

    def _type(self, t: Any) -> Any:
        if isinstance(t, typing.TypeVar):
            return _GENERIC.get(t.__name__, typing.Any)
        kind = kind_of(t)
        if kind == "Struct":
            return self._struct(t)
        if isinstance(t, type):
            shape = getattr(t, "_wp_generic_type_str_", None)
            if shape in _SHAPED:
                found: Any = t
                sizes = [typing.Any if isinstance(n, typing.TypeVar) or n == 0 else n
                         for n in found._shape_]  # fmt: skip
                return _SHAPED[shape](sizes, self.type(found._wp_scalar_type_))
            found = getattr(engine, t.__name__, None)
            if t.__module__.partition(".")[0] == "warp" and isinstance(found, type):
                return found
        elif hasattr(t, "dtype") and hasattr(t, "ndim") and "array" in kind.lower():
            if "indexed" in kind.lower() or "fabric" in kind.lower():
                raise Untranslatable(f"arguments of the type {kind} are not translated")
            return engine.array(dtype=self.type(t.dtype), ndim=t.ndim)
        if getattr(t, "__origin__", None) is tuple:
            return tuple[tuple(map(self.type, typing.get_args(t)))]  # type: ignore[misc]
        if isinstance(t, tuple):
            return tuple(map(self.type, t))
        if t is Callable or getattr(t, "__module__", "") in ("typing", "collections.abc"):
            return t
        name = getattr(t, "__name__", None) or kind or repr(t)
        raise Untranslatable(f"the engine has no type for Warp's {name}")

    def _struct(self, struct: Any) -> Any:
        fields = {name: self.type(var.type) for name, var in struct.vars.items()}
        names = {"__annotations__": fields, "__module__": struct.cls.__module__}
        return engine.struct(type(struct.cls.__name__, (), names))

    # ---- functions

    def _warp_function(self, function: Any) -> Any:
        if function.func is None:
            found = getattr(engine, function.key, None)
            if found is None:
                raise Untranslatable(f"the engine has no function `{function.key}`")
            return found
        several = [*function.user_templates.values(), *function.user_overloads.values()]
        own = {id(f.func): f for f in several if f.generic_parent is None} or {0: function}
        ordered = sorted(own.values(), key=lambda f: f.func.__code__.co_firstlineno)
        made: UserFunc | None = None
        for one in ordered:
            made = self._overload(one, made)
        return made

    def _overload(self, function: Any, before: UserFunc | None) -> UserFunc:
        notes = {name: self.type(t) for name, t in function.adj.arg_types.items()}
        func = self._function(function.func, notes)
        if function.native_snippet is not None:
            native: UserFunc = engine.func_native(
                function.native_snippet, function.adj_native_snippet, function.replay_snippet
            )(func)
            return native
        made = UserFunc(func, before)
        self._known[id(function)] = function, made  # it may call itself by its gradient
        if function.custom_grad_func is not None:
            engine.func_grad(made)(self._plain(function.custom_grad_func))
        if function.custom_replay_func is not None:
            engine.func_replay(made)(self._plain(function.custom_replay_func))
        return made

    def _plain(self, function: Any) -> Callable[..., Any]:
        notes = getattr(function.func, "__annotations__", {})
        around = {**function.func.__globals__}
        own = {n: self._annotation(t, around) for n, t in notes.items()}
        made: Callable[..., Any] = self._function(function.func, own)
        return made

    def _annotation(self, t: Any, around: Mapping[str, Any]) -> Any:
        return self.type(eval(t, dict(around)) if isinstance(t, str) else t)  # the user's own text

    def _function(self, func: Callable[..., Any], notes: Mapping[str, Any]) -> Any:
        """A function of the same code, whose names mean the engine's."""
        inner: Any = func
        while hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        code = inner.__code__
        kept = next((n for n in sorted(_names(code)) if _HANDLES.fullmatch(n)), None)
        if kept is not None:
            raise Untranslatable(
                f"it calls `{kept}`: an object of Warp, such as a mesh, grid, volume or tile, is "
                "not an object of the engine"
            )
        around = inner.__globals__
        names = {name: self._lazily(around[name]) for name in _names(code) if name in around}
        for name in ("__name__", "__file__", "__loader__", "__spec__"):
            if name in around:
                names[name] = around[name]
        cells = tuple(self._cell(c) for c in inner.__closure__ or ())
        made = types.FunctionType(code, names, inner.__name__, inner.__defaults__, cells)
        made.__kwdefaults__ = inner.__kwdefaults__
        made.__qualname__, made.__module__ = inner.__qualname__, inner.__module__
        made.__annotations__ = dict(notes)
        return made

    def _cell(self, cell: Any) -> Any:
        try:
            return types.CellType(self._lazily(cell.cell_contents))
        except ValueError:  # not assigned yet
            return types.CellType()

    def _lazily(self, obj: Any) -> Any:
        """The translation; the object itself where there is none, which lowering then tells."""
        try:
            return self.value(obj)
        except Untranslatable as why:
            self._failed.append(why)
        except EngineError:
            pass
        return obj


def _is_type(obj: type) -> bool:
    return hasattr(obj, "_wp_generic_type_str_") or obj.__module__.partition(".")[0] == "warp"


def _names(code: types.CodeType) -> set[str]:
    """All names that a function's code may look up."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


class _Names:
    """What has attributes that kernels name: modules, classes, objects."""

    def __init__(self, translation: Translation, of: Any) -> None:
        self.__dict__["_translation"] = translation
        self.__dict__["_of"] = of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._translation.value(getattr(self._of, name))
        except Untranslatable as why:
            raise AttributeError(str(why)) from None

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._translation.value(self._of(*args, **named))
