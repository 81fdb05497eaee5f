"""`torch.autograd.Function.apply`, replaced while a program is watched.

The attribute of the class is set, which works the same way whether PyTorch has written `apply` in
Python (before 2.14) or in C. Names that the program gave to `apply` before (`cube = Cube.apply`)
refer to the original: those in modules, objects and closures are set, too. A call by any other such
name is noticed by the node that it makes, and told.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from types import BuiltinMethodType, CellType, MethodType
from typing import Any

from engine.itself import is_of_engine

GENERATED = "GeneratedBackwardFor_"  # what PyTorch calls functions that it makes for operators
Applied = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class Apply:
    """The replacement. It calls `applied(cls, args, kwargs)`, and `missed(cls)` for other calls."""

    def __init__(self, applied: Applied, missed: Callable[[Any], None]) -> None:
        self._applied, self._missed = applied, missed
        self._original: Any = None
        self._undo: list[Callable[[], None]] = []
        self._now = threading.local()

    def begin(self, function: Any) -> None:
        """Replaces it. function: `torch.autograd.Function`."""
        self._original = inspect.getattr_static(function, "apply")
        self._original.__get__(None, function)  # raises where it is no method of a class
        applied = self._applied

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            return applied(cls, args, kwargs)

        if classes := {id(c): c for c in _below(function) if not is_inner(c)}:
            self._rename(classes, apply)
        self._set(function, "apply", classmethod(apply))
        nodes = sys.modules[function.__module__]
        self._set(vars(nodes)["BackwardCFunction"], "__init__", self._noticing())

    def end(self) -> None:
        """Puts everything back."""
        while self._undo:
            self._undo.pop()()

    def original(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls what was replaced."""
        before = getattr(self._now, "cls", None)
        self._now.cls = cls
        try:
            return self._original.__get__(None, cls)(*args, **kwargs)
        finally:
            self._now.cls = before

    def _noticing(self) -> Callable[..., None]:
        """The `__init__` of nodes: one that no call by way of the replacement has made is told."""

        def __init__(node: Any, *args: Any, **kwargs: Any) -> None:
            cls = getattr(type(node), "_forward_cls", None)
            if cls is not None and getattr(self._now, "cls", None) is not cls:
                self._missed(cls)

        return __init__

    def _set(self, owner: Any, name: str, value: Any) -> None:
        own, was = name in vars(owner), vars(owner).get(name)
        setattr(owner, name, value)
        self._undo.append(
            (lambda: setattr(owner, name, was)) if own else (lambda: delattr(owner, name))
        )

    def _rename(self, classes: dict[int, Any], apply: Callable[..., Any]) -> None:
        """Has names that a program has for the `apply` of its classes refer to the new one."""
        # What is in modules may be hidden from the collector (`gc.freeze`).
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None)
            if type(names) is dict:
                self._rename_in(names, lambda x: self._is_taken(x, classes), apply)
        for method in gc.get_referrers(*classes.values()):
            if self._is_taken(method, classes):
                self._rename_one(method, apply)

    def _rename_one(self, method: Any, apply: Callable[..., Any]) -> None:
        # No closure here may hold the method: its cell would be one of those.
        same = functools.partial(operator.is_, method)
        for holder in gc.get_referrers(method):
            if isinstance(holder, CellType):
                new = MethodType(apply, method.__self__)
                self._undo.append(_change(holder, "", method, new))
            names = holder if type(holder) is dict else getattr(holder, "__dict__", None)
            # Dictionaries of classes are left: types keep copies of what is there.
            if type(names) is dict and "__qualname__" not in names and "__mro__" not in names:
                self._rename_in(names, same, apply)

    def _rename_in(
        self, names: dict[Any, Any], wanted: Callable[[Any], bool], apply: Callable[..., Any]
    ) -> None:
        for name, value in list(names.items()):
            if wanted(value):
                new = MethodType(apply, value.__self__)
                self._undo.append(_change(names, name, value, new))

    def _is_taken(self, value: Any, classes: dict[int, Any]) -> bool:
        if type(value) not in (BuiltinMethodType, MethodType) or value.__name__ != "apply":
            return False
        cls = classes.get(id(value.__self__))
        return cls is not None and bool(value == self._original.__get__(None, cls))


def _change(holder: Any, name: Any, was: Any, value: Any) -> Callable[[], None]:
    """Puts a value where another one is, in a dictionary or cell; what is given puts it back."""
    _exchange(holder, name, was, value)
    return functools.partial(_exchange, holder, name, value, was)


def _exchange(holder: Any, name: Any, was: Any, value: Any) -> None:
    if isinstance(holder, CellType):
        with contextlib.suppress(ValueError):  # it is empty by now
            if holder.cell_contents is was:
                holder.cell_contents = value
    elif holder.get(name) is was:
        holder[name] = value


def is_inner(cls: Any) -> bool:
    """Whether a function is PyTorch's or the engine's own, and not made for an operator."""
    torchs = (cls.__module__ or "").partition(".")[0] == "torch"
    return is_of_engine(cls) or (torchs and not cls.__name__.startswith(GENERATED))


def _below(cls: Any) -> Iterator[Any]:
    for c in cls.__subclasses__():
        yield c
        yield from _below(c)
