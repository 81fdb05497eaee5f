"""Finds the custom derivative that is wrong, and the operands where it is.

Each is taken away in turn: where the adjoint changes when a function's own code is
differentiated instead, the derivative written for it (or the replay) is another one. The
interpreter then runs threads of the launch, sees what the function is called with, and
compares there. For native functions, whose code is C++, differences stand in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.launch.array_operands import compared, is_pure, operands_with_elements
from engine.autograd.launch.derived import called, derived, with_functions, without_custom
from engine.autograd.launch.differenced_adjoint import with_differenced_adjoint
from engine.autograd.launch.evaluation import Evaluation, EvaluationFailed
from engine.autograd.results import Blame
from engine.compile.pipeline import Variants
from engine.diagnostics import EngineError
from engine.ir import interp
from engine.ir import nodes as n
from engine.lang.numbers import number_kind
from engine.lang.types import ArrayType, is_float

Array = NDArray[Any]

SECONDS = 2.0  # that looking for operands takes at most; the place is known without them
THREADS = 64  # that are run
CALLS = 256  # that are compared
TRIES = 4  # launches of a kernel that are searched for operands without any being found
STEPS = 100_000  # statements of a thread
ENOUGH = 50_000  # of all threads, after which none begins if calls were seen
SAME = 1e-6  # relative
SAME_SINGLE = 1e-4  # the same in single precision
BY_STEPS = 1e-2  # of differences in the precision of a native function
CLEAR = 1e-5  # relative; above the noise of differences
STEP = 1e-5
APART = 0.1  # what two steps may differ by, relative to the slope
EVIDENCE = 1e-9  # a difference below this part of results by operands may be rounding
UNITS = 16  # numbers of a result that are looked at one by one


class Shown:
    """Derivatives of which an earlier launch has shown operands at which they are wrong.

    Operands are looked for by the interpreter, which takes longer than all else of a check: once
    they are found, or were looked for in vain in so many launches, later launches of the kernel
    name the derivative alone.
    """

    def __init__(self) -> None:
        self._left: dict[Hashable, int] = {}

    def wants(self, key: Hashable) -> bool:
        """Whether operands are to be looked for."""
        return self._left.get(key, TRIES) > 0

    def add(self, key: Hashable, found: Blame) -> None:
        """Notes what came of a search."""
        self._left[key] = 0 if found.parts else self._left.get(key, TRIES) - 1


def blame(
    exact: Evaluation, outputs: Sequence[str], rng: np.random.Generator, thread: int = 0,
    shown: Shown | None = None,
) -> tuple[Blame, ...]:  # fmt: skip
    """The wrong ones of the derivatives and replays that the user wrote for functions.

    thread: the one that is most likely to show it, which is looked at first. shown: by launches of
    the same program before.
    """
    shown = shown or Shown()
    w = {b: rng.standard_normal(exact.initial[b].shape) for b in outputs}
    given = {a: g.copy() for a, g in exact.vjp(w).items()}
    single = any(g.dtype != np.float64 for g in given.values())
    out = []
    for f in {f.name: f for f in called(exact.variants.ir)}.values():
        if f.grad is None and f.replay is None:
            continue
        try:
            changed = _without(exact.variants, f)
            if changed is None:
                continue
            other = Evaluation(replace(exact.launch, variants=changed))
            try:
                own = other.vjp(w)
                tolerance = BY_STEPS if f.native is not None else SAME_SINGLE if single else SAME
                differs = any(_differ(own[a], g, tolerance) for a, g in given.items())
            finally:
                other.close()
        except (EvaluationFailed, EngineError, TypeError):
            continue
        if not differs:
            continue
        key = exact.variants, f.name
        found = _plain(f)
        if shown.wants(key):
            found = _at_worst(exact, f, thread)
            shown.add(key, found)
        out.append(found)
    return tuple(out)


def _differ(x: Array, y: Array, tolerance: float) -> bool:
    """Whether they do where both are finite: that one has no pole may be what it is for."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = np.where(both, x, 0.0), np.where(both, y, 0.0)
    return bool(np.any(np.abs(x - y) > tolerance * np.abs(x).max(initial=0.0)))


def _without(variants: Variants, f: n.Function) -> Variants | None:
    """The kernel without what was written for f; None where nothing can take its place."""

    def make() -> Variants | None:
        if f.native is None:
            return Variants(without_custom(variants.ir, lambda g: g.name == f.name))
        other = with_differenced_adjoint(f)
        if other is None:
            return None
        return Variants(with_functions(variants.ir, lambda g: other if g is f else g))

    return derived(variants, ("without", f.name), make)


