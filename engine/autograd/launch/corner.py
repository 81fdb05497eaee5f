"""Finds the operation with the kink: an `abs`, `min`, `max`, `clamp` or comparison that ties.

A thread that has to do with the entry is interpreted a little to the left and to the right of the
kink; the first operation whose floats decide otherwise on the two sides is the one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.launch.evaluation import Evaluation, EvaluationFailed
from engine.autograd.launch.source_text import text_of
from engine.autograd.reference.differences import FLOAT64
from engine.autograd.results import Corner, PairResult
from engine.diagnostics import UNKNOWN
from engine.ir import interp
from engine.ir import nodes as n
from engine.lang.types import ArrayType, is_float, scalar_of

Array = NDArray[Any]

STEPS = 200_000  # statements of a thread that are interpreted on each side
# Of the jump of an adjoint across a kink, what a part of the threads must have to be followed.
SHARE = 0.1

# What an operation of floats decides, as numbers that change where it takes another side.
_SIDES: dict[str, Callable[..., Any]] = {
    "abs": np.signbit,
    "min": lambda a, b: a < b,
    "max": lambda a, b: a < b,
    "clamp": lambda x, lo, hi: (x > lo).astype(int) + (x > hi),
    "min_of": np.argmin,
    "max_of": np.argmax,
}


def corner(exact: Evaluation, pair: PairResult) -> Corner | None:
    """The place of a pair's kink; None where it is not known.

    exact: the launch in float64.
    """
    every = {s.span for s in n.walk(exact.variants.prepared.body) if _may_turn(s)}
    every.discard(UNKNOWN)
    e = pair.worst
    try:
        found = None if e is None or e.row < 0 or e.col < 0 else _crossed(exact, pair, e.row, e.col)
    except (EvaluationFailed, interp.InterpError, TypeError):
        found = None
    if found is None and len(every) == 1 and exact.generated:
        found = next(iter(every))  # nothing else can have one
    return None if found is None else Corner(found, text_of(found))


def _may_turn(s: n.Stmt) -> bool:
    if isinstance(s, n.Atomic):
        return s.kind in ("min", "max") and is_float(s.value.type)
    if not isinstance(s, n.Let) or isinstance(s.dst.type, ArrayType):
        return False
    return _side(s) is not None and any(is_float(a.type) for a in s.args)


def _side(s: n.Let) -> Callable[..., Any] | None:
    known = _SIDES.get(s.op.removesuffix("_vec"))
    if known is None and scalar_of(s.dst.type).kind != "f":
        return _itself
    return known


def _itself(*operands: Any) -> Any:
    return None


def _crossed(exact: Evaluation, pair: PairResult, row: int, col: int) -> Any:
    """The place of the first operation that decides otherwise on the two sides of an element."""
    x = exact.initial[pair.input]
    size = float(np.sqrt(np.mean(np.square(x[np.isfinite(x)])))) or 1.0
    h = FLOAT64.side * max(abs(float(x.flat[col])), 1e-3 * size)
    seed = np.zeros(exact.initial[pair.output].shape)
    seed.flat[row] = 1.0
    thread = _thread(exact, pair, seed, col, h)
    if thread is None:
        return None
    with _moved(exact, pair.input, col, h):
        right = _decisions(exact, thread)
    with _moved(exact, pair.input, col, -h):
        left = _decisions(exact, thread)
    for (one, a), (other, b) in zip(right, left, strict=False):
        if one is not other:
            return None  # what is said of iterations does not show which decision it was
        if a != b:
            return one.span if one.span != UNKNOWN else None
    return None


@contextmanager
def _moved(exact: Evaluation, name: str, col: int, h: float) -> Iterator[None]:
    """The launch with one element of its inputs displaced."""
    x = exact.initial[name]
    was = x.flat[col]
    x.flat[col] = was + h
    exact.refresh()
    try:
        yield
    finally:
        x.flat[col] = was
        exact.refresh()


def _thread(exact: Evaluation, pair: PairResult, seed: Array, col: int, h: float) -> int | None:
    """A thread whose adjoint differs most between the two sides; None where sums hide it."""

    def jump(lo: int, hi: int) -> float:
        sides = []
        for step in (h, -h):
            with _moved(exact, pair.input, col, step):
                sides.append(float(exact.vjp({pair.output: seed}, (lo, hi))[pair.input].flat[col]))
        return abs(sides[0] - sides[1])

    begin, end = 0, exact.threads
    whole = jump(begin, end) if end > 1 else 1.0
    if not whole > 0.0:
        return None
    while end - begin > 1:
        middle = (begin + end) // 2
        if jump(begin, middle) > SHARE * whole:
            end = middle
        elif jump(middle, end) > SHARE * whole:
            begin = middle
        else:
            return None
    return begin


def _decisions(exact: Evaluation, thread: int) -> Sequence[tuple[n.Let, Any]]:
    """What the floats of a thread decide, one after the other."""
    out: list[tuple[n.Let, Any]] = []

    def note(s: Any, operands: Any, result: Any, thread: Any) -> None:
        if isinstance(s, n.Let) and _may_turn(s):
            side = _side(s)
            assert side is not None
            decided = result if side is _itself else side(*map(np.asarray, operands))
            out.append((s, np.asarray(decided).tolist()))

    arrays = {k: v.copy() for k, v in exact.initial.items()}
    args = [
        arrays[exact.owner[p.name]] if p.name in exact.owner else a.value
        for p, a in zip(exact.params, exact.launch.arguments, strict=True)
    ]
    interp.run(
        exact.variants.prepared, args, exact.dim, threads=[thread], trace=note, max_steps=STEPS
    )
    return out
