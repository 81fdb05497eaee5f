"""What stands in a picture of a tape: arrays, operations with their parameters, the legend."""

from __future__ import annotations

from collections.abc import Sequence

from adtool.figures.layers import Box
from adtool.figures.scene import Curve, Group, Oval, Rect, Words, width
from engine.autograd import ArrayNode, Colours, OperationNode
from engine.characters import clean
from engine.classes import dataclass

_BOX, _PORT, _FIRST = "#bdbdbd", "#f4f4f4", "#101010"
_WANTS, _GREY = "#3c7a22", "#707070"
_LABEL = 60  # characters of a line
_PORTS = 24  # drawn of an operation's inputs, and of its outputs
_BIG, _SMALL = 11.0, 9.0
_HIGH, _LOW, _ROW = 15.0, 12.0, 17.0  # of lines in these sizes, and of a parameter


@dataclass(frozen=True, slots=True)
class Drawn:
    """A box and how it is drawn, from its upper left corner. inner: where a frame's inside is."""

    box: Box
    group: Group
    inner: tuple[float, float] = (0.0, 0.0)
    operation: bool = False


def line(text: str, limit: int = _LABEL) -> str:
    """Text of the user's as one line."""
    shown = clean(text).replace("\n", " ").replace("\t", " ")
    return shown if len(shown) <= limit else shown[: limit - 1] + "\u2026"


def array_box(a: ArrayNode, fill: str, direction: str) -> Drawn:
    """An ellipse with the array's name, what it is, and what is known of its gradient."""
    lines = [line(a.label), *map(line, a.lines)]
    if a.role:
        lines.append(f"({a.role})")
    if a.mark is not None and a.mark.text:
        lines.append(line(a.mark.text))
    wide = max(width(t, _BIG if k == 0 else _SMALL) for k, t in enumerate(lines))
    tall = _HIGH + _LOW * (len(lines) - 1)
    w, h = max(56.0, 1.22 * wide + 16), 1.5 * tall + 8
    edge = _FIRST if a.first else _WANTS if a.requires_grad else _GREY
    dashed = a.mark is not None and a.mark.level == "unreached"
    shapes: list[Rect | Oval | Curve | Words] = [
        Oval(0.0, 0.0, w, h, fill, edge, 3.0 if a.first else 1.0, dashed)
    ]
    if a.role:
        shapes.append(Oval(3.0, 3.0, w - 6, h - 6, "none", edge))
    y = (h - tall) / 2 + _BIG
    for k, text in enumerate(lines):
        shapes.append(Words(w / 2, y, text, _SMALL if k else _BIG))
        y += _LOW
    detail = "" if a.mark is None else a.mark.detail or a.mark.text
    about = line(a.about or a.label, 400) + (f": {line(detail, 400)}" if detail else "")
    box = Box(w, h) if direction in ("LR", "RL") else Box(h, w)
    return Drawn(box, Group("node", a.id, about, shapes))


def operation_box(x: OperationNode, fill: str, direction: str) -> Drawn:
    """A box with a title, and a cell for each parameter on the side where its data is."""
    lines = [line(x.label), *map(line, x.lines)]
    if x.mark is not None and x.mark.text:
        lines.append(line(x.mark.text))
    detail = "" if x.mark is None else x.mark.detail or x.mark.text
    about = line("; ".join([x.kind, *x.lines]) + (f": {detail}" if detail else ""), 400)
    left_out = x.kind == "left out"
    dashed = left_out or (x.mark is not None and x.mark.level == "unreached")
    head = max(width(t, _SMALL if k else _BIG, not k) for k, t in enumerate(lines)) + 14
    title = _HIGH + _LOW * (len(lines) - 1) + 5
    ins, outs = _named(x.inputs), _named(x.outputs)
    made = (_beside if direction in ("LR", "RL") else _above)(ins, outs, head, title, direction)
    w, h, top, cells, box = made
    shapes: list[Rect | Oval | Curve | Words] = [
        Rect(0.0, 0.0, w, h, "#ffffff" if left_out else _PORT, "none"), *cells,
        Rect(0.0, top, w, title, fill, "none"),
    ]  # fmt: skip
    if cells:
        shapes.append(Rect(0.0, top, w, title, "none", _BOX))
    edge, thick = (_FIRST, 3.0) if x.first else (_GREY, 1.0)
    shapes.append(Rect(0.0, 0.0, w, h, "none", edge, thick, dashed))
    y = top + _BIG + 3
    for k, text in enumerate(lines):
        shapes.append(Words(w / 2, y, text, _SMALL if k else _BIG, bold=not k))
        y += _LOW
    return Drawn(box, Group("node", x.id, about, shapes), operation=True)


_Made = tuple[float, float, float, list[Rect | Oval | Curve | Words], Box]


