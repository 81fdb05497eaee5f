"""Finds guards on a thread's index, without which a kernel does nothing: `if i >= n: return`.

Loops over threads leave out those that fail such a test, where it asks whether the coordinate along
the last axis is less or more than what is the same for a row. Compilers need not mask what is left.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.classes import dataclass
from engine.codegen.facts import LINEAR, Facts, tid_part
from engine.ir import nodes as n
from engine.lang.types import INT32, INT64

# A variable, and what it has to be.
_Literal = tuple[n.Var, bool]
_Held = frozenset[_Literal]
_NONE: _Held = frozenset()
# What follows from a variable that is true, and from one that is false; None where it is not so.
_Implied = tuple[_Held | None, _Held | None]
_UNKNOWN: _Implied = (_NONE, _NONE)
_UNSET: _Implied = (None, _NONE)  # what was never assigned is false
_NEAR = 1 << 15  # what may be added to a coordinate
_OTHER = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq"}
# What is computed once for a row: it does no harm where no thread would.
_HOISTED = frozenset(["tid", "shape", "copy", "cast", "add", "sub", "mul", "min", "max"])


@dataclass(frozen=True)
class Test:
    """The coordinate along the last axis plus `by` is `op` (lt, le, gt, ge, eq) than `bound`."""

    op: str
    bound: n.Atom
    by: int = 0


@dataclass(frozen=True)
class Guards:
    """What threads have to pass. holds: variables that are known then, and their values.

    rows: variables that are the same for a row, and what they have to be. hoisted: what defines
    those, and the bounds.
    """

    tests: tuple[Test, ...]
    rows: tuple[_Literal, ...]
    hoisted: tuple[n.Let, ...]
    holds: Mapping[n.Var, bool]


def guards_of(
    fn: n.Function, facts: Mapping[int, Facts], rows_alone: bool = False
) -> Guards | None:
    """The guards of a kernel; None where it has none of which loops can make use.

    rows_alone: guards that are the same for all threads of a row are of use, too.
    """
    mine = facts[id(fn)]
    if mine.context or not mine.axes or LINEAR in mine.tids or fn.native is not None:
        return None
    needed = _Needs(facts)
    needed.look(fn.body, _NONE)
    if not needed.common:
        return None
    found = _Hoist(fn, mine.axes - 1)
    tests: list[Test] = []
    rows: list[_Literal] = []
    holds: dict[n.Var, bool] = {}
    for v, value in sorted(needed.common, key=lambda x: (x[0].name, x[1])):
        if v in holds or v not in found.defined:
            continue
        if found.is_even(v):
            rows.append((v, value))
        elif test := found.test(found.defined[v], value):
            tests.append(test)
        else:
            continue
        holds[v] = value
    if not (tests or (rows_alone and rows)):
        return None
    return Guards(tuple(tests), tuple(rows), found.needed(tests, rows), holds)


def straight(block: n.Block, guards: Guards | None) -> list[n.Stmt] | None:
    """What threads that pass the guards run, one after the other.

    None where branches are left, or loops.
    """
    holds = {} if guards is None else guards.holds
    known: dict[n.Var, bool | None] = dict(holds)
    out: list[n.Stmt] = []

    def value(a: n.Atom) -> bool | None:
        if isinstance(a, n.Const):
            return bool(a.value)
        return known.get(a, False if a.mutable else None)  # what was never assigned is false

    def let(s: n.Let) -> bool | None:
        if s.dst in holds:
            return holds[s.dst]
        if s.op == "lnot":
            found = value(s.args[0])
            return None if found is None else not found
        if s.op in ("land", "lor"):
            both = [value(a) for a in s.args]
            decisive = s.op == "lor"
            return decisive if decisive in both else None if None in both else not decisive
        return value(s.args[0]) if s.op == "copy" else None

    def look(block: n.Block) -> bool | None:
        """Whether the thread goes on after the block; None where that is not known."""
        for s in block:
            if isinstance(s, n.If):
                found = value(s.cond)
                goes_on = None if found is None else look(s.then if found else s.orelse)
                if not goes_on:
                    return goes_on
                continue
            if s.NESTED:
                return None
            out.append(s)
            if isinstance(s, n.Return):
                return False
            if isinstance(s, n.Let):
                known[s.dst] = let(s)
            elif isinstance(s, n.Set):
                known[s.dst] = value(s.value)
            else:
                known.update((v, None) for v in n.defs_of(s))
        return True

    return None if look(block) is None else out


class _Needs:
    """Walks over a kernel, and notes what has to hold wherever something is changed."""

    def __init__(self, facts: Mapping[int, Facts]) -> None:
        self.facts = facts
        self.common: _Held | None = None
        self.known: dict[n.Var, _Implied] = {}

    def look(self, block: n.Block, held: _Held) -> bool:
        """Whether the block ends the thread, wherever it is come to."""
        for s in block:
            if isinstance(s, n.Return):
                return True
            if isinstance(s, n.If):
                held = self.branch(s, held)
            elif isinstance(s, (n.For, n.While)):
                self.forget(s)
                for b in n.blocks_of(s):
                    self.look(b, held)
                self.forget(s)
            elif isinstance(s, n.Let):
                self.known[s.dst] = self.let(s)
            elif isinstance(s, n.Set):
                self.known[s.dst] = self.value(s.value)
            else:
                self.known.update((v, _UNKNOWN) for v in n.defs_of(s))
                if self.changes(s):
                    self.common = held if self.common is None else self.common & held
        return False

    def branch(self, s: n.If, held: _Held) -> _Held:
        """What holds after it."""
        yes, no = self.implied(s.cond, True), self.implied(s.cond, False)
        before = dict(self.known)
        ends_then = self.look(s.then, held | (yes or _NONE))
        then, self.known = self.known, before
        ends_else = self.look(s.orelse, held | (no or _NONE))
        other = self.known
        merged: dict[n.Var, _Implied] = {}
        for v in {**then, **other}:
            a, b = then.get(v, _UNSET), other.get(v, _UNSET)
            merged[v] = a if a == b else (
                _either(a[0], b[0], yes, no), _either(a[1], b[1], yes, no)
            )  # fmt: skip
        self.known = merged
        if ends_then and not ends_else:
            held |= no or _NONE
        elif ends_else and not ends_then:
            held |= yes or _NONE
        return held

    def changes(self, s: n.Stmt) -> bool:
        if isinstance(s, n.Call):
            inner = self.facts[id(s.func)]
            # Native text may change anything, and need not be told where it is.
            native = any(f.native is not None for f in (s.func, *n.callees(s.func)))
            return bool(inner.written) or inner.context or native
        return not isinstance(s, n.Load)

    def forget(self, s: n.Stmt) -> None:
        for inner in n.walk((s,)):
            self.known.update((v, _UNKNOWN) for v in n.defs_of(inner))

    def let(self, s: n.Let) -> _Implied:
        if s.op == "copy":
            return self.value(s.args[0])
        if s.op == "lnot":
            yes, no = self.value(s.args[0])
            return no, yes
        if s.op in ("land", "lor"):
            which = s.op == "land"
            every = [self.implied(a, which) for a in s.args]
            found = None if None in every else frozenset[_Literal]().union(*every)  # type: ignore[arg-type]
            return (found, _NONE) if which else (_NONE, found)
        return _UNKNOWN

    def value(self, a: n.Atom) -> _Implied:
        """What follows from an atom's truth, and from its being false."""
        if isinstance(a, n.Const):
            return (_NONE, None) if a.value else (None, _NONE)
        return self.implied(a, True), self.implied(a, False)

    def implied(self, a: n.Atom, value: bool) -> _Held | None:
        if isinstance(a, n.Const):
            return self.value(a)[0 if value else 1]
        more = self.known.get(a, _UNKNOWN)[0 if value else 1]
        if more is None or a.mutable:
            return more
        return more | {(a, value)}