class _Watching(interp._Thread):
    """A thread that notes what one function is called with."""

    wanted = ""
    seen: list[tuple[n.Function, list[Any]]]

    def call(self, fn: n.Function, args: Sequence[Any]) -> tuple[Any, ...]:
        if fn.name == self.wanted and len(self.seen) < CALLS:
            self.seen.append((fn, [np.copy(a) for a in args]))
        return super().call(fn, args)


def _plain(fn: n.Function) -> Blame:
    """What is wrong, without operands."""
    written = fn.grad or fn.replay
    assert written is not None
    label = fn.name.removesuffix("_lifted")
    own = label if written.native is not None else written.name.removesuffix("_lifted")
    return Blame(label, own, written.span, replay=fn.grad is None)


def _at_worst(exact: Evaluation, fn: n.Function, thread: int) -> Blame:
    """The derivative at those of its operands where it is furthest off, as time allows."""
    grad, plain = fn.grad, _plain(fn)
    if grad is None or fn.native is not None or grad.native is not None:
        return plain
    sites = [s for s in _all_calls(exact.variants.ir) if s.func is fn]
    # What is the same number at every call has no gradient to pass on.
    scalars = {p for p in exact.variants.ir.params if not isinstance(p.type, ArrayType)}
    fixed = {
        p.name for k, p in enumerate(fn.params)
        if all(isinstance(s.args[k], n.Const) or s.args[k] in scalars for s in sites)
    }  # fmt: skip
    # An array that needs no gradient may well be left out.
    kernel = {p: p.name for p in exact.variants.ir.params}
    arrays = {
        p.name for k, p in enumerate(fn.params)
        if all(isinstance(a := s.args[k], n.Var) and kernel.get(a) in exact.wrt for s in sites)
    }  # fmt: skip
    worst, most = plain, 0.0
    ends = perf_counter() + SECONDS  # from here: nothing is compiled any more
    for f, args in _calls(exact, fn.name, thread, ends):
        if perf_counter() > ends:
            break
        results = _floats(_results(f, args))
        by_name = {p.name: a for p, a in zip(f.params, args, strict=True)}
        for seeds in _cotangents(results):
            wrong = [
                c
                for c in _compare(f, grad, args, arrays, seeds)
                if c[0] not in fixed and _differ(c[2], c[1], CLEAR)
                and _is_evidence(results, by_name.get(c[0]), c[1], c[2])
            ]  # fmt: skip
            error = max((float(np.abs(got - right).max()) for _, got, right in wrong), default=0.0)
            if error > most * (1 + SAME):
                most = error
                operands = tuple(
                    (p.name, _show(a)) for p, a in zip(f.params, args, strict=True)
                    if not isinstance(p.type, ArrayType)
                )  # fmt: skip
                if any(np.any(s != 1.0) for s in seeds):
                    names = [p.name for p in grad.params[len(args) :]]
                    operands += tuple(
                        (p, _show(s)) for p, s in zip(names, seeds, strict=False)
                    )  # fmt: skip
                parts = tuple((p, _show(got), _show(right)) for p, got, right in wrong)
                worst = replace(plain, operands=operands, parts=parts)
            if wrong:
                break
    return worst


def _cotangents(results: Sequence[Array]) -> Iterator[list[Array]]:
    """Cotangents of results: all 1, under which parts may cancel, then one at a time."""
    yield [np.ones_like(r) for r in results]
    sizes = [np.size(r) for r in results]
    count = sum(sizes)
    for unit in np.eye(count) if 1 < count <= UNITS else ():
        parts = np.split(unit, np.cumsum(sizes)[:-1])
        yield [p.reshape(np.shape(r)).astype(r.dtype) for p, r in zip(parts, results, strict=True)]


def _floats(results: Sequence[Any]) -> list[Array]:
    found = map(np.asarray, results)
    return [r for r in found if number_kind(r.dtype) == "f"]


def _is_evidence(results: Sequence[Array], operand: Any, got: Array, right: Array) -> bool:
    """Whether a difference is more than rounding leaves of large parts that cancel."""
    if operand is None:
        return True
    by = float(np.abs(np.asarray(operand, np.float64)).max(initial=0.0)) or 1.0
    size = sum(float(np.abs(r).sum()) for r in results)
    return bool(np.nanmax(np.abs(got - right), initial=0.0) > EVIDENCE * size / by)


def _all_calls(fn: n.Function) -> list[n.Call]:
    out, todo, seen = [], [fn], {id(fn)}
    while todo:
        for s in n.walk(todo.pop().body):
            if isinstance(s, n.Call):
                out.append(s)
                if id(s.func) not in seen:
                    seen.add(id(s.func))
                    todo.append(s.func)
    return out