def _named(names: Sequence[str]) -> list[str]:
    out = [line(n, 40) for n in names[:_PORTS]]
    return [*out, f"and {len(names) - _PORTS} more"] if len(names) > _PORTS else out


def _beside(ins: list[str], outs: list[str], head: float, title: float, direction: str) -> _Made:
    """Parameters below the title: those that are read where data comes from."""
    first, second = (outs, ins) if direction == "RL" else (ins, outs)
    one, two = (max((width(n, _SMALL) + 12 for n in x), default=0.0) for x in (first, second))
    w = max(head, one + two)
    spare = (w - one - two) / (2 if one and two else 1)
    one, two = (one + spare if one else 0.0), (two + spare if two else 0.0)
    rows = max(len(ins), len(outs))
    cells: list[Rect | Oval | Curve | Words] = []
    for names, x, wide in ((first, 0.0, one), (second, w - two, two)):
        for k, name in enumerate(names):
            y = title + k * _ROW
            cells += [Rect(x, y, wide, _ROW, _PORT, _BOX),
                      Words(x + wide / 2, y + 12, name, _SMALL)]  # fmt: skip
    h = title + rows * _ROW

    def places(names: list[str], prefix: str) -> dict[str, float]:
        return {f"{prefix}{k}": title + (k + 0.5) * _ROW for k in range(len(names))}

    return w, h, 0.0, cells, Box(w, h, places(ins, "i"), places(outs, "o"))


def _above(ins: list[str], outs: list[str], head: float, title: float, direction: str) -> _Made:
    """Parameters above and below the title."""
    wide = [[width(n, _SMALL) + 12 for n in x] for x in (ins, outs)]
    w = max(head, *map(sum, wide))
    first = (1, 0) if direction == "BT" else (0, 1)
    rows = [bool((ins, outs)[k]) for k in first]
    top = _ROW if rows[0] else 0.0
    h = title + _ROW * sum(rows)
    cells: list[Rect | Oval | Curve | Words] = []
    places: list[dict[str, float]] = [{}, {}]
    for k, y in zip(first, (0.0, top + title), strict=True):
        names = (ins, outs)[k]
        x, spare = 0.0, (w - sum(wide[k])) / (len(names) or 1)
        for j, name in enumerate(names):
            room = wide[k][j] + spare
            cells += [Rect(x, y, room, _ROW, _PORT, _BOX),
                      Words(x + room / 2, y + 12, name, _SMALL)]  # fmt: skip
            places[k]["io"[k] + str(j)] = x + room / 2
            x += room
    return w, h, top, cells, Box(h, w, *places)


def frame_width(label: str) -> float:
    """How wide the title of a frame is."""
    return width(line(label), _BIG)


def frame_title(label: str, x: float, y: float) -> Words:
    """The title of a frame."""
    return Words(x, y, line(label), _BIG, colour="#404060")


def legend(colours: Colours, most: float) -> tuple[list[Rect | Oval | Curve | Words], float, float]:
    """What every colour and line means, and what is not drawn: shapes, width and height.

    most: how wide it may be.
    """
    shapes: list[Rect | Oval | Curve | Words] = []
    x = y = wide = 0.0
    for key in colours.legend():
        room = 34 + width(key.text, _SMALL) + 18
        if x and x + room > most:
            x, y = 0.0, y + 18
        shapes += _swatch(key, x, y)
        shapes.append(Words(x + 34, y + 10, key.text, _SMALL, left=True))
        x += room
        wide = max(wide, x)
    y += 20 if shapes else 0
    for text in (line(t, 160) for t in colours.notes()):
        shapes.append(Words(0.0, y + 10, text, _SMALL, left=True))
        wide = max(wide, width(text, _SMALL))
        y += 14
    return shapes, wide, y


def _swatch(key, x: float, y: float) -> list[Rect | Oval | Curve | Words]:  # type: ignore[no-untyped-def]
    thick = 3.0 if key.thick and key.shape == "box" else 1.0
    if key.shape == "line":
        return [Curve(tuple((x + d, y + 7) for d in (0.0, 9.0, 18.0, 27.0)), key.line, key.dashed)]
    if key.shape == "oval":
        out: list[Rect | Oval | Curve | Words] = [Oval(x, y, 27, 13, key.fill, key.line)]
        return [*out, Oval(x + 3, y + 3, 21, 7, "none", key.line)] if key.thick else out
    if key.shape == "scale":
        halves = ((x, key.fill), (x + 9, "#f4f4f4"), (x + 18, key.fill2))
        return [*(Rect(at, y, 9, 13, fill) for at, fill in halves),
                Rect(x, y, 27, 13, "none", key.line)]  # fmt: skip
    round_ = 4.0 if key.shape == "frame" else 0.0
    fill = key.fill or ("none" if key.shape == "frame" else "#ffffff")
    return [Rect(x + 1, y, 25, 13, fill, key.line, thick, key.dashed, round_)]
