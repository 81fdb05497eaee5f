"""The tapes of a run for a page: graph, curves, and the operations behind each box."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from adtool.counts import counted, more
from adtool.course import Course, Turn, course, growth_words
from adtool.figures.graphs import scene
from adtool.figures.scale import log_limits
from adtool.figures.scene import svg
from adtool.gradients import whole
from adtool.health import Health, health
from adtool.last import seen
from adtool.memory import in_words
from adtool.page import charts
from adtool.page.data import PageRun
from adtool.page.rows import Words, digits, place
from adtool.page.words import name
from engine.autograd import Cluster, Graph, GraphOptions, OperationNode, TapeTrace, graph
from engine.classes import dataclass

TAPES = 8  # of a run that are shown; those where something is wrong first
_KERNELS = charts.COLOURS - 1
_PIXELS = 4 / 3  # of a point


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend. colour: the number of a class, -1 for words alone."""

    label: str
    colour: int


@dataclass(frozen=True, slots=True)
class TapePart:
    """One tape. graph: SVG that is clean, "" for none; width, height: in pixels.

    notes: sentences about the picture. norms, bytes: SVG of curves, "" for none. turns: where the
    gradient dies or explodes. data: operations and what the boxes stand for, for the script.
    """

    number: int
    title: str
    wrong: bool
    graph: str
    width: float
    height: float
    notes: tuple[str, ...]
    norms: str
    legend: tuple[Key, ...]
    turns: tuple[str, ...]
    bytes: str
    memory: tuple[tuple[str, str], ...]
    data: dict[str, Any]


def tape_parts(run: PageRun) -> tuple[TapePart, ...]:
    """The tapes to show, in their order."""
    if run.traces is None:
        return ()
    last = seen(run.script, run.traces, run.report)
    found = [(t, health(last, t)) for t in run.traces.tapes if t.operations]
    order = sorted(
        range(len(found)), key=lambda k: (not found[k][1].wrong, found[k][1].first is None, k)
    )[:TAPES]
    return tuple(_part(*found[k]) for k in sorted(order))


def _part(trace: TapeTrace, known: Health) -> TapePart:
    x = trace.listing
    options = GraphOptions(
        operations=known.operations, arrays=known.arrays, focus=known.first, first=known.place
    )
    picture = graph(x, options)
    if known.unchecked:
        picture = replace(picture, notes=(*picture.notes, known.unchecked))
    text, width, height, said = _drawn(picture)
    along = course(trace)
    norms, legend = _norms(along)
    title = f"{counted(x.records, 'operation')}, {counted(len(x.arrays), 'array')}"
    if known.first is not None:
        title += f"; {known.why}"
    return TapePart(
        trace.tape, title, known.wrong, text, width, height, (*picture.notes, *said),
        norms, legend, _turns(along), _bytes(trace), _memory(trace), _data(trace, along, picture),
    )  # fmt: skip


def _drawn(picture: Graph) -> tuple[str, float, float, tuple[str, ...]]:
    found = scene(picture)
    if found is None:
        return "", 0.0, 0.0, ("not drawn: too many boxes",)
    text = ElementTree.tostring(_opening(svg(found), picture), encoding="unicode")
    return text, found.width * _PIXELS, found.height * _PIXELS, ()


def _opening(root: Any, picture: Graph) -> Any:
    """Boxes that stand for several operations can be opened: by pointer and by keyboard."""
    known = {x.id: x for x in _operations(picture.items)}
    frames = {c.id: c for c in _clusters(picture.items)}
    for g in root.iter("g"):
        key = g.get("data-node")
        if key in known:
            label = f"{known[key].label}, {counted(len(known[key].members), 'operation')}"
        elif key in frames:
            label = f"{frames[key].label}: the operations in this frame"
        else:
            continue
        g.set("tabindex", "0")
        g.set("role", "button")
        g.set("aria-label", name(f"Show {label}"))
    return root


def _operations(items: Sequence[OperationNode | Cluster]) -> Iterator[OperationNode]:
    for item in items:
        if isinstance(item, Cluster):
            yield from _operations(item.items)
        else:
            yield item


def _clusters(items: Sequence[OperationNode | Cluster]) -> list[Cluster]:
    out = []
    for item in items:
        if isinstance(item, Cluster):
            out += [item, *_clusters(item.items)]
    return out


