"""The modules of a folder of Python sources, and the kernels that their text defines."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# What is counted apart: names of the kernel language that begin so, after `wp.`.
APART = {"tile": "tiles", "Volume": "volumes", "volume_": "volumes", "Texture": "textures",
         "texture_": "textures"}  # fmt: skip


@dataclass(frozen=True)
class Sources:
    """A folder of modules. root: what goes to `sys.path`. package: the folder's own dotted name.

    modules: file of each module, by dotted name.
    """

    root: Path
    package: str
    modules: dict[str, Path]


@dataclass(frozen=True)
class Definition:
    """A kernel in a text. line: of its first decorator. nested: made when a function is called."""

    file: str
    line: int
    name: str
    nested: bool
    apart: str


def find(folder: Path, skip: Sequence[str] = ()) -> Sources:
    """The modules below a folder; `skip`: patterns of dotted names that are left out.

    What runs when it is imported by its purpose (`__main__`, `setup`, `conftest`) is left out.
    """
    folder = folder.resolve()
    root = folder
    while (root / "__init__.py").exists():
        root = root.parent
    package = ".".join(folder.relative_to(root).parts)
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = list(path.relative_to(root).with_suffix("").parts)
        if not all(p.isidentifier() for p in parts) or parts[-1] in (
            "__main__", "setup", "conftest",
        ):  # fmt: skip
            continue
        if parts[-1] == "__init__":
            parts.pop()
        name = ".".join(parts)
        if name and not any(fnmatch.fnmatch(name, p) for p in skip):
            modules[name] = path
    return Sources(root, package, modules)


def definitions(path: Path) -> Iterator[Definition]:
    """The kernels that a file defines: functions with a decorator called `...kernel`."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    yield from _below(tree, str(path), False)


def _below(node: ast.AST, file: str, nested: bool) -> Iterator[Definition]:
    for child in ast.iter_child_nodes(node):
        inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        names = [_name(d) for d in getattr(child, "decorator_list", ())]
        # Makers of kernels have decorators of their own, `@nested_kernel`.
        if inside and any(n == "kernel" or (nested and n.endswith("kernel")) for n in names):
            assert isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            line = min(child.lineno, *(d.lineno for d in child.decorator_list))
            yield Definition(file, line, child.name, nested, apart(child))
        yield from _below(child, file, nested or inside)


def _name(decorator: ast.expr) -> str:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if isinstance(decorator, ast.Attribute):
        return decorator.attr
    return decorator.id if isinstance(decorator, ast.Name) else ""


def apart(function: ast.AST) -> str:
    """Which of the things that are counted apart a function's text names; "" for none."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("wp", "warp"):
                for start, what in APART.items():
                    if node.attr.startswith(start):
                        return what
    return ""
