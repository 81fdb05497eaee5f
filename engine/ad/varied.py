"""Finds the variables that can have a tangent: those that depend on a differentiated input."""

from __future__ import annotations

from collections.abc import Iterable

from engine.classes import dataclass
from engine.ir import nodes as n
from engine.ir.ops import OPS, NoDerivative
from engine.lang.types import ArrayType, is_float


@dataclass(frozen=True)
class Varied:
    """Of one function, for one set of moving parameters.

    vars: float variables that may move. results: for each result, whether it may.
    """

    vars: frozenset[n.Var]
    results: tuple[bool, ...]


def carries(a: n.Atom) -> bool:
    """Whether an atom's type can have a tangent: floats that are no array."""
    return isinstance(a, n.Var) and not isinstance(a.type, ArrayType) and is_float(a.type)


class Activity:
    """Finds the varied variables of functions; each (function, moving parameters) once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, frozenset[str]], tuple[n.Function, Varied]] = {}

    def of(self, fn: n.Function, moving: frozenset[str]) -> Varied:
        """moving: names of parameters with tangents, arrays and floats.

        Flow-insensitive: a variable counts as one thing through the whole function,
        which can only add variables, never miss one.
        """
        key = (id(fn), moving)
        if key not in self._known:
            self._known[key] = (fn, self._find(fn, moving))  # fn stays alive, so that id is its
        return self._known[key][1]

    def _find(self, fn: n.Function, moving: frozenset[str]) -> Varied:
        found = {p for p in fn.params if p.name in moving and carries(p)}
        results = [False] * len(fn.results)
        statements = list(n.walk(fn.body))
        size = -1
        while size != len(found):
            size = len(found)
            for s in statements:
                found.update(d for d in self._moved(s, found, moving) if carries(d))
        for s in statements:
            if isinstance(s, n.Return):
                for i, a in enumerate(s.values):
                    results[i] |= a in found
        return Varied(frozenset(found), tuple(results))

    def _moved(self, s: n.Stmt, found: set[n.Var], moving: frozenset[str]) -> Iterable[n.Var]:
        """What a statement makes move, given what moves already."""
        if isinstance(s, n.Let):
            smooth = not isinstance(OPS[s.op].derivative, NoDerivative)
            return (s.dst,) if smooth and any(a in found for a in s.args) else ()
        if isinstance(s, n.Set):
            return (s.dst,) if s.value in found else ()
        if isinstance(s, (n.Load, n.Atomic)):
            return n.defs_of(s) if s.array.name in moving else ()
        if isinstance(s, n.Call):
            moves = self.called(s, found, moving)
            return [d for d, m in zip(s.dsts, moves, strict=False) if m]
        return ()

    def called(
        self, s: n.Call, found: frozenset[n.Var] | set[n.Var], moving: frozenset[str]
    ) -> tuple[bool, ...]:
        """Which results of a call may move."""
        if s.func.grad is not None:  # the user's own: any result may depend on any argument
            moves = any(a in found for a in s.args) or not by_values(s, moving)
            return (moves,) * len(s.func.results)
        return self.of(s.func, moving_params(s, found, moving)).results


def by_values(s: n.Call, moving: frozenset[str]) -> bool:
    """Whether a call has a derivative of the user's own, and no array that it is of moves."""
    grad = s.func.grad
    if grad is None:
        return False
    given = zip(s.func.params, s.args, strict=True)
    return not any(p.name in grad.gradients and _name(a) in moving for p, a in given)


def _name(a: n.Atom) -> str:
    """The name of a variable; empty for a constant."""
    return a.name if isinstance(a, n.Var) else ""


def moving_params(
    s: n.Call, found: frozenset[n.Var] | set[n.Var], moving: frozenset[str]
) -> frozenset[str]:
    """Parameters of the called function whose arguments may move."""
    return frozenset(
        p.name
        for p, a in zip(s.func.params, s.args, strict=True)
        if isinstance(a, n.Var)
        and (a.name in moving if isinstance(a.type, ArrayType) else a in found)
    )