def _norms(along: Course) -> tuple[str, tuple[Key, ...]]:
    seen = [r for r in along.rows if r.gradient is not None]
    if not seen:
        return "", ()
    names = list(dict.fromkeys(r.kernel for r in seen))
    groups = [(n, [n]) for n in names[:_KERNELS]]
    if len(names) > _KERNELS:
        groups.append((more(len(names) - _KERNELS, "kernel"), names[_KERNELS:]))
    curves = [
        charts.Curve(label, tuple((r.record, r.gradient or 0.0) for r in seen if r.kernel in these))
        for label, these in groups
    ]
    lines = [
        charts.Line(kind, turn.record)
        for kind, turn in (("explodes", along.explodes), ("dies", along.dies))
        if turn is not None
    ]
    finite = [r.gradient for r in seen if r.gradient and math.isfinite(r.gradient)]
    low, high = log_limits(finite)
    off = [v for v in finite if not low - 1e-9 <= math.log10(v) <= high + 1e-9]
    about = f"Norm of the incoming gradient at {counted(len(seen), 'operation')}"
    if finite:
        about += f", from {min(finite):.3g} to {max(finite):.3g}"
    made = charts.chart(
        curves, about, "operation on the tape (the backward pass goes from right to left)",
        "norm of the gradient", log=True, lines=lines,
    )  # fmt: skip
    keys = [Key(name(label), k) for k, (label, _) in enumerate(groups)]
    if off:
        ends = f"from {min(off):.3g} to {max(off):.3g}" if len(off) > 1 else f"{off[0]:.3g}"
        keys.append(Key(f"ring at the edge: off the scale, {ends}", -1))
    return made, tuple(keys)


def _turns(along: Course) -> tuple[str, ...]:
    out = []
    for word, turn in (("explodes", along.explodes), ("dies", along.dies)):
        if turn is not None:
            out.append(f"The gradient {word} at {_where(turn)}: {turn.why}.")
    if along.growth is not None:
        words = growth_words(along.growth)
        out.append(
            f"At the launches of {along.along}, the norm of the gradient {words}, going backward."
        )
    return tuple(out)


def _where(turn: Turn) -> str:
    at = f"launch {turn.launch}" if turn.launch is not None else f"record {turn.record}"
    return f"{at} of {turn.kernel}"


def _bytes(trace: TapeTrace) -> str:
    """The bytes of all arrays that the tape has used, up to each of its operations."""
    x = trace.listing
    seen: set[int] = set()
    total = 0
    points = []
    for o in x.operations:
        for array in {whole(x, a) for a in o.arrays if a >= 0} - seen:
            seen.add(array)
            total += x.arrays[array].nbytes
        points.append((float(o.index), float(total)))
    if not points or not total:
        return ""
    about = f"Bytes of the arrays used so far along the tape, {in_words(total)} at its end"
    return charts.chart(
        [charts.Curve("arrays so far", tuple(points))], about, "operation on the tape",
        "bytes of arrays so far", bytes_=True,
    )  # fmt: skip


def _memory(trace: TapeTrace) -> tuple[tuple[str, str], ...]:
    m = trace.memory
    if m is None:
        return ()
    return (
        ("Copies of arrays from before they changed", in_words(m.inputs)),
        ("Journals of launches", in_words(m.journals)),
        ("Largest stack of a backward pass", in_words(m.stack)),
    )


def _data(trace: TapeTrace, along: Course, picture: Graph) -> dict[str, Any]:
    words = Words()
    rows = [
        [
            r.record, r.launch, words.of(r.kernel), words.of(" x ".join(map(str, r.dim))),
            words.of(", ".join(r.inputs)), words.of(", ".join(r.outputs)), r.bytes,
            digits(r.forward, 3), digits(r.backward, 3), digits(r.gradient),
            words.of(place(r.file, r.line)),
        ]
        for r in along.rows
    ]  # fmt: skip
    boxes: dict[str, tuple[str, list[int]]] = {
        x.id: (x.label, list(x.members)) for x in _operations(picture.items)
    }
    for c in _clusters(picture.items):
        members = sorted(m for x in _operations(c.items) for m in x.members)
        boxes[c.id] = (c.label, members)
    shown = {key: [name(label), members] for key, (label, members) in boxes.items()}
    return {"tape": trace.tape, "words": words.all, "rows": rows, "boxes": shown}
