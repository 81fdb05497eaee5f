"""Gradient norms along a tape, and the place where a gradient ends too early."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

from engine.autograd import TapeListing, TapeTrace


def together(norms: Iterable[float | None]) -> float | None:
    """The norm of several arrays as one; None where none has a gradient."""
    known = [x for x in norms if x is not None]
    return math.hypot(*known) if known else None


def incoming(trace: TapeTrace, position: int) -> float | None:
    """The norm of the gradient that came to an operation; None where there was none."""
    flow = trace.operations[position].flow
    return None if flow is None else together(flow.incoming)


def usual(norm: float | None) -> bool:
    """Whether there is a gradient, of a size that has a logarithm."""
    return norm is not None and math.isfinite(norm) and norm > 0


def first_norm(trace: TapeTrace) -> float | None:
    """The norm where the backward pass began: the first that is not zero."""
    places = reversed(range(len(trace.operations)))
    return next((n for p in places if usual(n := incoming(trace, p))), None)


def ends_at(trace: TapeTrace, left: float = 0.0) -> int | None:
    """The position where the last of the gradient is lost, though there was somewhere to go.

    It is lost where no array that the tape computed before has more than `left` times the first
    norm any longer, and the operation that did it gave no more than that to arrays from outside
    either: then it went where it should. Nor is it lost where all leaves on which the operation
    depends have more than that in the end, by whatever way. Where nothing is left at all, the
    operation must have had an input that gradients flow to, or should. One branch of several may
    end anywhere.
    """
    start = first_norm(trace)
    if start is None:
        return None
    listing = trace.listing
    onward, reached = _onward(listing), at_leaves(trace)
    made: dict[int, int] = {}
    for position, x in enumerate(listing.operations):
        for a in listing.outputs(x):
            made.setdefault(a, position)
    now: dict[int, float] = {}
    alive: list[tuple[float, int, int]] = []  # by norm: minus it, the array, where it was made

    for position in reversed(range(len(listing.operations))):
        x, flow = listing.operations[position], trace.operations[position].flow
        if flow is None:
            continue
        came = together(flow.incoming)
        if came is not None and not math.isfinite(came):
            return None  # what follows is not finite: not this
        kernel = listing.kernels[x.kernel]
        for k in kernel.writes:
            now[x.arrays[k]] = 0.0
        for k in kernel.reads:
            norm = flow.outgoing[k]
            if x.arrays[k] >= 0 and norm is not None:
                now[x.arrays[k]] = norm
                heapq.heappush(alive, (-norm, x.arrays[k], made.get(x.arrays[k], 1 << 60)))
        if not came:
            continue
        while alive and (now[alive[0][1]] != -alive[0][0] or alive[0][2] >= position):
            heapq.heappop(alive)
        rest = -alive[0][0] if alive else 0.0
        if math.isnan(rest) or rest > left * start:
            continue
        outside = [
            flow.added[k] for k in kernel.reads if made.get(x.arrays[k], position) >= position
        ]
        gone = together(outside) or 0.0
        if not math.isfinite(gone):
            return None
        if gone > left * start or not onward[position]:
            return None
        got = [reached[a] for a in before(listing, position)[1] if a in reached]
        if got and min(got) > left * start:
            return None
        return position
    return None


def whole(listing: TapeListing, array: int) -> int:
    """The array that a view is a view of; else the array itself."""
    base = listing.arrays[array].base
    return array if base < 0 else base


def at_leaves(trace: TapeTrace) -> dict[int, float]:
    """The norm of the gradient that each leaf has in the end, by all launches that read it.

    Leaves are arrays with requires_grad that an operation reads before the tape writes them. Those
    that got no gradient have 0.0. Of views of one leaf, the largest norm counts.
    """
    listing = trace.listing
    written, out = set[int](), dict[int, float]()
    done = set[int]()
    for x, traced in zip(listing.operations, trace.operations, strict=True):
        outgoing = () if traced.flow is None else traced.flow.outgoing
        for k in listing.kernels[x.kernel].reads:
            a = x.arrays[k]
            if a < 0 or a in done or not listing.arrays[a].requires_grad:
                continue
            done.add(a)  # the first operation is the last one of the backward pass
            leaf = whole(listing, a)
            if leaf not in written:
                norm = outgoing[k] if k < len(outgoing) else None
                out[leaf] = max(out.get(leaf, 0.0), norm or 0.0)
        written |= {whole(listing, a) for a in listing.outputs(x)}
    return out


def before(listing: TapeListing, position: int) -> tuple[set[int], set[int]]:
    """The operations that an operation depends on, by index, and the arrays."""
    operations = set[int]()
    needed = {whole(listing, a) for a in listing.inputs(listing.operations[position])}
    for x in reversed(listing.operations[:position]):
        if any(whole(listing, a) in needed for a in listing.outputs(x)):
            operations.add(x.index)
            needed |= {whole(listing, a) for a in listing.inputs(x)}
    return operations, needed


def _onward(listing: TapeListing) -> list[bool]:
    """For each operation, whether it has an input that gradients flow to, or should.

    They should where the tape computed it from an array that requires a gradient.
    """
    moving = {i for i, a in enumerate(listing.arrays) if a.requires_grad}
    out = []
    for x in listing.operations:
        reads = [a for a in listing.inputs(x) if a in moving]
        out.append(bool(reads))
        if reads:
            moving |= set(listing.outputs(x))
    return out
