"""The program's names for arrays, found in variables of its functions and in structs."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from types import FrameType, ModuleType
from typing import Any, TypeAlias

from engine.diagnostics.site import is_own
from engine.itself import is_of_engine
from engine.runtime.array import array
from engine.runtime.structs import Struct
from engine.tape.outline import Key, key_of

# The longest and the shortest name of an array.
Names: TypeAlias = Mapping[Key, tuple[str, str]]
# A file and a function in it, or a module and "": a notebook's cells are files of one module.
Place: TypeAlias = tuple[str, str]

_INDEX = re.compile(r"\d+")
DEPTH = 3  # how far to look into lists, dictionaries, structs and objects
_FRAMES = 16
_VISITS = 200_000  # objects looked at, so that no program is slowed down by its data
_OTHERS = frozenset(
    {"numpy", "builtins", "torch", "jax", "jaxlib", "matplotlib", "scipy", "IPython", "ipykernel"}
)
# What IPython puts beside the variables of a notebook: lists of all inputs and outputs.
_HISTORY = re.compile(r"_\w*|In|Out")


@cache
def _libraries() -> tuple[str, ...]:
    """The folders of Python and of installed packages."""
    import sysconfig  # late: it reads how Python was built

    return tuple({p for k, p in sysconfig.get_paths().items() if k.endswith(("lib", "stdlib"))})


def variable_names(wanted: Collection[Key]) -> dict[Key, tuple[str, str]]:
    """The names that the calling program has for some arrays.

    Looks at the variables of the functions that are running, from the innermost outwards, and
    at those of their modules; in them at the members of structs and objects, and at the items
    of lists, tuples and dictionaries: `x`, `state.q`, `states[3]`, `self.model["x"].q`.
    """
    return search_names(wanted)[0]


def search_names(wanted: Collection[Key]) -> tuple[dict[Key, tuple[str, str]], int]:
    """The same, and how many objects were looked at."""
    if not wanted:
        return {}, 0
    search = _Search(frozenset(wanted))
    spaces: list[tuple[Place, dict[str, Any]]] = []
    frame: FrameType | None = sys._getframe(1)
    modules: list[tuple[Place, dict[str, Any]]] = []
    count = 0
    while frame is not None and count < _FRAMES:
        if not is_own(frame) and not frame.f_code.co_filename.startswith(_libraries()):
            count += 1
            code = frame.f_code
            if not any(m is frame.f_globals for _, m in modules):
                module = str(frame.f_globals.get("__name__"))
                modules.append(((module, ""), frame.f_globals))
            if code.co_name != "<module>":
                spaces.append(((code.co_filename, code.co_name), variables_of(frame)))
            elif frame.f_globals.get("__name__") == "__main__":
                break  # what is further out runs the program
        frame = frame.f_back
    spaces += [(place, _without_history(variables)) for place, variables in modules]
    # Programs that record many tapes have their arrays in the same variables each time.
    for place, variables in spaces:
        known = _led.get(place, set()) & variables.keys()
        search.look(place, {name: variables[name] for name in known})
    if len(search.names) < len(wanted):
        for place, variables in spaces:
            search.look(place, variables)
    return search.names, _VISITS - search.left


def _without_history(variables: dict[str, Any]) -> dict[str, Any]:
    if "get_ipython" not in variables:
        return variables
    return {n: v for n, v in variables.items() if not (type(n) is str and _HISTORY.fullmatch(n))}


def variables_of(frame: FrameType) -> dict[str, Any]:
    """A function's variables. The frame keeps none of them alive for it."""
    variables = frame.f_locals
    found = dict(variables)
    # Before Python 3.13 the frame keeps this copy, unless the program asked for it: `locals()`.
    if sys.version_info < (3, 13) and sys.getrefcount(variables) <= 3:
        variables.clear()
    return found


# Names of variables that have led to arrays, of each function and module by itself: another
# function may hold much data under the same name.
_led: dict[Place, set[str]] = {}


class _Search:
    def __init__(self, wanted: frozenset[Key]) -> None:
        self._wanted = wanted
        self.left = _VISITS
        self.names: dict[Key, tuple[str, str]] = {}
        self._seen: set[tuple[Key, str]] = set()

    def look(self, place: Place, variables: Mapping[str, Any]) -> None:
        """Notes the names that lead to arrays from the variables of a function or module."""
        for name, value in list(variables.items()):
            known = len(self._seen)
            if type(value) in _closed:  # most of what there is
                self.left -= 1
            elif isinstance(name, str) and not name.startswith("__"):
                # Objects of the user's may answer anything, and another thread may change them.
                with suppress(Exception):
                    self._visit(name, value, DEPTH)
                if len(self._seen) > known:
                    _led.setdefault(place, set()).add(name)

    def _visit(self, path: str, value: Any, depth: int) -> None:
        self.left -= 1
        if self.left < 0:
            return
        if isinstance(value, array):
            self._found(path, value)
        elif depth:
            for step, item in members(value):
                self._visit(path + step, item, depth - 1)

    def _found(self, path: str, a: array) -> None:
        key = key_of(a)
        if key not in self._wanted:
            return
        # Of the many places of one array in a list, the first will do.
        place = (key, _INDEX.sub("", path))
        if place in self._seen:
            return
        self._seen.add(place)
        known = self.names.get(key)
        if known is None:
            self.names[key] = (path, path)
        else:
            long, short = known
            self.names[key] = (
                max(long, path, key=lambda s: (len(s), s)),
                min(short, path, key=lambda s: (len(s), s)),
            )


def members(value: Any) -> Iterable[tuple[str, Any]]:
    """What a list, struct or object of a program has, each with what is typed to get it: `.q`."""
    kind = type(value)
    if _holds_none(kind):
        return ()
    if kind is list or kind is tuple:
        if value and isinstance(value[0], (int, float, str, bytes)):
            return []  # data
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if kind is dict:
        return [(f"[{k!r}]", v) for k, v in value.items() if isinstance(k, (str, int))]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return [(f".{f}", v) for f, v in zip(kind._fields, value, strict=False)]
    try:
        fields = object.__getattribute__(value, "__dict__")
    except AttributeError:
        fields = {s: getattr(value, s, None) for s in _slots(kind)}
    return [(f".{k}", v) for k, v in list(fields.items()) if isinstance(k, str)]


# Types of libraries whose objects are not looked into; those of programs are not kept alive.
_closed: set[type] = set()


def _holds_none(kind: type) -> bool:
    """Whether objects of a type are not looked into: data, modules, classes, those of libraries."""
    if kind in _closed or issubclass(kind, array):  # these are no such types: they are looked for
        return True
    if kind in (list, tuple, dict) or issubclass(kind, Struct):
        return False
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return False
    package = str(kind.__module__).split(".")[0]
    if (
        is_of_engine(kind)
        or package in _OTHERS
        or (package in sys.stdlib_module_names and package != "__main__")
    ):
        _closed.add(kind)
        return True
    return issubclass(kind, (type, ModuleType))


def _slots(kind: type) -> list[str]:
    """The slots of a dataclass, which reading has no side effect."""
    slots = getattr(kind, "__slots__", ()) if hasattr(kind, "__dataclass_fields__") else ()
    return [slots] if isinstance(slots, str) else [s for s in slots if isinstance(s, str)]
