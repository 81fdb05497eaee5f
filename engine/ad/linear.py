"""Tests whether code is linear in some inputs, as a gradient must be to have a transpose.

Every float is one of three things: zero whatever the inputs are, a number that does not depend on
them, or a linear function of them. A sum of the last two is neither, nor is a product of two that
depend on the inputs, nor what a comparison of them decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.ad.cleanup import is_zero
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.ir import nodes as n
from engine.ir.ops import OPS, NoDerivative, Vjp
from engine.lang.types import BOOL, ArrayType, is_float

# What is known of a float, as a set of bits: neither is zero whatever the inputs are.
_ZERO, _FIXED, _LINEAR = 0, 1, 2

# Linear in all their floats together, besides those whose rule says so.
_SUMS = ("cast", "construct", "fill", "replayed", "degrees", "radians")
# Those that make floats of integers, which are numbers like others.
_CONVERSIONS = ("cast", "construct", "fill")
_QUOTIENTS = ("div", "unscale", "cw_div")
_UPDATES = ("add", "sub", "exch")


@dataclass(frozen=True, slots=True)
class Kink:
    """Why code is not linear: what it does with an input, and its place."""

    what: str
    span: Span


def nonlinear(
    fn: n.Function, arrays: frozenset[str], inputs: Iterable[n.Var], results: Iterable[n.Var]
) -> Kink | None:
    """The first statement by which a body is not linear; None where it is.

    fn: without jumps, and without calls of functions that have a body. arrays: parameters whose
    elements are inputs, and outputs if they are written. inputs: floats that are. results: what
    else comes out.
    """
    return _Degrees(fn, arrays, frozenset(inputs)).kink(tuple(results))


class _Degrees:
    """How all variables of a function depend on the inputs.

    Flow-insensitive: a variable counts as one thing through the whole function.
    """

    def __init__(self, fn: n.Function, arrays: frozenset[str], inputs: frozenset[n.Var]) -> None:
        self.fn = fn
        self.arrays = arrays
        self.known: dict[n.Var, int] = dict.fromkeys(fn.params, _FIXED)
        self.known.update(dict.fromkeys(inputs, _LINEAR))
        self.statements = list(n.walk(fn.body))
        changed = True
        while changed:
            changed = False
            for s in self.statements:
                for d in n.defs_of(s):
                    got = self.degree(s)
                    if d.mutable:
                        got |= self.known.get(d, _ZERO)
                    changed |= got != self.known.get(d, _ZERO)
                    self.known[d] = got

    def of(self, a: n.Atom) -> int:
        if isinstance(a, n.Var):
            return self.known.get(a, _ZERO)
        return _ZERO if is_zero(a) else _FIXED

    def degree(self, s: n.Stmt) -> int:
        """Of what a statement defines; where it is not linear, something that depends on inputs."""
        if isinstance(s, n.Let):
            return self.operation(s)
        if isinstance(s, n.Set):
            return self.of(s.value)
        if isinstance(s, (n.Load, n.Atomic)):
            return _LINEAR if s.array.name in self.arrays else _FIXED
        return _FIXED

    def operation(self, s: n.Let) -> int:
        found = [self.of(a) for a in s.args if not isinstance(a.type, ArrayType)]
        rule = OPS[s.op].derivative
        if isinstance(rule, NoDerivative):
            return _FIXED  # of inputs, it is told of by `misuse`
        if not _float(s.dst):  # an integer is a number, unless it is one of an input
            return _LINEAR if any(d & _LINEAR for d in found) else _FIXED
        if self.adds(s):
            total = _ZERO
            for a, d in zip(s.args, found, strict=True):
                total |= d if _float(a) or s.op in _CONVERSIONS else _ZERO
            return total
        if any(d & _LINEAR for d in found):
            return _LINEAR
        if (isinstance(rule, Vjp) and rule.kind == "multilinear") or s.op in ("mul", *_QUOTIENTS):
            return _ZERO if _ZERO in found else _FIXED
        return _FIXED

    def adds(self, s: n.Let) -> bool:
        rule = OPS[s.op].derivative
        return (isinstance(rule, Vjp) and rule.kind == "linear") or s.op in _SUMS

    # ---- what is not linear

    def kink(self, results: tuple[n.Var, ...]) -> Kink | None:
        for s in self.statements:
            what = self.misuse(s)
            if what:
                return Kink(what, s.span)
        for s in self.statements:
            if isinstance(s, n.Set) and s.dst in results and self.of(s.dst) & _FIXED:
                made = (d.span for d in self.statements if s.value in n.defs_of(d))
                return Kink(_FREE, next(made, s.span))
        return None

    def moves(self, atoms: Iterable[n.Atom]) -> int:
        """How many of the atoms depend on inputs."""
        return sum(1 for a in atoms if self.of(a) & _LINEAR and not isinstance(a.type, ArrayType))

    def misuse(self, s: n.Stmt) -> str:
        """Why a statement is not linear; empty where it is."""
        if isinstance(s, n.Let):
            return self.bent(s)
        if isinstance(s, n.Set):
            return _MIXED if self.of(s.dst) == _FIXED | _LINEAR else ""
        if isinstance(s, (n.Load, n.Store, n.Atomic)):
            return "" if isinstance(s, n.Load) else self.written(s)
        if isinstance(s, n.Call):
            return self.called(s)
        return ""  # what blocks and loops decide by is no float: that of an input is told of

    def bent(self, s: n.Let) -> str:
        """Of an operation."""
        count = self.moves(s.args)
        if not count:
            return ""
        rule = OPS[s.op].derivative
        if isinstance(rule, NoDerivative):
            return "compares it" if s.dst.type == BOOL else f"takes {_name(s)!r} of it"
        if self.adds(s):
            if s.dst.type != BOOL and not _float(s.dst):
                return "makes an integer of it"
            return _MIXED if self.known[s.dst] == _FIXED | _LINEAR else ""
        if s.op in _QUOTIENTS:
            return "" if self.moves(s.args[1:]) == 0 else "divides by it"
        if s.op == "mul" or (isinstance(rule, Vjp) and rule.kind == "multilinear"):
            return "" if count == 1 else "multiplies two that depend on it"
        return f"takes {_name(s)!r} of it"

    def written(self, s: n.Store | n.Atomic) -> str:
        if s.array.name not in self.arrays:
            if not self.arrays and not self.of(s.value) & _LINEAR:
                return ""  # where arrays are inputs, the transpose runs this again
            return f"writes to `{s.array.name}`, which is no gradient"
        if isinstance(s, n.Atomic) and s.kind not in _UPDATES:
            return f"updates a gradient by an atomic {s.kind}"
        return _FREE if self.of(s.value) & _FIXED else ""

    def called(self, s: n.Call) -> str:
        given = [a for a in s.args if isinstance(a, n.Var) and isinstance(a.type, ArrayType)]
        if self.moves(s.args) or any(a.name in self.arrays for a in given):
            return f"hands it to the native function `{s.func.name}`"
        return f"calls `{s.func.name}`, which writes memory" if n.writes_memory(s.func) else ""


_MIXED = "adds a value to it that does not depend on it"
_FREE = "returns a value that does not depend on it"


def _float(a: n.Atom) -> bool:
    return not isinstance(a.type, ArrayType) and is_float(a.type)


def _name(s: n.Let) -> str:
    return OPS[s.op].user or s.op
