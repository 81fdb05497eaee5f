"""Known signs of integers while a function is lowered.

An index that may be negative counts from the end, as in Python, which costs a
comparison and keeps the compiler from seeing neighbouring threads read neighbouring
elements. Most indices are thread coordinates, loop variables and sums of those, and
need neither. `i - 1` does, unless a condition around it (or a `return` before it)
says that `i > 0`: the usual form of a stencil.

A lower bound is worked out only when asked for, from the operations that made the
value. Overflow is left out: an index that overflows is outside of its array anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.diagnostics import UNKNOWN, Span
from engine.ir.builder import Builder, Names
from engine.ir.nodes import Atom, Const, Var
from engine.lang.types import ScalarType, Type

# How many operations a bound looks through.
_DEPTH = 8
_SUMS = frozenset({"land", "lor"})
_NOT = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_MIRROR = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}

_Made = dict[Var, tuple[str, tuple[Atom, ...]]]


class RangeBuilder(Builder):
    """A builder that remembers how values were made, and what holds in its block.

    `at_least` are lower bounds of values that are never set again; what a nested block
    learns is forgotten with it.
    """

    def __init__(self, names: Names, span: Span = UNKNOWN) -> None:
        super().__init__(names, span)
        self._made: _Made = {}
        self._at_least: dict[Var, int] = {}

    def child(self) -> RangeBuilder:
        inner = RangeBuilder(self.names, self.span)
        inner._made = self._made
        inner._at_least = dict(self._at_least)
        return inner

    def op(self, name: str, *args: Atom, result: Type | None = None, base: str = "t") -> Var:
        dst = super().op(name, *args, result=result, base=base)
        self._made[dst] = (name, args)
        return dst

    def renamed(self, old: Var, new: Var) -> None:
        """`new` takes the place of the temporary `old`."""
        if old in self._made:
            self._made[new] = self._made[old]

    def learn(self, atom: Atom, bound: int | None) -> None:
        """From here on in this block, `atom >= bound`."""
        if isinstance(atom, Var) and not atom.mutable and bound is not None:
            known = self._at_least.get(atom)
            self._at_least[atom] = bound if known is None else max(bound, known)

    def assume(self, cond: Atom, holds: bool) -> None:
        """From here on in this block, the condition holds, or it does not."""
        for name, a, b in self._comparisons(cond, holds):
            for op, x, y in ((name, a, b), (_MIRROR[name], b, a)):
                low = self.low(y)
                if low is None:
                    continue
                if op in ("ge", "eq"):
                    self.learn(x, low)
                elif op == "gt":
                    self.learn(x, low + 1)
                elif op == "ne" and isinstance(y, Const) and self.low(x) == low:
                    self.learn(x, low + 1)

    def _comparisons(self, cond: Atom, holds: bool) -> Iterator[tuple[str, Atom, Atom]]:
        """Comparisons of integers that follow from a condition."""
        pending = [(cond, holds)]
        while pending:
            atom, true = pending.pop()
            if not isinstance(atom, Var) or atom not in self._made:
                continue
            name, args = self._made[atom]
            if name == "lnot":
                pending.append((args[0], not true))
            elif name in _SUMS and (name == "land") == true:
                pending += [(a, true) for a in args]
            elif name in _NOT and _is_integer(args[0].type):
                yield name if true else _NOT[name], args[0], args[1]

    def low(self, atom: Atom, depth: int = _DEPTH) -> int | None:
        """A number that the integer is never less than; None where none is known."""
        if isinstance(atom, Const):
            return atom.value if isinstance(atom.value, int) else None
        found = self._at_least.get(atom)
        if atom in self._made and depth:
            name, args = self._made[atom]
            made = self._follows(atom.type, name, args, depth - 1)
            if made is not None and (found is None or made > found):
                found = made
        if found is None and isinstance(atom.type, ScalarType) and atom.type.kind in "ub":
            return 0
        return found

    def _follows(self, t: Type, name: str, args: Sequence[Atom], depth: int) -> int | None:
        """The bound of an operation's result."""
        if name in ("tid", "shape", "abs"):
            return 0
        if name == "cast":
            return self.low(args[0], depth) if _holds(t, args[0].type) else None
        if name == "sub":
            less = args[1].value if isinstance(args[1], Const) else None
            low = self.low(args[0], depth)
            return low - less if low is not None and isinstance(less, int) else None
        lows = [self.low(a, depth) for a in args]
        known = [x for x in lows if x is not None]
        if name in ("copy", "within"):
            return lows[0]
        if name == "max":
            return max(known, default=None)
        if name in ("select", "where_int"):
            lows, known = lows[1:], [x for x in lows[1:] if x is not None]
            return min(known) if len(known) == len(lows) else None
        if name == "clamp":  # min(max(x, low), high)
            inner = [x for x in lows[:2] if x is not None]
            return min(max(inner), lows[2]) if inner and lows[2] is not None else None
        if name in ("mod", "shr"):  # the sign is that of the first operand
            return 0 if lows[0] is not None and lows[0] >= 0 else None
        if name == "bitand":
            return 0 if any(x >= 0 for x in known) else None
        if len(known) != len(lows):
            return None
        if name == "add":
            return sum(known)
        if name == "min":
            return min(known)
        if name in ("mul", "div", "floordiv") and all(x >= 0 for x in known):
            return 0
        return None


def _is_integer(t: Type) -> bool:
    return isinstance(t, ScalarType) and t.kind in "iu"


def _holds(t: Type, source: Type) -> bool:
    """True where every integer of type `source` is one of type `t`."""
    if not isinstance(t, ScalarType) or not isinstance(source, ScalarType):
        return False
    if source.kind == "b" or t.kind == source.kind:
        return source.kind in "iub" and t.bits >= source.bits
    return source.kind == "u" and t.kind == "i" and t.bits > source.bits
