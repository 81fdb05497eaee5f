"""Has the watcher of a framework begin where a program imports that, and end with the program.

A place of a framework may be in a module of it that is imported later (`import torch.autograd`). So
where something could not be watched, it is tried again as further modules have been imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Protocol

from engine.autograd.facts import Unwatched
from engine.foreign.collection import Collection
from engine.foreign.seams import Part, begun, ended, told, unusable
from engine.itself import ENGINE, load


class Watcher(Protocol):
    """What a framework's file has: a class `Watcher`, made with the framework's collection."""

    def __init__(self, collection: Collection) -> None: ...

    def parts(self, module: ModuleType) -> Mapping[str, Part]:
        """What begins to look, at each seam. module: the framework, imported."""

    def remove(self) -> None:
        """Ends it."""


class Installation:
    """The watcher of one framework. failed: what cannot be watched. unimported: why its import
    failed, empty where it did not. parts: its seams, by their keys.
    """

    def __init__(self, file: str, collection: Collection) -> None:
        self.framework = collection.framework
        self.failed: tuple[Unwatched, ...] = ()
        self.unimported = ""
        self._file, self._collection = file, collection
        self._module: ModuleType | None = None
        self._watcher: Watcher | None = None
        self.parts: Mapping[str, Part] = {}

    def begin(self, module: ModuleType) -> None:
        """Begins, or begins anew. module: the framework, imported."""
        self.unimported = ""
        self._module = module
        self._remove()
        try:
            self._watcher = load(f"engine.foreign.{self._file}").Watcher(self._collection)
            self.parts = self._watcher.parts(module)
        except Exception as error:  # the program is to run as it would without us
            self._remove()
            self.failed = (unusable(self.framework, module, error),)
            return
        self.failed = tuple(begun(self.framework, module, self.parts))

    def again(self) -> None:
        """Tries again where something could not be watched."""
        if self.failed and self._module is not None:
            self.begin(self._module)

    def end(self) -> None:
        """Ends it."""
        if self._watcher is not None and self._module is not None:
            self.failed += tuple(ended(self.framework, self._module, self.parts))
        self._remove()

    def _remove(self) -> None:
        if self._watcher is not None:
            self._watcher.remove()
        self._watcher, self.parts = None, {}


class Finder:
    """Finds nothing by itself: it tells where a module of `waiting` has been imported."""

    def __init__(self, waiting: dict[str, Installation]) -> None:
        self.waiting = waiting
        self._begun: dict[str, Installation] = {}
        self._busy = False
        self._depth = 0

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if self._busy or not (name in self.waiting or self._is_part(name)):
            return None
        self._busy = True
        try:
            spec = find_spec(name)
        finally:
            self._busy = False
        run = getattr(getattr(spec, "loader", None), "exec_module", None)
        if spec is None or run is None:
            return spec
        loader: Any = spec.loader

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            self._run(name, module, run)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader that is not to be changed
            return spec
        return spec

    def _is_part(self, name: str) -> bool:
        """Whether it is a module of a framework of which something could not be watched."""
        root, _, rest = name.partition(".")
        found = self._begun.get(root)
        return bool(rest and found is not None and found.failed)

    def _run(self, name: str, module: ModuleType, run: Callable[[ModuleType], None]) -> None:
        self._depth += 1
        try:
            run(module)
        except Exception as error:
            if (found := self.waiting.get(name)) is not None:
                found.unimported = told(error)
            raise
        finally:
            self._depth -= 1
        with _imported(name, module):
            if name in self.waiting:
                self.loaded(name, module)
            elif not self._depth and (part := self._begun.get(name.partition(".")[0])) is not None:
                part.again()

    def loaded(self, name: str, module: ModuleType) -> None:
        """Says that a module is there."""
        found = self.waiting.pop(name, None)
        if found is not None and module is not ENGINE:
            self._begun[name] = found
            found.begin(module)


@contextmanager
def _imported(name: str, module: ModuleType) -> Iterator[None]:
    """Has a module that has just run be as it is when its import has ended, a moment later."""
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)
    spec: Any = module.__spec__
    before = getattr(spec, "_initializing", False)
    if spec is not None:
        spec._initializing = False  # else what is missing is told as "a circular import"
    try:
        yield
    finally:
        if spec is not None:
            spec._initializing = before
