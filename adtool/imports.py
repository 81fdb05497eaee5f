"""Finds the files of a repository that a script imports, by reading source text alone."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from engine.classes import dataclass
from engine.reading import read

_LOADERS = ("import_module", "__import__", "run_module", "import_string")


@dataclass(slots=True)
class Imports:
    """Follows imports. roots: folders that modules may be found in, besides the script's own.

    there: whether a path is a file; a file that was removed may be taken for one. files: of all
    Python files, for modules that are in none of the roots (a script may change `sys.path`).
    """

    roots: tuple[str, ...]
    there: Callable[[str], bool]
    files: Callable[[], Iterable[str]]
    _names: dict[str, tuple[_Name, ...] | None] = field(default_factory=dict)
    _ends: dict[str, list[str]] | None = None

    def reach(self, script: str) -> Iterator[tuple[str, bool]]:
        """The script and all files that it leads to, with whether each could be read."""
        yield from self._follow([os.path.abspath(script)], os.path.dirname(os.path.abspath(script)))

    def reach_module(self, module: str) -> Iterator[tuple[str, bool]]:
        """The same of a module that is run by name, from the current folder."""
        here = os.getcwd()
        parts = (*module.split("."), "__main__")
        yield from self._follow(self._found(parts, (here, *self.roots)), here)

    def _follow(self, first: Iterable[str], folder: str) -> Iterator[tuple[str, bool]]:
        roots = tuple(dict.fromkeys((folder, *self.roots)))
        waiting = list(dict.fromkeys(first))
        seen = set(waiting)
        while waiting:
            path = waiting.pop()
            names = self._of(path)
            yield path, names is not None
            for name in names or ():
                for found in self._resolved(name, path, roots):
                    if found not in seen:
                        seen.add(found)
                        waiting.append(found)

    def _of(self, path: str) -> tuple[_Name, ...] | None:
        if path not in self._names:
            self._names[path] = _names(path)
        return self._names[path]

    def _resolved(self, name: _Name, path: str, roots: tuple[str, ...]) -> list[str]:
        if name.level == 0:
            found = self._found(name.parts, roots)
            return found or self._anywhere(name.parts)
        folder = os.path.dirname(path)
        for _ in range(name.level - 1):
            folder = os.path.dirname(folder)
        init = os.path.join(folder, "__init__.py")
        return [*([init] if self.there(init) else []), *self._found(name.parts, (folder,))]

    def _found(self, parts: tuple[str, ...], roots: Iterable[str]) -> list[str]:
        """Files of a module and of the packages that it is in, in all roots: which comes first
        is known only when the script runs.
        """
        out = []
        for root in roots:
            place = root
            for part in parts:
                place = os.path.join(place, part)
                for path in (os.path.join(place, "__init__.py"), place + ".py", place + ".pyi"):
                    if self.there(path):
                        out.append(path)
        return out

    def _anywhere(self, parts: tuple[str, ...]) -> list[str]:
        if self._ends is None:
            self._ends = {}
            for path in self.files():
                stem = path.removesuffix(".py").removesuffix(os.sep + "__init__")
                self._ends.setdefault(os.path.basename(stem), []).append(path)
        out = []
        for path in self._ends.get(parts[0], ()):
            package = os.path.basename(path) == "__init__.py"
            root = os.path.dirname(os.path.dirname(path) if package else path)
            out += self._found(parts, (root,))
        return out


@dataclass(frozen=True, slots=True)
class _Name:
    """A module's name as it is imported. level: dots before it."""

    parts: tuple[str, ...]
    level: int = 0


def _names(path: str) -> tuple[_Name, ...] | None:
    """All that a file imports, wherever in it; None where it is no Python that can be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in other people's strings
            tree = ast.parse(read(path))
    except FileNotFoundError:
        return ()  # removed: it leads nowhere any more
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tuple(dict.fromkeys(n for node in ast.walk(tree) for n in _of_node(node)))


def _of_node(node: ast.AST) -> Iterator[_Name]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield _Name(tuple(alias.name.split(".")))
    elif isinstance(node, ast.ImportFrom):
        parts = tuple(node.module.split(".")) if node.module else ()
        yield _Name(parts, node.level)
        for alias in node.names:  # each may be a module
            if alias.name != "*":
                yield _Name((*parts, alias.name), node.level)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[_Name]:
    """`importlib.import_module("a.b")`, and others that take a module's name as a text."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else (
        node.func.id if isinstance(node.func, ast.Name) else "")  # fmt: skip
    if called not in _LOADERS:
        return
    given = [*node.args, *(k.value for k in node.keywords if k.arg in ("name", "package"))]
    texts = [g.value for g in given if isinstance(g, ast.Constant) and isinstance(g.value, str)]
    if not texts:
        return
    name = texts[0].lstrip(".")
    level = len(texts[0]) - len(name)
    parts = tuple(name.split(".")) if name else ()
    if level and len(texts) > 1:  # relative to a package that is named
        package = texts[1].split(".")
        yield _Name((*package[: len(package) - level + 1], *parts))
    else:
        yield _Name(parts, level)
