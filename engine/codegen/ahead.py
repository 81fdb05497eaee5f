"""Finds elements that threads of a scatter can prefetch.

Threads that add to elements at indices from an array wait for memory most of their time, and
compilers make no vector code of them. Of threads to come, what these indices are computed from is
known: they are computed some threads before they are needed, and what stands there is asked for.

What a thread may not touch at all costs as much to ask for as what it does. So tests that can be
computed before are; what depends on another test is asked for only with what stands beside it, at
the same index of another array, and is needed anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.classes import dataclass
from engine.codegen.facts import tid_part
from engine.codegen.rows import operations
from engine.ir import nodes as n
from engine.ir.rewrite import map_stmt
from engine.lang.types import ArrayType

AHEAD = 32  # threads
# Elements of a kernel's threads that are asked for, and operations that compute one of them.
MOST, LIGHT = 12, 16
_SAME = ("copy", "wrap_index", "within")  # operations that leave an index what it is, mostly

Index = tuple[n.Atom, ...]
Tests = tuple[tuple[n.Atom, bool], ...]  # values, and what they must be


@dataclass(frozen=True, eq=False)
class Ahead:
    """An index, and the arrays of which a thread touches the element there.

    tests: whether it does. first: what computes them, then: what computes the index after that, in
    the order of the kernel. axis: of the grid, along which threads follow each other.
    """

    index: Index
    arrays: tuple[n.Var, ...]
    tests: Tests
    first: tuple[n.Stmt, ...]
    then: tuple[n.Stmt, ...]
    axis: int


def ahead(fn: n.Function) -> Sequence[Ahead]:
    """What a kernel's threads may ask for; nothing where none adds to what an array points to."""
    if not fn.is_kernel:
        return ()
    found = _Found(fn)
    found.block(fn.body, ())
    return found.all() if found.scatters else ()


