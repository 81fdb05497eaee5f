"""The names of files of tests: what each stands for, in the scope where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Binding = (
    ast.AST | str
)  # what a name stands for: a definition, an expression, an import's full name


@dataclass
class Scope:
    """The names of a module, a class or a function. outer: where other names are looked up."""

    module: Module
    names: dict[str, Binding] = field(default_factory=dict)
    outer: Scope | None = None
    values: dict[str, list[Thing]] = field(default_factory=dict)

    def find(self, name: str) -> tuple[Scope, Binding | None]:
        """The scope that has a name, and what the name stands for there."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names or name in scope.values:
                return scope, scope.names.get(name)
            scope = scope.outer
        return self, None


@dataclass(frozen=True, eq=False)
class Function:
    """A function or a lambda. of: the class it is a method of."""

    node: Definition | ast.Lambda
    scope: Scope
    of: Class | None = None


@dataclass(frozen=True, eq=False)
class Class:
    """A class of tests."""

    node: ast.ClassDef
    scope: Scope


@dataclass(frozen=True)
class Instance:
    """An object of a class."""

    of: Class


Thing = Function | Class | Instance | str  # str: the full name of something outside, or of a module


class Module:
    """A file of tests. source: its text, where it is not the one on disk."""

    def __init__(self, path: Path, source: str | None = None) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8") if source is None else source
        self.tree = ast.parse(text)
        self.scope = Scope(self, bound(self.tree))
        # Fixtures that are functions of this file, by the names that tests ask for.
        defined = [n for n in self.scope.names.values() if isinstance(n, Definition)]
        self.fixtures = {name: n for n in defined if (name := fixture_name(n))}

    @cached_property
    def tests(self) -> list[Function]:
        """What pytest collects: functions `test…`, and such methods of classes `Test…`."""
        found = []
        for node in self.tree.body:
            if isinstance(node, Definition) and node.name.startswith("test"):
                found.append(Function(node, self.scope))
            elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                of = Class(node, self.scope)
                found += [
                    Function(f, self.scope, of)
                    for f in node.body
                    if isinstance(f, Definition) and f.name.startswith("test")
                ]
        return found


@lru_cache(None)
def bound(of: ast.Module | Definition | ast.ClassDef) -> dict[str, Binding]:
    """What the names stand for that its statements bind, also in blocks; the last one wins."""
    names: dict[str, Binding] = {}
    for node in flat(of.body):
        if isinstance(node, (*Definition.__args__, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, ast.Import):
            for a in node.names:
                names[a.asname or a.name.split(".")[0]] = (
                    a.name if a.asname else a.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                names[a.asname or a.name] = f"{node.module}.{a.name}"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                names |= targets(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name):
            names[node.target.id] = node.value or node
        elif isinstance(node, (ast.For, ast.comprehension)):
            names |= targets(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            names |= targets(node.optional_vars, node.context_expr)
    return names


def targets(target: ast.expr, value: ast.expr) -> dict[str, Binding]:
    """The names of a target, each with its part of the value where that is written out."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        whole = parts if len(parts) == len(target.elts) else [value] * len(target.elts)
        return {
            n: b for t, v in zip(target.elts, whole, strict=True) for n, b in targets(t, v).items()
        }
    return {}


def flat(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes, without what is inside of functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, (*Definition.__args__, ast.ClassDef, ast.Lambda)):
            yield from flat(ast.iter_child_nodes(node))


def last_name(of: ast.expr) -> str:
    """`c` of `a.b.c` and of `a.b.c(...)`; empty where there is no name."""
    match of:
        case ast.Call(func):
            return last_name(func)
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ""


def decorated(node: ast.AST, names: Iterable[str]) -> bool:
    """Whether a decorator of a function has one of these names."""
    return any(last_name(d) in names for d in getattr(node, "decorator_list", ()))


def fixture_name(node: ast.AST) -> str:
    """The name by which tests ask for a fixture; empty for what is none."""
    for d in getattr(node, "decorator_list", ()):
        if last_name(d) == "fixture":
            given = [k.value for k in getattr(d, "keywords", ()) if k.arg == "name"]
            return str(getattr(given[0], "value", "")) if given else str(getattr(node, "name", ""))
    return ""


def yields(node: ast.AST) -> bool:
    """Whether a function is a generator."""
    body = getattr(node, "body", None)
    return isinstance(body, list) and any(
        isinstance(n, (ast.Yield, ast.YieldFrom)) for n in flat(body)
    )