def _calls(
    exact: Evaluation, name: str, first: int, ends: float
) -> list[tuple[n.Function, list[Any]]]:
    """What threads call a function with, one of them first; until so many seconds have passed."""
    arrays = {k: v.copy() for k, v in exact.initial.items()}
    args = [
        arrays[exact.owner[p.name]] if isinstance(p.type, ArrayType) else a.value
        for p, a in zip(exact.params, exact.launch.arguments, strict=True)
    ]
    seen: list[tuple[n.Function, list[Any]]] = []
    done = 0
    journal = interp.Journal()
    values = interp._arguments(exact.variants.ir, args)
    with np.errstate(all="ignore"):
        for k in dict.fromkeys((first, *range(min(exact.threads, THREADS)))):
            late = done >= ENOUGH or perf_counter() > ends - SECONDS / 2  # the rest is to compare
            if len(seen) >= CALLS or (seen and late):
                break
            thread = _Watching(k, exact.dim, journal, None, STEPS, {})
            thread.wanted, thread.seen = name, seen
            try:
                thread.call(exact.variants.ir, values)
            except interp.InterpError:
                break
            done += STEPS - (thread.left or 0)
    return seen


def _compare(
    fn: n.Function, grad: n.Function, args: Sequence[Any], arrays: set[str], seeds: list[Array]
) -> list[tuple[str, Array, Array]]:
    """The derivative of a sum of a call's results by each operand: the user's, and differences.

    arrays: those of the array operands that are compared, by the elements that differ. seeds: the
    weights of the results that are floats. Empty where it could not be had.
    """
    if not fn.results:
        return []
    if any(isinstance(p.type, ArrayType) for p in fn.params) and not is_pure(fn):
        return []
    whole = operands_with_elements(fn)
    moving = [i for i, p in enumerate(fn.params) if i not in whole and is_float(p.type)]
    gradients = {f"adj_{fn.params[i].name}": np.zeros_like(args[i]) for i in whole}
    try:
        given = [p.name for p in grad.params[len(args) + len(seeds) :]]
        if any(name not in gradients for name in given):
            return []
        adjoints = interp.evaluate(grad, [*args, *seeds, *(gradients[name] for name in given)])
        if [np.shape(a) for a in adjoints] != [np.shape(args[i]) for i in moving]:
            return []
        out = [
            (fn.params[i].name, np.asarray(a, np.float64), _slopes(fn, args, i, seeds))
            for i, a in zip(moving, adjoints, strict=True)
        ]
        for i, gradient in zip(whole, gradients.values(), strict=True):
            if fn.params[i].name in arrays:

                def slope(x: Array, at: tuple[int, ...], i: int = i) -> float:
                    return _slope(fn, args, i, x, at, seeds)

                out += compared(fn, args, i, gradient, slope, CLEAR)
    except (interp.InterpError, TypeError):
        return []
    return out


def _slopes(fn: n.Function, args: Sequence[Any], i: int, seeds: Sequence[Array]) -> Array:
    """Differences of the weighted results by operand i, by the five-point rule."""
    x = np.asarray(args[i], np.float64)
    out = np.empty(x.shape)
    for at in np.ndindex(x.shape):
        out[at] = _slope(fn, args, i, x, at, seeds)
    return out


def _slope(
    fn: n.Function, args: Sequence[Any], i: int, x: Array, at: tuple[int, ...],
    seeds: Sequence[Array],
) -> float:  # fmt: skip
    """The same by one number of operand i, which is x; NaN at a pole, and where x is not finite."""
    if not np.isfinite(x[at]):
        return float("nan")
    h = STEP * max(1e-3, abs(float(x[at])))
    sides = []
    for steps in (2.0, 1.0, -1.0, -2.0):
        moved = x.copy()
        moved[at] += steps * h
        now = [*args[:i], moved, *args[i + 1 :]]
        found = zip(_floats(_results(fn, now)), seeds, strict=False)
        sides.append(sum(float(np.sum(r * s)) for r, s in found))
    narrow, wide = (sides[1] - sides[2]) / (2.0 * h), (sides[0] - sides[3]) / (4.0 * h)
    if abs(narrow - wide) > APART * max(abs(narrow), abs(wide)):
        return float("nan")
    return (4.0 * narrow - wide) / 3.0


def _results(fn: n.Function, args: Sequence[Any]) -> tuple[Any, ...]:
    try:
        return interp.evaluate(fn, list(args))
    except interp.InterpError:
        return ()


def _show(x: Any) -> str:
    flat = np.asarray(x)
    if flat.size == 1:
        return f"{float(flat.ravel()[0]):.7g}"
    return np.array2string(
        flat, separator=", ", threshold=16, formatter={"float_kind": lambda v: f"{v:.7g}"}
    ).replace("\n", "")
