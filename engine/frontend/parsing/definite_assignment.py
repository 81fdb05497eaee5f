"""Finds reads of local variables before assignment, on some path or on all.

A variable of a kernel is zero before its first assignment, where Python raises an error. So
reads that come before every assignment are refused, and those that may are told. Paths are
Python's: branches, loops that may run no iteration, `break`, `continue`, `return`, and the
short circuits of `and`, `or` and `a if c else b`. What lowering finds out about tests and
loop bounds is taken into account, as it lowers no code that never runs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field

from engine.classes import dataclass
from engine.frontend.parsing.desugar import Otherwise

# Iterations of the unrolled loops around a node, outermost first.
Path = tuple[int, ...]


@dataclass(slots=True)
class Facts:
    """What lowering knows, by the id of a node and where it is.

    tests: what a test always is. trips: how often a loop runs, where its bounds are known.
    last: the last number of a loop over such a range. unrolled: ids of loops whose body is
    lowered once for each iteration.
    """

    tests: dict[tuple[int, Path], bool] = field(default_factory=dict)
    trips: dict[tuple[int, Path], int] = field(default_factory=dict)
    last: dict[tuple[int, Path], int] = field(default_factory=dict)
    unrolled: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class UnassignedRead:
    """A name that is read before it has a value, on every path to it or on some."""

    node: ast.Name
    certain: bool


@dataclass(frozen=True, slots=True)
class _State:
    """Names with a value on every path to here, and on some."""

    surely: frozenset[str]
    maybe: frozenset[str]

    def having(self, name: str) -> _State:
        return _State(self.surely | {name}, self.maybe | {name})


# None: no path leads here.
_Flow = _State | None


def _joined(flows: Iterable[_Flow]) -> _Flow:
    out: _Flow = None
    for flow in flows:
        if out is None or flow is None:
            out = flow if out is None else out
        else:
            out = _State(out.surely & flow.surely, out.maybe | flow.maybe)
    return out


@dataclass(slots=True)
class _Loop:
    breaks: list[_Flow] = field(default_factory=list)
    again: list[_Flow] = field(default_factory=list)


class _Walk:
    """One walk over a function, in the order in which Python evaluates it."""

    def __init__(self, locals_: Collection[str], facts: Facts) -> None:
        self.locals = locals_
        self.facts = facts
        self.path: Path = ()
        self.loops: list[_Loop] = []
        self.ends: dict[int, tuple[_Flow, _Flow]] = {}
        self.found: dict[ast.Name, bool] = {}
        # Whether a loop's body is only tried, for what it assigns.
        self.silent = False

    # ---- expressions

    def read(self, node: ast.Name, flow: _Flow) -> _Flow:
        if flow is None or node.id not in self.locals or node.id in flow.surely:
            return flow
        certain = node.id not in flow.maybe
        if self.silent:
            return None if certain else flow.having(node.id)
        self.found[node] = self.found.get(node, False) or certain
        return flow.having(node.id)  # Python does not come by without a value

    def expr(self, node: ast.AST | None, flow: _Flow) -> _Flow:
        if node is None:
            return flow
        if isinstance(node, ast.Name):
            return self.read(node, flow) if isinstance(node.ctx, ast.Load) else flow
        if isinstance(node, ast.NamedExpr):
            flow = self.expr(node.value, flow)
            return None if flow is None else flow.having(node.target.id)
        if isinstance(node, (ast.BoolOp, ast.IfExp)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return _joined(self.test(node, flow))
        for child in ast.iter_child_nodes(node):
            flow = self.expr(child, flow)
        return flow

    def test(self, node: ast.expr, flow: _Flow) -> tuple[_Flow, _Flow]:
        """Where the expression is true, and where it is false."""
        yes, no = self.branches(node, flow)
        known = self.facts.tests.get((id(node), self.path))
        return (yes if known is not False else None), (no if known is not True else None)

    def branches(self, node: ast.expr, flow: _Flow) -> tuple[_Flow, _Flow]:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yes, no = self.test(node.operand, flow)
            return no, yes
        if isinstance(node, ast.BoolOp):
            is_and = isinstance(node.op, ast.And)
            left: list[_Flow] = []  # where it is decided before the last part
            for part in node.values:
                yes, no = self.test(part, flow)
                flow, out = (yes, no) if is_and else (no, yes)
                left.append(out)
            decided = _joined(left)
            return (flow, decided) if is_and else (decided, flow)
        if isinstance(node, ast.IfExp):
            yes, no = self.test(node.test, flow)
            a, b = self.test(node.body, yes), self.test(node.orelse, no)
            return _joined((a[0], b[0])), _joined((a[1], b[1]))
        flow = self.expr(node, flow)
        return flow, flow

    # ---- statements

    def block(self, body: Sequence[ast.stmt], flow: _Flow) -> _Flow:
        for s in body:
            if flow is None:
                break
            flow = self.stmt(s, flow)
        return flow

    def stmt(self, s: ast.stmt, flow: _Flow) -> _Flow:
        if isinstance(s, ast.If):
            if isinstance(s, Otherwise):
                yes, no = self.ends[id(s.loop)]
            else:
                yes, no = self.test(s.test, flow)
            return _joined((self.block(s.body, yes), self.block(s.orelse, no)))
        if isinstance(s, ast.For):
            return self.for_loop(s, self.expr(s.iter, flow))
        if isinstance(s, ast.While):
            return self.while_loop(s, flow)
        if isinstance(s, (ast.Break, ast.Continue)):
            ends = self.loops[-1]
            (ends.breaks if isinstance(s, ast.Break) else ends.again).append(flow)
            return None
        if isinstance(s, ast.Return):
            self.expr(s.value, flow)
            return None
        if isinstance(s, ast.AnnAssign):  # without a value, it is zero
            return self.target(s.target, self.expr(s.value, flow))
        if isinstance(s, ast.Assign):
            flow = self.expr(s.value, flow)
            for target in s.targets:
                flow = self.target(target, flow)
            return flow
        return self.expr(s, flow)

    def target(self, node: ast.expr, flow: _Flow) -> _Flow:
        if isinstance(node, ast.Starred):
            node = node.value
        if isinstance(node, ast.Name):
            return None if flow is None else flow.having(node.id)
        if isinstance(node, (ast.Tuple, ast.List)):
            for item in node.elts:
                flow = self.target(item, flow)
            return flow
        return self.expr(node, flow)  # a part of something that is there

    def for_loop(self, s: ast.For, flow: _Flow) -> _Flow:
        trips = self.facts.trips.get((id(s), self.path))
        if flow is None or trips == 0:
            return self.end(s, flow, None)
        if id(s) in self.facts.unrolled and trips is not None:
            outside = self.path
            left: list[_Flow] = []
            for k in range(trips):
                self.path = (*outside, k)
                flow, out = self.for_body(s, flow)
                left.append(out)
            self.path = outside
            return self.end(s, flow, _joined(left))
        head = self.head(flow, lambda state: self.for_body(s, state)[0])
        again, breaks = self.for_body(s, head)
        skipped = None if trips else flow
        return self.end(s, _joined((skipped, again)), breaks)

    def end(self, s: ast.For | ast.While, end: _Flow, breaks: _Flow) -> _Flow:
        """What comes after a loop, of which `else` runs where no `break` left it."""
        self.ends[id(s)] = end, breaks
        return _joined((end, breaks))

    def for_body(self, s: ast.For, head: _Flow) -> tuple[_Flow, _Flow]:
        """What goes on to the next iteration, and what leaves by `break`."""
        self.loops.append(_Loop())
        end = self.block(s.body, self.target(s.target, head))
        ends = self.loops.pop()
        return _joined((end, *ends.again)), _joined(ends.breaks)

    def while_loop(self, s: ast.While, flow: _Flow) -> _Flow:
        head = self.head(flow, lambda state: self.while_body(s, state)[0])
        # The first test may end the loop: its `no` has what is assigned in it, and no more.
        _, no, breaks = self.while_body(s, head)
        return self.end(s, no, breaks)

    def while_body(self, s: ast.While, head: _Flow) -> tuple[_Flow, _Flow, _Flow]:
        """What goes on to the next test, what fails it, and what leaves by `break`."""
        self.loops.append(_Loop())
        yes, no = self.test(s.test, head)
        end = self.block(s.body, yes)
        ends = self.loops.pop()
        return _joined((end, *ends.again)), no, _joined(ends.breaks)

    def head(self, flow: _Flow, again: Callable[[_Flow], _Flow]) -> _Flow:
        """At the start of any iteration: earlier ones may have assigned what they assign."""
        if flow is None:
            return None
        before, self.silent = self.silent, True
        back = again(flow)
        self.silent = before
        return flow if back is None else _State(flow.surely, flow.maybe | back.maybe)


def unassigned_reads(
    tree: ast.FunctionDef, locals_: Collection[str], facts: Facts
) -> list[UnassignedRead]:
    """Reads of names that may have no value, in the order of the walk, each node once.

    tree: desugared, with nothing wrong in it. locals_: names that it assigns.
    """
    args = tree.args
    given = frozenset(a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))
    walk = _Walk(locals_, facts)
    walk.block(tree.body, _State(given, given))
    return [UnassignedRead(node, certain) for node, certain in walk.found.items()]
