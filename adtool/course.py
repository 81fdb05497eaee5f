"""Follows the gradient norm along a tape, to where it vanishes or explodes."""

from __future__ import annotations

import math

import numpy as np

from adtool.gradients import at_leaves, ends_at, first_norm, incoming, together, usual, whole
from engine.autograd import GraphOptions, TapeTrace, array_label, used_as
from engine.classes import dataclass

EXPLODES, VANISHES = 1e6, 1e-6


@dataclass(frozen=True, slots=True)
class Row:
    """One operation. launch: its number among the launches, null for what is none.

    record: its number among all records. inputs, outputs: names of arrays. bytes: of all of
    them together, each once. forward, backward: seconds, null where not known. gradient: norm
    of the gradient that came to it, null where there was none. file, line: of the call.
    """

    record: int
    launch: int | None
    kind: str
    kernel: str
    dim: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bytes: int
    forward: float | None
    backward: float | None
    gradient: float | None
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """Where the gradient changes for good. why: in words. norm: what came there."""

    record: int
    launch: int | None
    kernel: str
    array: str
    why: str
    norm: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """A tape's gradient, from its last operation to its first.

    growth: the factor by which its norm grows from one operation to the one before it, fitted
    over the launches of one kernel, `along`; null where it came to none three times. dies,
    explodes: where it does so first, null where nowhere.
    """

    rows: tuple[Row, ...]
    growth: float | None
    along: str
    dies: Turn | None
    explodes: Turn | None


def course(trace: TapeTrace, explodes: float = EXPLODES, vanishes: float = VANISHES) -> Course:
    """Looks along a tape.

    explodes, vanishes: the norm that counts as such, in units of the first that is not zero.
    """
    rows = _rows(trace)
    growth, along = _growth(rows)
    turns = _dies(trace, rows, vanishes), _explodes(trace, rows, explodes)
    return Course(rows, growth, along, *turns)


def _rows(trace: TapeTrace) -> tuple[Row, ...]:
    x, options = trace.listing, GraphOptions()
    used = used_as(x)
    labels = [array_label(x, a, options, used.get(a, "")) for a in range(len(x.arrays))]
    rows = []
    for position, o in enumerate(x.operations):
        k, traced = x.kernels[o.kernel], trace.operations[position]
        reads, writes = x.inputs(o), x.outputs(o)
        file, line = x.sites[o.site] if o.site >= 0 else ("", 0)
        rows.append(
            Row(
                o.index, o.launch if o.launch >= 0 else None, k.kind, k.name, o.dim,
                tuple(labels[a] for a in reads), tuple(labels[a] for a in writes),
                sum(x.arrays[a].nbytes for a in {*reads, *writes}),
                traced.forward, traced.backward, incoming(trace, position), file, line,
            )
        )  # fmt: skip
    return tuple(rows)


def _growth(rows: tuple[Row, ...]) -> tuple[float | None, str]:
    """The growth, and the kernel that it is measured along: the one that carries the most.

    By least squares through the logarithms of its norms.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    for i, r in enumerate(rows):
        if usual(r.gradient):
            found.setdefault(r.kernel, []).append((-i, math.log(r.gradient or 1.0)))
    kernels = {name: np.array(points) for name, points in found.items() if len(points) > 2}
    if not kernels:
        return None, ""
    along = max(kernels, key=lambda name: float(kernels[name][:, 1].mean()))
    x, y = (kernels[along] - kernels[along].mean(0)).T
    return math.exp(min(float(x @ y) / float(x @ x), 700.0)), along


def growth_words(growth: float) -> str:
    """A growth in words: `grows by a factor of 1.06 per operation`, `stays the same`."""
    shrinks = growth < 1.0
    factor = f"{(1.0 / growth if growth else math.inf) if shrinks else growth:.4g}"
    if factor == "1":
        return "stays the same"
    return f"{'shrinks' if shrinks else 'grows'} by a factor of {factor} per operation"


def beside_first(norm: float, start: float | None) -> str:
    """A norm beside the first one, where that is a size."""
    if not start or not math.isfinite(start):
        return ""
    part = norm / start
    return f", {part:.2g} times the first" if part >= 1.0 else f", {part:.2g} of the first"


def _explodes(trace: TapeTrace, rows: tuple[Row, ...], factor: float) -> Turn | None:
    start = first_norm(trace)
    for position in reversed(range(len(rows))):
        flow, r = trace.operations[position].flow, rows[position]
        if flow is None:
            continue
        gave = together(flow.added)
        for norms, norm in ((flow.incoming, r.gradient), (flow.added, gave)):
            if norm is None or (math.isfinite(norm) and not (start and norm > factor * start)):
                continue
            if not math.isfinite(norm):
                why = f"the gradient of `{{}}` is {norm}, the first that is not finite"
            else:
                why = f"the gradient of `{{}}` is {norm:.3g}{beside_first(norm, start)}"
            return _turn(trace, rows, position, norms, why, norm)
    return None


def _dies(trace: TapeTrace, rows: tuple[Row, ...], factor: float) -> Turn | None:
    position, start = ends_at(trace, factor), first_norm(trace)
    if position is None or start is None or not math.isfinite(start):
        return None
    flow, norm = trace.operations[position].flow, rows[position].gradient
    assert flow is not None
    assert norm is not None
    x = trace.listing.operations[position]
    kernel = trace.listing.kernels[x.kernel]
    # A leaf that gets its gradient by other operations is not what this is about.
    reached = at_leaves(trace)
    fed = {a for a in x.arrays if a >= 0
           and reached.get(whole(trace.listing, a), 0.0) > factor * start}  # fmt: skip
    added = tuple(None if x.arrays[k] in fed else n for k, n in enumerate(flow.added))
    gave = together(added)
    if gave:
        why = f"the gradient that reaches `{{}}` is {gave:.3g}{beside_first(gave, start)}"
        return _turn(trace, rows, position, added, why, gave)
    for wants, why in (
        (True, "the gradient that goes on to `{}` is zero"), (False, "`{}` has no requires_grad"),
    ):  # fmt: skip
        for k in kernel.reads:
            a = x.arrays[k]
            if a >= 0 and a not in fed and trace.listing.arrays[a].requires_grad is wants:
                only = tuple(0.0 if i == k else None for i in range(len(x.arrays)))
                return _turn(trace, rows, position, only, why, norm)
    return None


def _turn(
    trace: TapeTrace, rows: tuple[Row, ...], position: int, norms: tuple[float | None, ...],
    why: str, norm: float | None,
) -> Turn:  # fmt: skip
    r, x = rows[position], trace.listing
    o = x.operations[position]
    worst = max(
        (k for k, n in enumerate(norms) if n is not None),
        key=lambda k: math.inf if math.isnan(norms[k] or 0.0) else norms[k] or 0.0,
    )
    label, a = x.kernels[o.kernel].parameters[worst], o.arrays[worst]
    if a >= 0:
        label = array_label(x, a, GraphOptions(), used_as(x).get(a, label))
    return Turn(r.record, r.launch, r.kernel, label, why.format(label), norm)
