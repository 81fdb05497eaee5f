"""Finds the targets that changes since a revision touch, directly or by an import."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from adtool import configuration
from adtool.imports import Imports
from adtool.job import Target
from adtool.repository import Changes, changes_since
from engine.reading import read


def touched(
    targets: Sequence[Target], revision: str, folder: Path
) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    """The targets that a change touches, and what is to be said of the choice.

    A target outside of the repository counts as touched, and so does one that imports what cannot
    be read as Python. Changed settings of adtool touch all.
    Raises ToolError where git cannot tell what has changed.
    """
    changes = changes_since(revision, folder)
    if _settings_changed(changes, folder):
        return tuple(targets), (
            (
                f"all scripts are checked: [tool.adtool] of {configuration.NAME} changed since "
                f"{revision}"
            ),
        )
    imports = _imports(changes, folder)
    out: list[Target] = []
    outside: list[str] = []
    for target in targets:
        if target.script is not None and not changes.inside(target.script):
            outside.append(f"`{target.name}` is not in the repository, so it is always checked")
            out.append(target)
        elif _is_touched(target, imports, changes):
            out.append(target)
    if not out:
        return (), (f"the changes since {revision} touch no script",)
    count = len(out)
    words = ("script" if len(targets) == 1 else "scripts") + (" is" if count == 1 else " are")
    first = f"{count} of {len(targets)} {words} touched by the changes since {revision}"
    return tuple(out), (first, *outside)


def _is_touched(target: Target, imports: Imports, changes: Changes) -> bool:
    if target.script is not None:
        reached = imports.reach(target.script)
    else:
        reached = imports.reach_module(str(target.module))
        reached = _known(reached)
    return any(changes.has(path) or not read for path, read in reached)


def _known(reached: Iterator[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """A module that is found nowhere in the repository counts as one that cannot be read."""
    found = False
    for pair in reached:
        found = True
        yield pair
    if not found:
        yield "", False


def _imports(changes: Changes, folder: Path) -> Imports:
    project = configuration.nearest(folder)
    places = [
        str(folder), *([] if project is None else [str(project.parent)]),
        changes.root, os.path.join(changes.root, "src"), *sys.path,
        *os.environ.get("PYTHONPATH", "").split(os.pathsep),
    ]  # fmt: skip
    # What is installed in the repository's folder (a virtual environment) is no part of it.
    roots = tuple(
        dict.fromkeys(
            os.path.realpath(p) for p in places
            if p and _within(p, changes.root) and "site-packages" not in p
        )
    )  # fmt: skip

    def there(path: str) -> bool:
        return path in changes.paths or os.path.isfile(path)

    return Imports(roots, there, _python_files(changes))


def _within(path: str, root: str) -> bool:
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(root, ""))


_NO_SOURCES = ("node_modules", "site-packages", "__pycache__")


def _python_files(changes: Changes) -> Callable[[], Iterator[str]]:
    def files() -> Iterator[str]:
        yield from (p for p in changes.paths if p.endswith(".py"))
        for place, folders, names in os.walk(changes.root):
            folders[:] = [
                f for f in folders
                if not f.startswith(".") and f not in _NO_SOURCES
            ]  # fmt: skip
            yield from (os.path.join(place, n) for n in names if n.endswith(".py"))

    return files


def _settings_changed(changes: Changes, folder: Path) -> bool:
    """Whether the tool's own settings are others than at the revision."""
    for place in (folder, *folder.parents):
        path = place / configuration.NAME
        if not changes.inside(str(path)):
            return False
        if changes.has(str(path)):
            now = read(path) if path.is_file() else b""
            before = changes.before(os.path.realpath(path)) or b""
            try:
                if configuration.table_in(now) != configuration.table_in(before):
                    return True
            except ValueError:  # it was no TOML before
                return True
    return False
