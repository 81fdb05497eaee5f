"""Arrays that a Warp tape reads in its backward pass after their content has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engine.autograd.comparison.tolerance import largest
from engine.autograd.facts import Overwritten, Write
from engine.draws import default_rng
from engine.foreign.warp_adjoint import WarpRun, own_paths
from engine.foreign.warp_kernels import Untranslatable
from engine.foreign.warp_tapes import WarpLaunch, WarpTape, Written
from engine.foreign.warp_values import Array

RTOL, FLOOR = 1e-3, 1e-5  # of what a gradient changes by, where it is told


def overwritten(warp: Any, tape: WarpTape, writes: Sequence[Written]) -> Iterator[Overwritten]:
    """What was overwritten, with an effect on gradients: Warp's adjoint runs with both."""
    if not tape.ran:
        return
    for index, launch in enumerate(tape.launches):
        lost = _lost(launch)
        if not lost or launch.kept is None:
            continue
        try:
            run = WarpRun(warp, launch)
            yield from _told(run, tape, index, launch, lost, writes)
        except Untranslatable:
            continue


def _lost(launch: WarpLaunch) -> list[str]:
    """The arrays that held something else where the tape ran backward."""
    out = []
    for path in own_paths(launch):
        then, now = launch.after.get(path), launch.present.get(path)
        if then is None or now is None or then is now or then.shape != now.shape:
            continue
        if then.tobytes() != now.tobytes():
            out.append(path)
    return out


def _told(
    run: WarpRun, tape: WarpTape, index: int, launch: WarpLaunch, lost: Sequence[str],
    writes: Sequence[Written],
) -> Iterator[Overwritten]:  # fmt: skip
    seeds = run.cotangents(default_rng([0x0E, index]))
    if not seeds:
        return
    right = run.gradients(seeds)
    for path in lost:
        now = launch.present[path]
        wrong = run.gradients(seeds, at={path: now})
        suffering = tuple(n for n, g in right.items() if _differ(g, wrong[n]))
        if not suffering:
            continue
        then = launch.after[path]
        assert now is not None and then is not None
        by, first, last, count = _by(launch, path, writes), *_changed(then, now)
        on_tape = by is not None and (
            (by.tape == tape.index and by.launch >= 0)
            or any(c.order == by.order for c in tape.copies)
        )
        write = Write()
        if by is not None:
            other = by.tape if by.tape >= 0 and by.tape != tape.index else -1
            site = by.site.span if by.site is not None else None
            write = Write(by.name, by.launch, site, other)
        yield Overwritten(
            "wrong" if on_tape else "outside", index, launch.kernel.key, path, "",
            launch.span, write, first, last, count,
            gradients=suffering,
        )  # fmt: skip


def _differ(a: Array, b: Array) -> bool:
    if a.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        off = np.abs(a.astype(np.float64) - b.astype(np.float64))
    off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, off)
    return bool(np.any(~(off <= RTOL * np.abs(a) + FLOOR * largest(a))))


def _changed(then: Array, now: Array) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The first and the last number that changed, and how many did."""
    where = np.argwhere(then != now)
    if not len(where):
        return (), (), 0
    return tuple(map(int, where[0])), tuple(map(int, where[-1])), len(where)


def _by(launch: WarpLaunch, path: str, writes: Sequence[Written]) -> Written | None:
    """The first write to an array after a launch."""
    spec = next(a for a in launch.arrays if a.path == path)
    later = (w for w in writes if w.order > launch.order)
    return next((w for w in later if w.begin < spec.end and spec.begin < w.end), None)
