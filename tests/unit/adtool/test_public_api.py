"""The tool uses names that the engine exports, and no others, nor private attributes of objects.

Which modules it may import is a contract of `lint-imports`; this is about the names in them.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import adtool

FILES = sorted(Path(str(adtool.__file__)).parent.rglob("*.py"))
DOORS = (
    "engine", "engine.alias", "engine.archive", "engine.autograd", "engine.characters",
    "engine.classes", "engine.diagnostics", "engine.distributions", "engine.draws",
    "engine.foreign", "engine.private", "engine.reading",
)  # fmt: skip


def used(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Modules of the engine and the names that a file takes from them."""
    aliases = {
        a.asname or a.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for a in node.names
        if a.name == "engine"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "engine":
            yield from ((str(node.module), a.name) for a in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in aliases and not node.attr.startswith("__"):
                yield "engine", node.attr


def test_every_name_is_exported() -> None:
    found = {x for p in FILES for x in used(ast.parse(p.read_text(encoding="utf-8")))}
    assert {module for module, _ in found} == set(DOORS)
    exported = {m: set(importlib.import_module(m).__all__) for m in DOORS}
    # Python's own names are left out of `__all__`, so that `import *` does not change them.
    exported["engine"] |= {"max", "min", "abs", "float", "int", "bool", "round", "len", "pow"}
    assert sorted(x for x in found if x[1] not in exported[x[0]]) == []


def test_no_private_attribute_of_another_object() -> None:
    private = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and ast.unparse(node.value) not in ("self", "cls", "os", "sys")
    ]  # fmt: skip
    assert private == []
