"""Modules of the checked program that have the name of a module of the tool.

The program's own come first, as in plain Python: its `engine.py`, or its `csv.py`. They stand in
`sys.modules`, also while functions of the program are checked. Those of the tool are put there for
imports of the tool, of the standard library and of installed packages alone.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import os
import re
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from itertools import islice
from types import ModuleType
from typing import Any

import adtool
import engine
from engine.reading import read

_BOOTSTRAP = vars(sys.modules["_frozen_importlib"])  # of `importlib`
TOOLS = {"adtool": adtool, "engine": engine}
OWN, OURS = "own", "ours"
# What the program and the tool both stand on: the interpreter, or they themselves, look in
# `sys.modules` for them.
_SHARED = ("copyreg", "numpy", "warnings")
_LATE = ("random", "fft", "linalg", "polynomial", "ma", "ctypeslib", "rec", "char", "strings",
         "testing", "typing")  # fmt: skip
_MOST = 1000  # entries of a folder that are looked at
# What the tool imports late.
_LIBRARIES = ("graphviz", "jinja2", "matplotlib", "pygments", "rich", "tomli", "typer")
_SUFFIXES = importlib.machinery.all_suffixes()


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")


_TOOL = tuple(_folder(os.path.dirname(str(m.__file__))) for m in TOOLS.values())
_INSTALLED = tuple(
    {_folder(p) for k, p in sysconfig.get_paths().items() if k.endswith("lib")}
    | {_folder(p) for p in (*site.getsitepackages(), site.getusersitepackages())}
)


class Restart(Exception):
    """The program is to run once more. choice: a word more for `ProgramModules`."""

    def __init__(self, choice: str) -> None:
        super().__init__(choice)
        self.choice = choice


class ProgramModules:
    """What the program has under names of the tool's modules, or of the standard library's.

    folders: those of its modules that come before the standard library, as the script's. started:
    names of the modules that Python had loaded before the tool: they are the program's, too.
    choice: what was found out in a run before this, as `own:engine` or `ours:engine`. To be made
    while the folders are not, or the last, in `sys.path`.
    """

    def __init__(
        self, folders: Sequence[str], started: Iterable[str], choice: Sequence[str] = ()
    ) -> None:
        self._folders = folders
        self._python = frozenset((*started, *sys.builtin_module_names, *_SHARED))
        words = (word.split(":") for word in choice)
        self._choice = {name: which for which, name in words}
        names = set(_own_names(folders)) - self._python
        names |= {n for n, which in self._choice.items() if which == OWN}
        self.names = frozenset(names - {n for n, w in self._choice.items() if w == OURS})
        if self.names:
            _load_numpy()
        self._there = True  # whether the program's stand in `sys.modules`, and not the tool's
        self._others: dict[str, ModuleType] = {}  # those that do not
        self._lock = threading.RLock()
        self._import: Any = builtins.__import__
        self._by_name: Any = _BOOTSTRAP["_gcd_import"]

    @contextmanager
    def given(self) -> Iterator[None]:
        """The program finds its own modules, from then on: checks run functions of its own."""
        if self.names:
            self._import = builtins.__import__
            builtins.__import__ = self._imported
            _BOOTSTRAP["_gcd_import"] = self._imported_by_name
            sys.meta_path.insert(0, self)
            self._others = self._taken()
        yield

    def close(self) -> None:
        """Puts the tool's modules in place: Python itself looks for some when it ends."""
        if self._there and self._others:
            self._swap()

    def _imported(
        self, name: str, globals: Mapping[str, Any] | None = None, locals: Any = None,
        fromlist: Any = (), level: int = 0,
    ) -> Any:  # fmt: skip
        """Takes the place of `__import__`: a name is looked up for the one that asks."""
        scope = globals or {}
        whole = str(scope.get("__package__") or scope.get("__name__")) if level else name
        top = whole.partition(".")[0]
        if top not in self.names:
            return self._import(name, globals, locals, fromlist, level)
        # Compiled code, as pickle's, takes from `sys.modules` what it had imported so.
        compiled = fromlist == ["__doc__"] and not self._is_tools(scope)
        if compiled or self._is_programs(top, scope):
            with self._standing(True):
                return self._import(name, globals, locals, fromlist, level)
        try:
            with self._standing(False):
                found = self._import(name, globals, locals, fromlist, level)
            if self._is_tools(scope) or all(
                word == "*" or hasattr(found, word) for word in fromlist or ()
            ):
                return found
        except ModuleNotFoundError as error:
            if self._is_tools(scope) or error.name == top:
                raise
        # A library looks for what the program has named, as a class in a pickle.
        with self._standing(True):
            return self._import(name, globals, locals, fromlist, level)

    def _imported_by_name(self, name: str, package: str | None = None, level: int = 0) -> Any:
        """The same for `importlib.import_module`, by who calls that."""
        top = ((package or "") if level else name).partition(".")[0]
        scope = sys._getframe(2).f_globals
        if top not in self.names:
            return self._by_name(name, package, level)
        with self._standing(self._is_programs(top, scope)):
            return self._by_name(name, package, level)

    @contextmanager
    def _standing(self, programs: bool) -> Iterator[None]:
        """Puts the modules of one side in place."""
        if programs is self._there:
            yield
            return
        with self._lock:
            self._swap()
            try:
                yield
            finally:
                self._swap()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Finds the program's modules where they stand behind the tool's, or the other way."""
        if name not in self.names:
            return None
        if self._there:
            return _own_spec(name, sys.path) if name in TOOLS else None
        found = PathFinder.find_spec(name, [p for p in sys.path if p not in self._folders])
        if found is None:  # the finders after this one would find the program's
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found

    def _swap(self) -> None:
        others, self._others = self._others, self._taken()
        self._there = not self._there
        sys.modules.update(others)

    def _taken(self) -> dict[str, ModuleType]:
        names = [n for n in list(sys.modules) if n.partition(".")[0] in self.names]
        return {n: sys.modules.pop(n) for n in names}

    def _is_tools(self, scope: Mapping[str, Any]) -> bool:
        file = _file_of(scope)
        return file is not None and os.path.realpath(file).startswith(_TOOL)

    def _is_programs(self, top: str, scope: Mapping[str, Any]) -> bool:
        """Whether the program asks, and not the tool or what it stands on."""
        file = _file_of(scope)
        if file is None:
            return True
        file = os.path.realpath(file)
        return not file.startswith(_TOOL if top in TOOLS else (*_TOOL, *_INSTALLED))

    def require_meant(self, error: BaseException | None) -> None:
        """Raises Restart where the program failed since a module was not the one that it meant."""
        if error is not None and (choice := self._again(error)):
            raise Restart(choice)

    def _again(self, error: BaseException) -> str:
        name, missing = _blamed(error)
        top = name.partition(".")[0]
        if not top or top in self._choice or top in self._python:
            return ""
        if top not in self.names:
            loaded = sys.modules.get(top)
            here = getattr(loaded, "__file__", None) or ""
            tools = top in TOOLS or top in sys.stdlib_module_names
            return f"{OWN}:{top}" if tools and here and _own_spec(top, sys.path) else ""
        return f"{OURS}:{top}" if top in TOOLS and _has(TOOLS[top], name, missing) else ""

    def explained(self, error: BaseException) -> str:
        """What to do where the program means both a module of its own and the tool's."""
        top = _blamed(error)[0].partition(".")[0]
        if self._choice.get(top) != OURS:
            return ""
        own = _own_spec(top, [*self._folders, *sys.path])
        where = getattr(own, "origin", None) or f"a folder `{top}`"
        return (
            f"`{top}` is a module of the program ({where}) and of adtool, and the program uses "
            "names of both: rename the module of the program, or import the engine as warp, with "
            "--alias warp"
        )