class _Found:
    """What is known of a kernel after some of its statements."""

    def __init__(self, fn: n.Function) -> None:
        self.scatters = False
        self.axis = 0
        # By indices: what is touched where tests say so, and what may be.
        self.sure: dict[Index, dict[Tests, dict[n.Var, None]]] = {}
        self.maybe: dict[Index, dict[n.Var, None]] = {}
        self.written = {s.array for s in n.walk(fn.body) if isinstance(s, (n.Store, n.Atomic))}
        # What computes variables, and those that depend on what was loaded.
        self.known: dict[n.Var, tuple[n.Stmt, ...]] = dict.fromkeys(fn.params, ())
        self.loaded: set[n.Atom] = set()
        self.values: dict[object, n.Var] = {}
        self.same: dict[n.Atom, n.Atom] = {}
        self.flags: dict[n.Atom, Tests] = {}  # what variables say that jumps became

    def block(self, block: n.Block, tests: Tests | None) -> None:
        """tests: whether threads come here; None where that is not known."""
        for s in block:
            if isinstance(s, n.If):
                self.block(s.then, self.under(tests, s.cond, True))
                self.block(s.orelse, self.under(tests, s.cond, False))
                for leaves, value in ((s.then, False), (s.orelse, True)):
                    if leaves and isinstance(leaves[-1], n.Return):
                        tests = self.under(tests, s.cond, value)
            elif isinstance(s, (n.For, n.While)):
                for b in n.blocks_of(s):
                    self.block(b, None)
            elif isinstance(s, n.Set):
                self.set(s, tests)
            else:
                if isinstance(s, (n.Load, n.Store, n.Atomic)):
                    self.touch(s, tests)
                if isinstance(s, (n.Let, n.Load)) and not s.dst.mutable:
                    self.define(s)

    def under(self, tests: Tests | None, cond: n.Atom, value: bool) -> Tests | None:
        """Tests with one more."""
        cond = self.now(cond)
        if tests is None:
            return None
        if value and cond in self.flags:
            return tuple(dict.fromkeys((*tests, *self.flags[cond])))
        return None if self.computed((cond,)) is None else (*tests, (cond, value))

    def set(self, s: n.Set, tests: Tests | None) -> None:
        """Follows a variable that is true until a test has sent a thread to the end."""
        before = self.flags.pop(s.dst, None)
        if not isinstance(s.value, n.Const) or tests is None:
            return
        if s.value.value is True and not tests:
            self.flags[s.dst] = ()
        elif s.value.value is False and before is not None:
            more = [t for t in tests if t not in before]
            if len(more) == 1:
                ((cond, value),) = more
                self.flags[s.dst] = (*before, (cond, not value))

    def touch(self, s: n.Load | n.Store | n.Atomic, tests: Tests | None) -> None:
        index = tuple(map(self.now, s.index))
        if not self.loaded.intersection(index) or self.computed(index) is None:
            return
        self.scatters |= isinstance(s, n.Atomic)
        if tests is None:
            self.maybe.setdefault(index, {})[s.array] = None
            return
        entries = self.sure.setdefault(index, {})
        if not any(s.array in some and set(t) <= set(tests) for t, some in entries.items()):
            entries.setdefault(tests, {})[s.array] = None

    def define(self, s: n.Let | n.Load) -> None:
        if isinstance(s, n.Let) and s.op in _SAME:
            (value, *_), flag = s.args, self.flags.get(s.args[0])
            if flag is not None:
                self.flags[s.dst] = flag
            elif not (isinstance(value, n.Var) and value.mutable):
                self.same[s.dst] = self.now(value)
            return
        args = tuple(map(self.now, s.args if isinstance(s, n.Let) else (*s.index, *s.path)))
        needed, far = self.computed(args), bool(self.loaded.intersection(args))
        # What is not near itself would be waited for, and what is written may change.
        if isinstance(s, n.Load) and (far or s.array in self.written):
            return
        if needed is None or operations(needed) > LIGHT:
            return
        what = s.op if isinstance(s, n.Let) else s.array
        value = self.values.setdefault((what, args, s.dst.type), s.dst)
        if value is not s.dst:
            self.same[s.dst] = value
            return
        if isinstance(s, n.Let) and s.op == "tid":
            self.axis = s.args[1].value - 1  # type: ignore[union-attr, operator, assignment]
        self.known[s.dst] = (*needed, map_stmt(s, self.now, lambda b: b))
        if far or isinstance(s, n.Load):
            self.loaded.add(s.dst)

    def goes_on(self, s: n.Stmt) -> bool:
        """Whether a statement gives the coordinate along which threads follow each other."""
        return isinstance(s, n.Let) and s.op == "tid" and tid_part(s) == self.axis

    def now(self, a: n.Atom) -> n.Atom:
        """Another name of a value, or another number that will do."""
        return self.same.get(a, a)

    def computed(
        self, atoms: Collection[n.Atom], before: Sequence[n.Stmt] = ()
    ) -> tuple[n.Stmt, ...] | None:
        """What computes some atoms after other statements; None where that is not known."""
        if not all(isinstance(a, n.Const) or a in self.known for a in atoms):
            return None
        out: dict[int, n.Stmt] = {}
        for a in atoms:
            if isinstance(a, n.Var) and not isinstance(a.type, ArrayType):
                out |= {id(s): s for s in self.known[a]}
        for s in before:
            out.pop(id(s), None)
        return tuple(out.values())

    def all(self) -> list[Ahead]:
        out = []
        for index, entries in self.sure.items():
            more = self.maybe.get(index, {})
            for tests, arrays in entries.items():
                first = self.computed([c for c, _ in tests]) or ()
                then = self.computed(index, first) or ()
                if not any(self.goes_on(s) for s in (*first, *then)):
                    continue  # all threads of a row need the same
                touched = tuple(dict.fromkeys((*arrays, *more)))
                out.append(Ahead(index, touched, tests, first, then, self.axis))
                more = {}
        return out[:MOST]
