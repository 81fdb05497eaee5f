"""Modules under the alias: `warp`, `warp.x` for `engine.x`, and stand-ins for internals."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from engine.alias.natives import RUNTIME
from engine.frontend.features import Finder
from engine.itself import ENGINE, load
from engine.lang.stand_ins import StandIn, StandInModule, make_stand_in

# Packages of the engine that are no part of what Warp offers under the same name.
_OWN = frozenset(
    [
        "ad",
        "alias",
        "archive",
        "builtins",
        "codegen",
        "compile",
        "diagnostics",
        "frontend",
        "hooks",
        "interop",
        "ir",
        "lang",
        "locks",
        "runtime",
        "tape",
    ]
)
# What another package of the alias's name may lend: programs and their data, in Python alone.
_LENT = frozenset(["examples", "tests"])
_INTERNALS = ("internals of Warp", "use the public names of `engine`")


class Front(types.ModuleType):
    """The module of the alias itself: every name is looked up in `engine`."""

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or (name.startswith("__") and name != "__all__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name == "_src" or name in _FORMER:
            return importlib.import_module(f"{self.__name__}.{name}")
        return getattr(ENGINE, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(ENGINE)} - _OWN)


def front(name: str, version: str) -> Front:
    """The module that `import NAME` gives."""
    made = Front(name, ENGINE.__doc__)
    made.__path__ = []
    made.__package__ = name
    made.__spec__ = ModuleSpec(name, None, is_package=True)
    vars(made)["__version__"] = version
    vars(made)["__is_engine__"] = True  # to kernels that name it
    return made


class Internal(types.ModuleType):
    """A private module of Warp: its public names, as far as the engine has them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        last = self.__name__.rpartition(".")[2]
        for module in (f"engine.{last}", "engine"):
            found = None if name in _OWN else getattr(_engine_module(module), name, None)
            if found is not None and not isinstance(found, (StandIn, StandInModule)):
                return found
        within = self.__name__.partition(".")[2]
        if within == "_src" and name in _PRIVATE:
            return importlib.import_module(f"{self.__name__}.{name}")
        return make_stand_in(f"{within}.{name}", *_INTERNALS)


def _engine_module(name: str) -> types.ModuleType | None:
    if name != "engine" and name.partition(".")[2] in _OWN:
        return None
    try:
        found: types.ModuleType = load(name)
    except ImportError:
        return None
    return None if isinstance(found, StandInModule) else found


def _is_there(within: str) -> bool:
    """Whether the engine has a module, by its name without `engine.`."""
    package, _, _ = f"engine.{within}".rpartition(".")
    try:
        path = load(package).__path__
    except (ImportError, AttributeError):
        return False
    finders = (importlib.machinery.PathFinder, Finder)
    return any(f.find_spec(f"engine.{within}", path) is not None for f in finders)


def _user_cache_dir(appname: str = "", *rest: Any, **options: Any) -> str:
    """Where programs keep what can be made again."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, appname) if appname else home


class _BuiltinFunctions(Mapping[str, Any]):
    """The functions of the kernel language by name, as programs ask whether there is one."""

    @staticmethod
    def _names() -> Collection[str]:
        from engine.builtins.stubs import BUILTINS

        return BUILTINS

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        return getattr(ENGINE, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


# What programs take from private modules, and from modules that Warp brings along.
_BROUGHT: dict[str, dict[str, Any]] = {
    "_src.thirdparty.appdirs": {"user_cache_dir": _user_cache_dir},
    "_src.context": {"runtime": RUNTIME, "builtin_functions": _BuiltinFunctions()},
    "_src.types": {"Any": Any},
    "context": {"runtime": RUNTIME},
}
# Private modules by their former public names.
_FORMER = ("context", "build")
_PRIVATE = frozenset(["thirdparty", "codegen", "build", "context", "types", "utils"])


class AliasFinder(MetaPathFinder, Loader):
    """Finds `NAME.x` as `engine.x`, whether or not another package of that name is installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        """A spec for what is below the alias; None for modules that are not there."""
        root, _, within = fullname.partition(".")
        if root != self.name or not within:
            return None
        first = within.split(".")[0]
        if first == "_src" or first in _FORMER:
            return ModuleSpec(fullname, self, is_package=True)
        if first in _LENT:
            lent = self._lent(fullname, path)
            if lent is not None:
                return lent
        if first in _OWN or not _is_there(first):
            return None
        return None if not _is_there(within) else ModuleSpec(fullname, self, is_package=True)

    def _lent(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """A module of another package of that name, where one is installed."""
        if fullname.count(".") == 1:
            path = [os.path.join(place or os.curdir, self.name) for place in sys.path]
        return importlib.machinery.PathFinder.find_spec(fullname, path) if path else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        """An internal module is made; one of the engine is put in place by `exec_module`."""
        within = spec.name.partition(".")[2]
        if within.split(".")[0] not in ("_src", *_FORMER):
            return None
        made = Internal(spec.name)
        made.__dict__.update(_BROUGHT.get(within, {}))
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        """Puts the engine's own module under the alias's name."""
        name = module.__name__
        if not isinstance(module, Internal):
            sys.modules[name] = load("engine." + name.partition(".")[2])