def _file_of(scope: Mapping[str, Any]) -> str | None:
    """The file of the module that names are of; of its package, where compiled code has none."""
    package = sys.modules.get(str(scope.get("__name__", "")).partition(".")[0])
    places = (
        scope.get("__file__"),
        getattr(scope.get("__spec__"), "origin", None),
        getattr(package, "__file__", None),
    )
    return next((p for p in places if isinstance(p, str)), None)


def _load_numpy() -> None:
    """Loads what NumPy loads late: compiled code imports past `__import__`, by the path alone."""
    for name in _LATE:
        with suppress(ImportError, AttributeError):
            importlib.import_module(f"numpy.{name}")


def _own_names(folders: Sequence[str]) -> Iterator[str]:
    loaded = {n.partition(".")[0] for n in sys.modules}
    known = loaded | sys.stdlib_module_names | {*TOOLS, *_LIBRARIES}
    for folder in folders:
        try:
            entries = os.listdir(folder or os.curdir)
        except OSError:
            continue
        for entry in entries:
            name = next((entry.removesuffix(s) for s in _SUFFIXES if entry.endswith(s)), entry)
            if name in known and _own_spec(name, folders):
                yield name


def _own_spec(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    """A module of the program in these folders; not the tool's, nor another copy of it."""
    for folder in folders:
        spec = PathFinder.find_spec(name, [folder])
        if spec is None:
            continue
        # A folder without `__init__.py` gives way to a module of that name further on.
        if spec.loader is None and (name not in TOOLS or not _has_programs(spec)):
            continue
        if spec.origin is None or not (_is_tool(name, spec.origin) or _is_installed(spec.origin)):
            return spec
    return None


def _has_programs(spec: ModuleSpec) -> bool:
    """Whether a folder without `__init__.py` is a package: one of data is none."""
    for place in spec.submodule_search_locations or ():
        with suppress(OSError):
            folders = [place, *(e.path for e in islice(os.scandir(place), _MOST) if e.is_dir())]
            if any(e.endswith(".py") for f in folders for e in os.listdir(f)):
                return True
    return False


def _is_tool(name: str, file: str) -> bool:
    if name not in TOOLS:
        return False
    ours = str(TOOLS[name].__file__)
    if os.path.realpath(file) == os.path.realpath(ours):
        return True
    try:
        return _first_line(file) == _first_line(ours)
    except OSError:
        return False


def _first_line(file: str) -> bytes:
    return read(file).partition(b"\n")[0]


def _is_installed(file: str) -> bool:
    return os.path.realpath(file).startswith(_INSTALLED)


def _blamed(error: BaseException) -> tuple[str, str]:
    """The module that an error is about, and the name that it does not have."""
    name: object = ""
    missing: object = ""
    # An exception of the program's may have any attributes.
    with suppress(Exception, SystemExit):
        if isinstance(error, ImportError):
            found = re.match(r"cannot import name '([^']+)'", str(error))
            name, missing = error.name, found[1] if found else ""
        elif isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
            name, missing = error.obj.__name__, error.name
    return name if type(name) is str else "", missing if type(missing) is str else ""


def _has(module: ModuleType, name: str, missing: str) -> bool:
    """Whether the tool's module has what the program's own was asked for."""
    within = name.partition(".")[2]
    try:
        return hasattr(module, within.partition(".")[0] or missing) if within or missing else False
    except Exception:
        return False
