"""What the tool runs on, as it was before the target: a program may have changed any of it.

Put back are Python's own: builtins, the functions and classes of the standard library, what `sys`
holds and the environment. Functions of the program that are checked later see that, too; what they
use of NumPy stays as the program left it.
"""

from __future__ import annotations

import builtins
import os
import resource
import sys
import sysconfig
from collections.abc import Iterator
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
_LIMITS = (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
# A program that draws other numbers does so in functions that are checked, too.
_KEPT = frozenset({"random", "__main__"})


class Surroundings:
    """As a context around the target: afterwards all is as it was at the beginning."""

    def __init__(self) -> None:
        self._numpy: list[tuple[str, ModuleType, dict[str, Any]]] = []

    def __enter__(self) -> Surroundings:
        self._builtins = dict(_BUILTINS)
        self._sys = {k: v for k, v in vars(sys).items() if k not in _PROGRAMS}
        self._lists = {name: list(getattr(sys, name)) for name in _LISTS}
        self._streams = {name: getattr(sys, name) for name in _STREAMS}
        self._limit, self._flags = sys.getrecursionlimit(), sys.getdlopenflags()
        self._environment = dict(os.environ)
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._limits = {n: resource.getrlimit(n) for n in _LIMITS}
        self._names = [(m.__dict__, _callables(m)) for m in _standard()]
        self._numpy = [
            (n, m, _callables(m)) for n, m in _loaded() if n.partition(".")[0] == "numpy"
        ]
        return self

    def __exit__(self, *error: object) -> None:
        # First, and with none of them: all that follows is built of these.
        _BUILTINS.update(self._builtins)
        for space, values in self._names:
            space.update(values)
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

    def blame(self) -> Outcome | None:
        """Why the checks failed, where the target has changed what they use of NumPy."""
        changed = self._changed()
        if not changed:
            return None
        some = ", ".join(f"`{name}`" for name in changed[:3]) + ", ..." * (len(changed) > 3)
        return Outcome(
            "target",
            f"the script has put something else in the place of {some}, which the checks use",
            "let it put back what it found: with unittest.mock.patch(...): does so",
        )

    def _changed(self) -> list[str]:
        return [
            f"{name}.{word}"
            for name, module, saved in self._numpy
            for word, value in saved.items()
            if module.__dict__.get(word) is not value
        ]


def _fits(soft: int, hard: int) -> bool:
    return hard == resource.RLIM_INFINITY or resource.RLIM_INFINITY != soft <= hard


def _extend(name: str, saved: list[Any]) -> None:
    """Puts what is missing into a list of `sys`: finders of the tool first, folders last."""
    now = getattr(sys, name, None)
    if not isinstance(now, list):
        now = []
    missing = [x for x in saved if not any(x is y or x == y for y in now)]
    if name == "path":
        now.extend(missing)
    else:
        now[:] = [*saved, *(x for x in now if not any(x is y for y in saved))]
    setattr(sys, name, now)


def _callables(module: ModuleType) -> dict[str, Any]:
    return {k: v for k, v in list(vars(module).items()) if callable(v)}


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
            if name in sys.builtin_module_names:
                yield module
        elif file.startswith(library) and "site-packages" not in file:
            yield module
