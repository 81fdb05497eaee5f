"""Compares the result of a Warp tape's backward pass with the chain of exact adjoints.

The chain runs over all launches, at the values that they had, with gradients of all memory: also
of arrays that have none in Warp, so that a gradient that ends too early is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.autograd.comparison.tolerance import largest
from engine.autograd.launch.evaluation import EvaluationFailed
from engine.autograd.launch.paths import faithful
from engine.autograd.launch.recorded_arguments import NotRepeatable, recorded_launch
from engine.autograd.results import Cause, LaunchResult, WholeResult
from engine.classes import dataclass
from engine.diagnostics import EngineError
from engine.draws import default_rng
from engine.foreign.warp_kernels import Untranslatable
from engine.foreign.warp_launches import FLOOR as NEAR_FLOOR
from engine.foreign.warp_launches import RTOL as NEAR
from engine.foreign.warp_launches import LaunchCheck, place_of
from engine.foreign.warp_planes import Planes
from engine.foreign.warp_tapes import WarpCopy, WarpLaunch, WarpTape, Written
from engine.foreign.warp_values import Array, ArrayOf, leaves

# What gradients of a tape may be off by: relative, and to the largest of their array.
RTOL, FLOOR = 1e-2, 1e-3
# Times what rounding changes in the same chain in the kernels' own precision, where all that it
# passes on is moved by that part.
ROUNDING, UNIT = 16.0, 2.0**-23
_FAILED = ("fail", "nan")


@dataclass(frozen=True)
class _Ended:
    """An array without a gradient that got one in the chain."""

    index: int
    launch: WarpLaunch
    array: ArrayOf


class _Unknown(Exception):
    """Why the chain cannot be followed."""


@dataclass(frozen=True)
class FoundWhole:
    """What is found of a tape. result: None where something else has been found already.

    answered: the launches whose gradients it shows to be right.
    """

    result: WholeResult | None
    answered: frozenset[int] = frozenset()


def check_whole(
    check: LaunchCheck, tape: WarpTape, launches: Sequence[LaunchResult],
    writes: Sequence[Written], lost: bool,
) -> FoundWhole:  # fmt: skip
    """The check of a tape that ran backward."""
    if not tape.ran or not tape.launches or lost or some_wrong(launches):
        return FoundWhole(None)
    site = tape.backward.span if tape.backward is not None else None
    if tape.functions:
        reason = "a function recorded with Tape.record_func is on it"
        return FoundWhole(WholeResult("skipped", reason=reason, site=site))
    try:
        chain = _chained(check, tape, writes)
    except (_Unknown, Untranslatable, NotRepeatable, EvaluationFailed) as why:
        return FoundWhole(WholeResult("skipped", reason=str(why), site=site))
    except EngineError as error:
        return FoundWhole(WholeResult("skipped", reason=error.diagnostics[0].message, site=site))
    result, near = _compared(tape, chain)
    return FoundWhole(result, frozenset(chain.reached) if near else frozenset())


def some_wrong(launches: Iterable[LaunchResult]) -> bool:
    """Whether a gradient of a launch is wrong: those of its tape say nothing more then."""
    return any(p.verdict in _FAILED for x in launches for p in x.pairs)


@dataclass(frozen=True)
class _Chain:
    """Gradients of all memory: in float64, and in the kernels' own precision, for its rounding.

    reached: the launches that passed a gradient on. ended: their outputs that have none in Warp.
    """

    exact: Planes
    own: Planes
    reached: set[int]
    ended: list[_Ended]

    @property
    def both(self) -> tuple[Planes, Planes]:
        return self.exact, self.own


def _chained(check: LaunchCheck, tape: WarpTape, writes: Sequence[Written]) -> _Chain:
    arrays = [a for x in tape.launches for a in x.arrays]
    arrays += [a for c in tape.copies for a in (c.dest, c.src)]
    chain = _Chain(Planes(arrays), Planes(arrays), set(), [])
    for g in tape.gradients:
        if g.before is None:
            raise _Unknown("copies of its gradients would take too much memory")
        for planes in chain.both:
            planes.write(g.array, dict(leaves(g.before, g.array.path)))
    copied = {c.order for c in tape.copies}
    begin, end = tape.launches[0].order, tape.launches[-1].order
    events: list[tuple[int, int, WarpLaunch | WarpCopy | Written]] = []
    events += [(x.order, k, x) for k, x in enumerate(tape.launches)]
    events += [(c.order, -1, c) for c in tape.copies]
    events += [
        (w.order, -1, w) for w in writes
        if w.launch < 0 and w.order not in copied and begin < w.order < end
    ]  # fmt: skip
    for _, index, event in sorted(events, key=lambda e: e[0], reverse=True):
        if isinstance(event, WarpLaunch):
            _launch(check, chain, index, event)
            continue
        for planes in chain.both:
            if isinstance(event, WarpCopy):
                _copy(planes, event, tape)
            else:
                planes.leave(event.begin, event.end)
    return chain


def _copy(planes: Planes, c: WarpCopy, tape: WarpTape) -> None:
    recorded = bool(c.dest.grad and c.src.grad)
    before = (a for x in tape.launches if x.order < c.order for a in x.arrays)
    known = recorded or any(a.begin < c.src.end and c.src.begin < a.end for a in before)
    if known and not c.plain:
        raise _Unknown("a copy of a part of an array is on it")
    given = planes.read(c.dest)
    if recorded:
        planes.write(c.dest, {name: np.zeros_like(g) for name, g in given.items()})
    else:
        planes.leave(c.dest.begin, c.dest.end)
    if known:
        mine = planes.read(c.src)
        into = zip(mine, given.values(), strict=True)
        planes.write(c.src, {n: mine[n] + g.reshape(mine[n].shape) for n, g in into})


def _launch(check: LaunchCheck, chain: _Chain, index: int, launch: WarpLaunch) -> None:
    record = check.record(launch, every=True)
    own: dict[object, ArrayOf] = {}
    for a in launch.arrays:
        own.setdefault(a.key, a)
    seeds: dict[str, Array] = {}
    for a in own.values():
        seeds.update(chain.exact.read(a))
    if not any(s.any() for s in seeds.values()):
        return  # nothing flows back through it
    moved, rng = False, default_rng([0x9C, index])
    with faithful(recorded_launch(record)) as evaluated:
        for planes, form in zip(chain.both, (evaluated.exact, evaluated.own), strict=True):
            given = {n: g for a in own.values() for n, g in planes.read(a).items()}
            if planes is chain.own:  # as if each number had been rounded otherwise
                given = {n: g * (1.0 + UNIT * rng.standard_normal(g.shape))
                         for n, g in given.items()}  # fmt: skip
            known = {n: g.reshape(form.grads[n].shape) for n, g in given.items()
                     if n in form.grads}  # fmt: skip
            found = {n: g.astype(np.float64) for n, g in form.vjp(known).items()}
            for a in own.values():
                planes.write(a, found)
            moved = moved or any(np.any(found[n] != g) for n, g in known.items())
    passed = [
        a for a in own.values()
        if launch.before[a.path] is not launch.after[a.path]
        and any(seeds[n].any() for n in seeds if n == a.path or n.startswith(f"{a.path}."))
    ]  # fmt: skip
    if moved and passed:
        chain.reached.add(index)
        chain.ended.extend(_Ended(index, launch, a) for a in passed if not a.grad)


def _compared(tape: WarpTape, chain: _Chain) -> tuple[WholeResult, bool]:
    """The result, and whether all gradients are as near as those of a launch must be."""
    count, worst, most, near = 0, (0.0, 0.0, 0.0), 0.0, True
    for g in tape.gradients:
        if g.after is None:
            near = False
            continue
        got, rounded = dict(leaves(g.after, g.array.path)), chain.own.total(g.array)
        for name, exact in chain.exact.total(g.array).items():
            count += 1
            mine = got[name].reshape(exact.shape).astype(np.float64)
            if not exact.size:
                continue
            if not np.all(np.isfinite(exact)):
                near = False
                continue
            with np.errstate(all="ignore"):
                noise = largest(rounded[name] - exact)
                scale = max(largest(exact), largest(mine))
                allowed = RTOL * np.abs(exact) + FLOOR * scale + ROUNDING * noise + 1e-30
                excess = np.abs(mine - exact) / allowed
                close = np.abs(mine - exact) <= NEAR * np.abs(exact) + NEAR_FLOOR * scale + 1e-30
            excess = np.where(np.isfinite(mine), excess, np.inf)
            near = near and bool(np.all(close))
            k = int(np.argmax(excess))
            off = max(0.0, largest(mine - exact) - ROUNDING * noise)
            most = max(most, off / scale if scale else 0.0)
            if excess.flat[k] > max(1.0, worst[0]):
                worst = float(excess.flat[k]), float(mine.flat[k]), float(exact.flat[k])
    if not count:
        reason = "copies of its gradients would take too much memory"
        return WholeResult("skipped", reason=reason), False
    if worst[0] <= 1.0:
        return WholeResult("pass", count, rel_error=most, tolerance=RTOL + FLOOR), near
    _, ad, oracle = worst
    error = abs(ad - oracle) / max(abs(oracle), 1e-30)
    return WholeResult("fail", count, ad, oracle, error, cause=_cause(chain.ended)), False


def _cause(ended: Sequence[_Ended]) -> Cause:
    if not ended:
        return Cause("unknown")
    first = min(ended, key=lambda e: e.index)
    x = first.launch
    return Cause("no gradient", first.index, x.kernel.key, first.array.path, x.span,
                 place_of(x.kernel))  # fmt: skip
