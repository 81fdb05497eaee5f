"""A tape of Warp as a whole: what its backward pass left, beside the chain of exact adjoints.

The chain runs over all launches, at the values that they had, with gradients of all memory: also
of arrays that have none in Warp, so that a gradient that ends too early is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.autograd.comparison.tolerance import largest
from engine.autograd.launch.evaluation import EvaluationFailed
from engine.autograd.launch.paths import faithful
from engine.autograd.launch.recorded_arguments import NotRepeatable, recorded_launch
from engine.autograd.results import Cause, LaunchResult, WholeResult
from engine.diagnostics import EngineError
from engine.foreign.warp_kernels import Untranslatable
from engine.foreign.warp_launches import LaunchCheck, place_of
from engine.foreign.warp_planes import Planes
from engine.foreign.warp_tapes import WarpCopy, WarpLaunch, WarpTape, Written
from engine.foreign.warp_values import Array, ArrayOf, leaves

# What gradients of a tape may be off by: relative, and to the largest of their array.
RTOL, FLOOR = 1e-2, 1e-3
_FAILED = ("fail", "nan")


@dataclass(frozen=True)
class _Ended:
    """An array without a gradient that got one in the chain."""

    index: int
    launch: WarpLaunch
    array: ArrayOf


class _Unknown(Exception):
    """Why the chain cannot be followed."""


def check_whole(
    check: LaunchCheck, tape: WarpTape, launches: Sequence[LaunchResult],
    writes: Sequence[Written], lost: bool,
) -> WholeResult | None:  # fmt: skip
    """The check of a tape that ran backward; None where something else has been found already."""
    wrong = any(p.verdict in _FAILED for x in launches for p in x.pairs)
    if not tape.ran or not tape.launches or wrong or lost:
        return None
    site = tape.backward.span if tape.backward is not None else None
    if tape.functions:
        reason = "a function recorded with Tape.record_func is on it"
        return WholeResult("skipped", reason=reason, site=site)
    try:
        planes, ended = _chain(check, tape, writes)
    except (_Unknown, Untranslatable, NotRepeatable, EvaluationFailed) as why:
        return WholeResult("skipped", reason=str(why), site=site)
    except EngineError as error:
        return WholeResult("skipped", reason=error.diagnostics[0].message, site=site)
    return _compared(tape, planes, ended)


def _chain(
    check: LaunchCheck, tape: WarpTape, writes: Sequence[Written]
) -> tuple[Planes, list[_Ended]]:
    arrays = [a for x in tape.launches for a in x.arrays]
    arrays += [a for c in tape.copies for a in (c.dest, c.src)]
    planes = Planes(arrays)
    for g in tape.gradients:
        if g.before is None:
            raise _Unknown("copies of its gradients would take too much memory")
        planes.write(g.array, dict(leaves(g.before, g.array.path)))
    copied = {c.order for c in tape.copies}
    own = [w for w in writes if w.launch < 0 and w.order not in copied]
    begin, end = tape.launches[0].order, tape.launches[-1].order
    events: list[tuple[int, int, WarpLaunch | WarpCopy | Written]] = []
    events += [(x.order, k, x) for k, x in enumerate(tape.launches)]
    events += [(c.order, -1, c) for c in tape.copies]
    events += [(w.order, -1, w) for w in own if begin < w.order < end]
    ended: list[_Ended] = []
    for _, index, event in sorted(events, key=lambda e: e[0], reverse=True):
        if isinstance(event, WarpCopy):
            _copy(planes, event)
        elif isinstance(event, Written):
            planes.clear(event.begin, event.end)
        else:
            ended += _launch(check, planes, index, event)
    return planes, ended


def _copy(planes: Planes, c: WarpCopy) -> None:
    if not c.plain:
        raise _Unknown("a copy of a part of an array is on it")
    given = planes.read(c.dest)
    planes.clear(c.dest.begin, c.dest.end)
    mine = planes.read(c.src)
    into = zip(mine, given.values(), strict=True)
    planes.write(c.src, {name: mine[name] + g.reshape(mine[name].shape) for name, g in into})


def _launch(check: LaunchCheck, planes: Planes, index: int, launch: WarpLaunch) -> list[_Ended]:
    record = check.record(launch, every=True)
    own: dict[object, ArrayOf] = {}
    for a in launch.arrays:
        own.setdefault(a.key, a)
    seeds: dict[str, Array] = {}
    for a in own.values():
        seeds.update(planes.read(a))
    if not any(s.any() for s in seeds.values()):
        return []  # nothing flows back through it
    with faithful(recorded_launch(record)) as evaluated:
        exact = evaluated.exact
        known = {n: s.reshape(exact.grads[n].shape) for n, s in seeds.items() if n in exact.grads}
        found = {n: g.copy() for n, g in exact.vjp(known).items()}
    for a in own.values():
        planes.write(a, found)
    reaches = any(
        np.any(found[n] != known[n]) for a in own.values() for n, _, _ in planes.places(a)
        if n in found
    )  # fmt: skip
    return [
        _Ended(index, launch, a) for a in own.values()
        if reaches and not a.grad and launch.before[a.path] is not launch.after[a.path]
        and any(seeds[n].any() for n in planes.read(a))
    ]  # fmt: skip


def _compared(tape: WarpTape, planes: Planes, ended: Sequence[_Ended]) -> WholeResult:
    count, worst = 0, (0.0, 0.0, 0.0)
    for g in tape.gradients:
        if g.after is None:
            continue
        got = dict(leaves(g.after, g.array.path))
        for name, exact in planes.read(g.array).items():
            mine = got[name].reshape(exact.shape).astype(np.float64)
            count += 1
            if not np.all(np.isfinite(exact)):
                continue
            scale = max(largest(exact), largest(mine))
            with np.errstate(all="ignore"):
                excess = np.abs(mine - exact) / (RTOL * np.abs(exact) + FLOOR * scale + 1e-30)
            excess = np.where(np.isfinite(mine), excess, np.inf)
            k = int(np.argmax(excess)) if excess.size else -1
            if k >= 0 and excess.flat[k] > max(1.0, worst[0]):
                worst = float(excess.flat[k]), float(mine.flat[k]), float(exact.flat[k])
    if not count:
        return WholeResult("skipped", reason="copies of its gradients would take too much memory")
    if worst[0] <= 1.0:
        return WholeResult("pass", count)
    _, ad, oracle = worst
    error = abs(ad - oracle) / max(abs(oracle), 1e-30)
    return WholeResult("fail", count, ad, oracle, error, cause=_cause(ended))


def _cause(ended: Sequence[_Ended]) -> Cause:
    if not ended:
        return Cause("unknown")
    first = min(ended, key=lambda e: e.index)
    x = first.launch
    site = x.site.span if x.site is not None else None
    return Cause("no gradient", first.index, x.kernel.key, first.array.path, site,
                 place_of(x.kernel))  # fmt: skip
