"""The local variables of a function, and their uses, found before lowering.

A name needs a mutable variable only where different assignments may reach one read.
All other names are *plain*: each assignment simply gives the name to a value, which
keeps the IR in single-assignment form where that costs no analysis.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.classes import dataclass

# What is read by the calls of `static`, by their ids.
Static = Mapping[int, Iterable[str]]
_NONE: Static = {}


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """assigned: every local name. plain: see above. components: names with an assignment
    to a part of them (`v[0] = ...`). walrus: names assigned inside expressions, also by a
    call that changes its arguments (the state of random numbers). stored_in: names assigned
    in a loop, by the id of the loop's node. touched: those in `walrus`, and names of which a
    call changes a part: what an expression reads of them is to be kept. fields: for names in
    `components`, the attributes after the name, and whether an index follows these.
    """

    assigned: frozenset[str]
    plain: frozenset[str]
    components: frozenset[str]
    walrus: frozenset[str]
    stored_in: dict[int, frozenset[str]]
    fields: dict[str, frozenset[tuple[tuple[str, ...], bool]]]
    touched: frozenset[str] = frozenset()


def target_names(target: ast.expr) -> Iterator[str]:
    """Names that an assignment target gives a whole new value."""
    if isinstance(target, ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from target_names(item)


def root_name(node: ast.expr) -> str | None:
    """The variable at the root of `v[i].x`, if it is one."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def field_path(target: ast.expr) -> tuple[str, tuple[str, ...], bool] | None:
    """`s.body.mass[0]` as its variable, its first attributes, and whether an index follows."""
    path: list[str] = []
    indexed = False
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        if isinstance(target, ast.Attribute):
            path.insert(0, target.attr)
        else:
            path.clear()
            indexed = True
        target = target.value
    return (target.id, tuple(path), indexed) if isinstance(target, ast.Name) else None


def stores(node: ast.AST) -> set[str]:
    """Names that anything inside a node assigns, statements that the fence rejects included."""
    out: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            out.add(n.id)
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.add(n.name)
        elif isinstance(n, ast.alias):
            out.add((n.asname or n.name).split(".")[0])
    return out


def _loads(node: ast.AST, static: Static) -> Counter[str]:
    out: Counter[str] = Counter()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            out[n.id] += 1
        elif static and isinstance(n, ast.Call):
            out.update(static.get(id(n), ()))
    return out


def _direct(s: ast.stmt) -> set[str]:
    """Names that the statement itself assigns, after it has computed its value."""
    if isinstance(s, ast.Assign):
        return {n for t in s.targets for n in target_names(t)}
    if isinstance(s, ast.AnnAssign) and s.value is not None:
        return set(target_names(s.target))
    return set()


class _Coverage:
    """Counts, for each name, the reads that exactly one assignment can reach."""

    def __init__(self, static: Static) -> None:
        self.static = static
        self.covered: Counter[str] = Counter()
        self._stores: dict[ast.AST, set[str]] = {}
        self._loads: dict[ast.AST, Counter[str]] = {}

    def stores(self, node: ast.AST) -> set[str]:
        if node not in self._stores:
            self._stores[node] = stores(node)
        return self._stores[node]

    def read(self, name: str, *nodes: ast.AST) -> None:
        """Counts the reads of a name in nodes as covered."""
        for node in nodes:
            if node not in self._loads:
                self._loads[node] = _loads(node, self.static)
            self.covered[name] += self._loads[node][name]

    def block(self, body: list[ast.stmt], arriving: Iterable[str] = ()) -> None:
        for name in arriving:
            self.region(name, body)
        for k, s in enumerate(body):
            for name in _direct(s):
                self.region(name, body[k + 1 :])
            if isinstance(s, ast.For):
                for name in target_names(s.target):
                    if not any(name in self.stores(inner) for inner in s.body):
                        self.read(name, *s.body)
            if isinstance(s, (ast.If, ast.For, ast.While)):
                self.block(s.body)
            if isinstance(s, ast.If):
                self.block(s.orelse)

    def region(self, name: str, rest: list[ast.stmt]) -> None:
        """Reads in the statements up to the next one that assigns the name."""
        for s in rest:
            if name not in self.stores(s):
                self.read(name, s)
                continue
            value = getattr(s, "value", None)
            if name in _direct(s) and isinstance(value, ast.expr):
                self.read(name, value)
            elif isinstance(s, ast.For):
                self.read(name, s.iter)
            elif isinstance(s, ast.If):
                self.read(name, s.test)
            return


def _changes_nothing(_: ast.Call) -> Iterable[ast.expr]:
    return ()


def plan_locals(
    tree: ast.FunctionDef,
    changed: Callable[[ast.Call], Iterable[ast.expr]] = _changes_nothing,
    static: Static = _NONE,
) -> LocalPlan:
    """Analyses a desugared function.

    changed: the arguments that a call gives new values. static: names that static expressions
    read, which are not in the tree.
    """
    args = tree.args
    params = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    assigned = {name for s in tree.body for name in stores(s)} | set(params)
    nodes = [n for s in tree.body for n in ast.walk(s)]
    walrus = {n.target.id for n in nodes if isinstance(n, ast.NamedExpr)}
    by_calls = [a for n in nodes if isinstance(n, ast.Call) for a in changed(n)]
    walrus |= {a.id for a in by_calls if isinstance(a, ast.Name)} & assigned
    fields: dict[str, set[tuple[tuple[str, ...], bool]]] = {}
    for n in nodes:
        if not isinstance(n, (ast.Subscript, ast.Attribute)):
            continue
        if isinstance(n.ctx, ast.Store) or n in by_calls:
            found = field_path(n)
            if found is not None:
                fields.setdefault(found[0], set()).add(found[1:])
    coverage = _Coverage(static)
    coverage.block(tree.body, params)
    total = sum((_loads(s, static) for s in tree.body), Counter[str]())
    plain = {n for n in assigned - walrus if coverage.covered[n] == total[n]}
    loops = {id(n): frozenset(stores(n)) for n in nodes if isinstance(n, (ast.For, ast.While))}
    return LocalPlan(
        frozenset(assigned),
        frozenset(plain),
        frozenset(fields),
        frozenset(walrus),
        loops,
        {name: frozenset(found) for name, found in fields.items()},
        frozenset(walrus | {r for a in by_calls if (r := root_name(a)) is not None} & assigned),
    )
