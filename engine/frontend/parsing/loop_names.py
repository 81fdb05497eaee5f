"""Loop variables whose name means something else elsewhere in a function.

`k = wp.ceil(r)` and later `for k in range(n)`: the two have nothing to do with each other, where
nothing reads `k` after the loop. Each such loop gets a name of its own, so that it has a type of
its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_LOOPS = (ast.For, ast.While)


def separate_loops(tree: ast.FunctionDef) -> None:
    """Renames the targets of such loops, within the loops."""
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)]
    counted = {_target(x) for x in loops}
    for name in sorted(counted & _assigned(tree)):
        after = _Liveness(name)
        after.block(tree.body, False)
        for loop in loops:
            if _target(loop) == name and id(loop) not in after.needed:
                _rename(loop, name, _fresh(tree, name))


def _target(loop: ast.For) -> str:
    assert isinstance(loop.target, ast.Name)
    return loop.target.id


def _assigned(tree: ast.FunctionDef) -> set[str]:
    """Names that are set by something else than a loop."""
    found: set[str] = set()
    for node in ast.walk(tree):
        targets: Iterable[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        for target in targets:
            found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found


def _fresh(tree: ast.FunctionDef, name: str) -> str:
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    used |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    k = 1
    while f"{name}_{k}" in used:
        k += 1
    return f"{name}_{k}"


def _rename(loop: ast.For, name: str, new: str) -> None:
    for part in (loop.target, *loop.body):
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id == name:
                node.id = new


class _Liveness:
    """Where a name's value may still be read. needed: ids of loops after which it may."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.needed: set[int] = set()
        # Whether it may be read after a `break`, and after a `continue`.
        self.exits: list[tuple[bool, bool]] = []

    def reads(self, *nodes: ast.AST | None) -> bool:
        """Whether any of these reads it."""
        return any(
            isinstance(n, ast.Name) and n.id == self.name and isinstance(n.ctx, ast.Load)
            for node in nodes
            if node is not None
            for n in ast.walk(node)
        )

    def block(self, body: list[ast.stmt], live: bool) -> bool:
        """Whether it may be read from the beginning of a block, given that of its end."""
        for s in reversed(body):
            live = self.statement(s, live)
        return live

    def statement(self, s: ast.stmt, live: bool) -> bool:
        if isinstance(s, ast.If):
            either = self.block(s.body, live) | self.block(s.orelse, live)
            return self.reads(s.test) or either
        if isinstance(s, _LOOPS):
            return self.loop(s, live)
        if isinstance(s, ast.Return):
            return self.reads(s.value)
        if isinstance(s, (ast.Break, ast.Continue)) and self.exits:
            return self.exits[-1][isinstance(s, ast.Continue)]
        if isinstance(s, ast.Assign) and any(self.sets(t) for t in s.targets):
            return self.reads(s.value, *s.targets)
        return self.reads(s) or (isinstance(s, ast.AugAssign) and self.sets(s.target)) or live

    def sets(self, target: ast.expr) -> bool:
        """Whether an assignment to this leaves nothing of the former value."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return any(self.sets(t) for t in target.elts)
        return isinstance(target, ast.Name) and target.id == self.name

    def loop(self, s: ast.For | ast.While, live: bool) -> bool:
        own = isinstance(s, ast.For) and self.sets(s.target)
        if own and live:
            self.needed.add(id(s))
        head = live if own else live or (isinstance(s, ast.While) and self.reads(s.test))
        for _ in range(2):  # what one round leaves may be read by the next
            self.exits.append((live, head))
            body = self.block(s.body, head)
            self.exits.pop()
            head = head if own else head or body
        return head or (isinstance(s, ast.For) and self.reads(s.iter))
