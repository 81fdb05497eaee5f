"""Tells whether loops go along rows of arrays, which suits single threads and not blocks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from engine.ir import nodes as n
from engine.lang.types import ArrayType

# Turns of a loop of constant length from which it counts as one.
TURNS = 8
# Operations that take as long as ten others, and how many operations an access is worth that goes
# along the rows of an array: one thread after the other, it would be next to the one before.
_SLOW = frozenset(
    ["acos", "asin", "atan", "atan2", "cos", "cosh", "div", "erf", "exp", "length", "log",
     "normalize", "pow", "sin", "sinh", "sqrt", "tan", "tanh", "unscale"]
)  # fmt: skip
_SLOWER, _ROW = 10, 12
_MANY = 1 << 40

# How an index grows from lane to lane: not at all, by one, by a number, in any way.
_Step = Literal["none", "one", "far", "any"]


def operations(
    block: n.Block, calls: bool = False, known: dict[n.Function, int] | None = None
) -> int:
    """About how many operations a block takes, of numbers, `_MANY` at most.

    calls: those of what it calls, too. known: those of functions, each of which is looked at once:
    one that calls another one twice, and so on, would not end.
    """
    known = {} if known is None else known
    out = 0
    for s in block:
        if isinstance(s, n.Let):
            t = s.dst.type
            size = 1 if isinstance(t, ArrayType) else max(t.size // 4, 1)
            out += size * (_SLOWER if s.op in _SLOW else 1)
        elif calls and isinstance(s, n.Call):
            if s.func not in known:
                known[s.func] = operations(s.func.body, calls, known)
            out += known[s.func]
        turns = TURNS if isinstance(s, (n.For, n.While)) else 1
        out += turns * sum(operations(b, calls, known) for b in n.blocks_of(s))
    return min(out, _MANY)


def by_rows(fn: n.Function, varying: Collection[n.Var]) -> bool:
    """Whether loops do little but go along rows that are the lanes' own.

    Lanes would be far from each other in memory where the turns of a loop are not.
    """
    steps: dict[n.Var, _Step] = {}
    rows, work = 0, operations(fn.body)

    def step(a: n.Atom) -> _Step:
        if not isinstance(a, n.Var) or a not in varying:
            return "none"
        return steps.get(a, "any")

    def look(block: n.Block, scale: int) -> None:
        nonlocal rows
        for s in block:
            if isinstance(s, n.Let):
                steps[s.dst] = _step_of(s, [step(a) for a in s.args], varying)
            elif isinstance(s, (n.Load, n.Store, n.Atomic)) and scale > 1:
                *outer, last = map(step, s.index)
                along = last == "far" or (last == "none" and any(o != "none" for o in outer))
                rows += scale * along * (1 if isinstance(s, n.Load) else 2)
            inner = scale * TURNS if isinstance(s, (n.For, n.While)) else scale
            for b in n.blocks_of(s):
                look(b, inner)

    look(fn.body, 1)
    return rows * _ROW > work


def _step_of(s: n.Let, args: Sequence[_Step], varying: Collection[n.Var]) -> _Step:
    if s.dst not in varying:
        return "none"
    if s.op in ("tid", "thread"):
        return "one"
    if s.op in ("copy", "cast", "wrap_index"):
        return args[0]
    if s.op in ("add", "sub", "mul") and "any" not in args:
        if s.op != "mul" and args[1] == "none":
            return args[0]
        return args[1] if s.op == "add" and args[0] == "none" else "far"
    return "any"