def _either(a: _Held | None, b: _Held | None, yes: _Held | None, no: _Held | None) -> _Held | None:
    """What follows from a value that is that of one of two branches."""
    one = None if a is None or yes is None else a | yes
    other = None if b is None or no is None else b | no
    if one is None or other is None:
        return other if one is None else one
    return one & other


class _Hoist:
    """What of a kernel is the same for the threads of a row."""

    def __init__(self, fn: n.Function, last: int) -> None:
        self.last = last
        self.params = frozenset(fn.params)
        self.defined: dict[n.Var, n.Let] = {}
        self._define(fn.body)
        self._even: dict[n.Var, bool] = {}

    def _define(self, block: n.Block) -> None:
        for s in block:
            if isinstance(s, n.Let) and not s.dst.mutable:
                self.defined[s.dst] = s
            elif isinstance(s, n.If):
                for b in n.blocks_of(s):
                    self._define(b)

    def is_even(self, a: n.Atom) -> bool:
        """Whether it can be computed once for a row."""
        if isinstance(a, n.Const) or a in self.params:
            return True
        if a not in self._even:
            s = self.defined.get(a)
            self._even[a] = s is not None and self._is_even(s)
        return self._even[a]

    def _is_even(self, s: n.Let) -> bool:
        compares = s.op in _SWAPPED and s.args[0].type in (INT32, INT64)
        if not compares and s.op not in _HOISTED:
            return False
        if s.op == "tid":
            return tid_part(s) != self.last
        return all(self.is_even(a) for a in s.args)

    def _place(self, a: n.Atom) -> int | None:
        """What is added to the coordinate along the last axis; None where it is something else.

        So little that nothing wraps: see `eng::fits_int32`.
        """
        s = self.defined.get(a) if isinstance(a, n.Var) else None
        if s is None or s.dst.type not in (INT32, INT64):
            return None
        if s.op == "tid":
            return 0 if tid_part(s) == self.last else None
        if s.op in ("copy", "cast"):
            return self._place(s.args[0])
        if s.op not in ("add", "sub"):
            return None
        a, b = s.args
        if s.op == "add" and isinstance(a, n.Const):
            a, b = b, a
        before = self._place(a)
        if before is None or not (isinstance(b, n.Const) and isinstance(b.value, int)):
            return None
        by = before + b.value if s.op == "add" else before - b.value
        return by if abs(by) <= _NEAR else None

    def test(self, s: n.Let, value: bool) -> Test | None:
        """A comparison as a test; None where it is something else."""
        if s.op not in _SWAPPED or s.args[0].type not in (INT32, INT64):
            return None
        op = s.op if value else _OTHER.get(s.op, "")
        a, b = s.args
        if self._place(a) is None:
            a, b, op = b, a, _SWAPPED.get(op, "")
        by = self._place(a)
        if not op or by is None or not self.is_even(b):
            return None
        # What is taken from a bound of 64 bits instead may wrap.
        return Test(op, b, by) if by == 0 or b.type == INT32 else None

    def needed(self, tests: list[Test], rows: list[_Literal]) -> tuple[n.Let, ...]:
        """The definitions of bounds and of what is tested for each row, in order."""
        out: dict[n.Var, n.Let] = {}

        def take(a: n.Atom) -> None:
            if isinstance(a, n.Var) and a not in self.params and a not in out:
                s = self.defined[a]
                for x in s.args:
                    take(x)
                out[a] = s

        for a in (*(t.bound for t in tests), *(v for v, _ in rows)):
            take(a)
        return tuple(out.values())
