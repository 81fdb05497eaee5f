"""Modules and functions that the tool uses, kept from before the target could change them.

Put back are Python's own: builtins, the functions and classes of the standard library, what `sys`
holds and the environment. Functions of the program that are checked later see that, too; what they
use of NumPy stays as the program left it.
"""

from __future__ import annotations

import builtins
import linecache
import os
import resource
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

from adtool.outcome import Outcome
from engine.draws import default_rng  # noqa: F401  (before the target can change it)

_BUILTINS = builtins.__dict__
_LISTS = ("path", "meta_path", "path_hooks")
_STREAMS = ("stdin", "stdout", "stderr")
# Names of `sys` that are the program's.
_PROGRAMS = frozenset({"argv", "modules", "last_type", "last_value", "last_traceback", "last_exc",
                       *_LISTS, *_STREAMS})  # fmt: skip
_LIMITS = tuple(
    getattr(resource, n) for n in dir(resource) if n.startswith("RLIMIT_") and n != "RLIMIT_OFILE"
)
_FROZEN = ("_frozen_importlib", "_frozen_importlib_external")
_HEAP = 1 << 9  # the flag of classes that a `class` statement makes
# A program that draws other numbers does so in functions that are checked, too.
_KEPT = frozenset({"random", "__main__"})


class LastWords:
    """What is told where nothing else can be: made before the target, of what it was then."""

    def __init__(self, folder: str, result: str, blame: bytes) -> None:
        self._partial, self._path = f"{folder}/{result}.last", f"{folder}/{result}"
        self._blame = blame
        self._call = os.open, os.write, os.close, os.replace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC

    def say(self) -> None:
        """Writes them in the place of a result. Raises OSError."""
        open, write, close, replace, flags = self._call
        descriptor = open(self._partial, flags, 0o600)
        write(descriptor, self._blame)
        close(descriptor)
        replace(self._partial, self._path)


class Surroundings:
    """As a context around the target: afterwards all is as it was at the beginning."""

    def __init__(self) -> None:
        self._builtins: dict[str, Any] = {}
        self._numpy: list[tuple[str, ModuleType, dict[str, Any]]] = []

    def __enter__(self) -> Surroundings:
        self._builtins = dict(_BUILTINS)
        self._loaded: dict[str, Any] = sys.modules
        self._state = [
            (linecache, "cache", linecache.cache),
            (warnings, "filters", warnings.filters),
        ]
        self._sys = {k: v for k, v in vars(sys).items() if k not in _PROGRAMS}
        self._lists = {name: list(getattr(sys, name)) for name in _LISTS}
        self._streams = {name: getattr(sys, name) for name in _STREAMS}
        self._limit, self._flags = sys.getrecursionlimit(), sys.getdlopenflags()
        self._environment = dict(os.environ)
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._limits = {n: resource.getrlimit(n) for n in _LIMITS}
        self._classes = [(c, _callables(c), frozenset(vars(c))) for c in _classes()]
        self._names = [(m.__dict__, _callables(m)) for m in _standard()]
        self._numpy = [
            (n, m, _callables(m))
            for n, m in _loaded()
            if n == "engine" or n.partition(".")[0] == "numpy"
        ]
        return self

    def __exit__(self, *error: object) -> None:
        # First, and with none of them: all that follows is built of these.
        _BUILTINS.update(self._builtins)
        vars(sys)["modules"] = self._loaded
        blocked = [name for name, module in self._loaded.items() if module is None]
        for name in blocked:
            del self._loaded[name]
        for owner, word, value in self._state:
            if type(owner.__dict__.get(word)) is not type(value):
                owner.__dict__[word] = value
        for space, values in self._names:
            space.update(values)
        for kind, values, words in self._classes:
            for word, value in values.items():
                if kind.__dict__.get(word) is not value:
                    type.__setattr__(kind, word, value)
            for word in kind.__dict__.keys() - words:
                if callable(kind.__dict__[word]) and hasattr(kind.__base__, word):
                    type.__delattr__(kind, word)  # which hid what it inherits
        vars(sys).update(self._sys)
        for name, saved in self._lists.items():
            _extend(name, saved)
        for name, stream in self._streams.items():
            if not hasattr(sys, name):
                setattr(sys, name, stream)
        if sys.getrecursionlimit() < self._limit:
            sys.setrecursionlimit(self._limit)
        sys.setdlopenflags(self._flags)
        os.umask(self._mask)
        for number, (soft, _) in self._limits.items():
            hard = resource.getrlimit(number)[1]
            with suppress(ValueError, OSError):  # the target has lowered the hard one, too
                resource.setrlimit(number, (soft if _fits(soft, hard) else hard, hard))
        for key, value in self._environment.items():
            os.environ.setdefault(key, value)
        if (path := self._environment.get("PATH")) and path != os.environ["PATH"]:
            os.environ["PATH"] = os.pathsep.join(filter(None, (os.environ["PATH"], path)))

    def blame(self) -> Outcome | None:
        """Why the checks failed, where the target has changed what they use, or goes on to."""
        if any(_BUILTINS.get(k) is not v for k, v in self._builtins.items()):
            _BUILTINS.update(self._builtins)
            return Outcome(
                "target",
                "the script changed the builtins of Python during the check of its tapes",
                "let its threads end first",
            )
        changed = self._changed()
        if not changed:
            return None
        some = ", ".join(f"`{name}`" for name in changed[:3]) + ", ..." * (len(changed) > 3)
        return Outcome(
            "target",
            f"the script replaced {some}, which the checks use",
            "let the script restore the original, for instance with unittest.mock.patch(...)",
        )

    def _changed(self) -> list[str]:
        return [
            f"{name}.{word}"
            for name, module, saved in self._numpy
            for word, value in saved.items()
            if word != "default_rng" and not _same(module.__dict__.get(word), value)
        ]


def _fits(soft: int, hard: int) -> bool:
    return hard == resource.RLIM_INFINITY or resource.RLIM_INFINITY != soft <= hard


def _same(now: Any, saved: Any) -> bool:
    """The engine puts names of its own in the place of others, as they are loaded."""
    return now is saved or str(getattr(now, "__module__", "")).partition(".")[0] == "engine"


def _extend(name: str, saved: list[Any]) -> None:
    """Puts what is missing into a list of `sys`: finders of the tool first, folders last."""
    now = getattr(sys, name, None)
    if not isinstance(now, list):
        now = []
    if name == "path":
        now[:] = [x for x in now if isinstance(x, str) and "\0" not in x]
    missing = [x for x in saved if not any(x is y or x == y for y in now)]
    if name == "path":
        now.extend(missing)
    else:
        others = [x for x in now if not any(x is y for y in saved)]
        guard = _Finder if name == "meta_path" else _hook
        now[:] = [*saved, *(x if _is_engines(x) else guard(x) for x in others)]
    setattr(sys, name, now)


def _is_engines(finder: object) -> bool:
    return type(finder).__module__.partition(".")[0] == "engine"


class _Finder:
    """A finder of the program's, which finds nothing where it fails."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        try:
            return self._finder.find_spec(name, path, target)
        except ImportError:
            raise
        except Exception:
            return None


def _hook(hook: Any) -> Callable[[str], Any]:
    """A hook of the program's for entries of `sys.path`, which minds none where it fails."""

    def guarded(path: str) -> Any:
        try:
            return hook(path)
        except Exception as error:
            raise ImportError(str(type(error))) from None

    return guarded


def _callables(owner: ModuleType | type) -> dict[str, Any]:
    kinds = (classmethod, staticmethod, property)
    return {k: v for k, v in list(vars(owner).items()) if callable(v) or isinstance(v, kinds)}


def _classes() -> Iterator[type]:
    """Classes of such modules that are written in Python: others cannot be changed."""
    seen = set()
    for module in _standard():
        for kind in list(vars(module).values()):
            if isinstance(kind, type) and kind.__flags__ & _HEAP and kind not in seen:
                seen.add(kind)
                yield kind


def _loaded() -> Iterator[tuple[str, ModuleType]]:
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType):
            yield name, module


def _standard() -> Iterator[ModuleType]:
    """Modules of the standard library, of the interpreter, and of the tool."""
    library = os.path.join(sysconfig.get_path("stdlib"), "")
    for name, module in _loaded():
        if name.partition(".")[0] in _KEPT or module in (sys, builtins):
            continue
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] == "adtool":
            yield module
        elif file is None:
            origin = getattr(getattr(module, "__spec__", None), "origin", None)
            if name in sys.builtin_module_names or origin == "frozen" or name in _FROZEN:
                yield module
        elif file.startswith(library) and "site-packages" not in file:
            yield module
