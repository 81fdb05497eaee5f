"""Pictures of tapes: boxes in layers along the flow of data, in frames, with a legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise

from adtool.exits import ToolError
from adtool.figures.boxes import (
    Drawn,
    array_box,
    frame_title,
    frame_width,
    legend,
    operation_box,
)
from adtool.figures.layers import Box, Link, Placed, Point, TooLarge, placed
from adtool.figures.scene import Curve, Group, Rect, Scene, written
from engine.autograd import ArrayNode, Cluster, Colours, Graph, OperationNode, dot
from engine.classes import dataclass

FORMATS = ("dot", "svg", "png", "pdf")
_BOXES = 3000
_PAD, _TITLE, _MARGIN = 10.0, 22.0, 12.0
_LINE, _FRAME = "#606060", "#8080a0"


def drawn(graph: Graph, kind: str) -> bytes:
    """A picture in one of FORMATS. Raises ToolError where it is too large to be one."""
    if kind == "dot":
        return dot(graph).encode("utf-8")
    found = scene(graph)
    if found is None:
        raise ToolError(
            f"the picture is too large for a .{kind} file",
            "write a .dot file, or draw less (without --no-simplify; --failing)",
        )
    return written(found, kind)


def scene(graph: Graph) -> Scene | None:
    """The picture as shapes; None where there is too much to be drawn."""
    try:
        return _Picture(graph).scene()
    except TooLarge:
        return None


@dataclass(frozen=True, slots=True)
class _Frame:
    """The whole picture, or a frame in it. children: what is in it, in the program's order."""

    id: str
    label: str
    children: list[str] = field(default_factory=list)
    links: dict[Link, bool] = field(default_factory=dict)  # whether it is dashed
    named: dict[tuple[str, str, str, str], bool] = field(default_factory=dict)


class _Picture:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.colours = Colours(graph)
        self.boxes: dict[str, Drawn] = {}
        self.frames: dict[str, _Frame] = {"": _Frame("", "")}
        self.inside: dict[str, tuple[str, ...]] = {}  # the frames around each box, outermost first
        self.layouts: dict[str, Placed] = {}
        self.groups: dict[str, list[Group]] = {"cluster": [], "edge": [], "node": []}
        self.titles: dict[str, float] = {}  # the middle of each frame's title, from its left edge
        self.wide = graph.direction in ("LR", "RL")

    def scene(self) -> Scene:
        self._take(self.graph.items, ("",))
        for a in self.graph.arrays:
            drawn = array_box(a, self.colours.array(a), self.graph.direction)
            self._add(a.id, drawn, self._around(a))
        if len(self.boxes) > _BOXES:
            raise TooLarge
        self._connect()
        whole = self._laid("")
        along, across = whole.along, whole.across
        width, height = (along, across) if self.wide else (across, along)
        shapes, wide, tall = legend(self.colours, max(width, 420.0))
        self.size = along, across
        self._draw("", 0.0, 0.0)
        moved = [g for kind in ("cluster", "edge", "node") for g in self.groups[kind]]
        if shapes:
            moved.append(
                Group("legend", shapes=[_at(s, _MARGIN, height + 2 * _MARGIN) for s in shapes])
            )
        total = height + 2 * _MARGIN + (tall + _MARGIN if shapes else 0.0)
        return Scene(max(width, wide) + 2 * _MARGIN, total, moved)

    # ---- what is in which frame

    def _take(self, items: Sequence[OperationNode | Cluster], path: tuple[str, ...]) -> None:
        for item in items:
            self.frames[path[-1]].children.append(item.id)
            if isinstance(item, Cluster):
                self.frames[item.id] = _Frame(item.id, item.label)
                self.inside[item.id] = path
                self._take(item.items, (*path, item.id))
            else:
                fill = self.colours.operation(item)
                self.boxes[item.id] = operation_box(item, fill, self.graph.direction)
                self.inside[item.id] = path

    def _around(self, a: ArrayNode) -> tuple[str, ...]:
        return (*self.inside[a.cluster], a.cluster) if a.cluster in self.inside else ("",)

    def _add(self, name: str, box: Drawn, path: tuple[str, ...]) -> None:
        self.boxes[name] = box
        self.inside[name] = path
        self.frames[path[-1]].children.append(name)

    def _connect(self) -> None:
        """Cuts each line where it crosses the edges of frames."""
        for e in self.graph.edges:
            if e.tail not in self.boxes or e.head not in self.boxes:
                continue
            tail, head = self.inside[e.tail], self.inside[e.head]
            shared = 0
            while shared < min(len(tail), len(head)) and tail[shared] == head[shared]:
                shared += 1
            name = f"{e.tail}:{e.tail_port}"
            ends: tuple[str, ...] = (*tail, e.tail)
            last: tuple[str, ...] = (*head, e.head)
            dashed = e.kind == "view"

            def port(path: tuple[str, ...], depth: int, own: str, name: str = name) -> str:
                return own if depth == len(path) - 1 else name

            for depth in range(shared, len(tail)):
                out = port(ends, depth + 1, e.tail_port)
                self._name(tail[depth], ends[depth + 1], out, "", name, dashed)
            self._name(
                tail[shared - 1], ends[shared], port(ends, shared, e.tail_port),
                last[shared], port(last, shared, e.head_port), dashed,
            )  # fmt: skip
            for depth in range(shared, len(head)):
                into = port(last, depth + 1, e.head_port)
                self._name(head[depth], "", name, last[depth + 1], into, dashed)

    def _name(
        self, frame: str, tail: str, tail_port: str, head: str, head_port: str, dashed: bool
    ) -> None:
        self.frames[frame].named.setdefault((tail, tail_port, head, head_port), dashed)

    # ---- where things are

    def _laid(self, name: str) -> Placed:
        """Places what is in a frame, after what is in the frames of it."""
        frame = self.frames[name]
        for child in frame.children:
            if child in self.frames:
                inner = self._laid(child)
                self.boxes[child] = self._framed(child, inner)
        order = _ordered(frame, self.boxes, self.frames)
        frame.children[:] = order
        number = {child: k for k, child in enumerate(order)}
        for (tail, tail_port, head, head_port), dashed in frame.named.items():
            link = Link(number.get(tail), tail_port, number.get(head), head_port)
            frame.links.setdefault(link, dashed)
        self.layouts[name] = found = placed([self.boxes[c].box for c in order], list(frame.links))
        return found

    def _framed(self, name: str, inner: Placed) -> Drawn:
        """A frame as a box of the one around it. Its title is at the top, wherever that is."""
        first, before = (0.0, _TITLE) if self.wide else (_TITLE, _PAD)
        if self.graph.direction == "BT":
            first = 0.0
        words = frame_width(self.frames[name].label)
        along = inner.along + (0.0 if self.wide else _TITLE)
        across = inner.across + before + _PAD
        if self.wide:
            along = max(along, words + 16)
            self.titles[name] = along / 2
        ins = {k: v + before for k, v in inner.ins.items()}
        outs = {k: v + before for k, v in inner.outs.items()}
        if not self.wide:  # lines come in, or go out, through the room of the title
            lines = outs if self.graph.direction == "BT" else ins
            self.titles[name], across = _beside(lines.values(), words, across)
        box = Box(along, across, ins, outs)
        return Drawn(box, Group("cluster", name), (first, before))

    def _draw(self, name: str, along: float, across: float) -> None:
        frame, layout = self.frames[name], self.layouts[name]
        for link, points in zip(frame.links, layout.lines, strict=True):
            at = tuple(self._point(x + along, y + across) for x, y in points)
            # A line that stops at the edge of a frame goes on within it.
            leaf = link.head is not None and frame.children[link.head] not in self.frames
            dashed = frame.links[link]
            self.groups["edge"].append(
                Group("edge", shapes=[Curve(at, _LINE, dashed, leaf and not dashed)])
            )
        for child, (x, y) in zip(frame.children, layout.corners, strict=True):
            drawn = self.boxes[child]
            corner = self._corner(x + along, y + across, drawn.box)
            if child in self.frames:
                self._frame(child, corner, drawn)
                self._stubs(child, x + along, y + across, drawn)
                self._draw(child, x + along + drawn.inner[0], y + across + drawn.inner[1])
                continue
            shapes = [_at(s, *corner) for s in drawn.group.shapes]
            self.groups["node"].append(Group("node", child, drawn.group.about, shapes))

    def _frame(self, name: str, corner: Point, drawn: Drawn) -> None:
        width, height = drawn.box.along, drawn.box.across
        if not self.wide:
            width, height = height, width
        rect = Rect(*corner, width, height, "none", _FRAME, round=8.0)
        words = frame_title(self.frames[name].label, corner[0] + self.titles[name], corner[1] + 15)
        self.groups["cluster"].append(Group("cluster", name, shapes=[rect, words]))

    def _stubs(self, name: str, along: float, across: float, drawn: Drawn) -> None:
        """Lines through a frame's own room: beside its title, or where that is wider."""
        inner, frame = self.layouts[name], self.frames[name]
        begin, end = drawn.inner[0], drawn.inner[0] + inner.along
        for places, first, last in ((inner.ins, 0.0, begin), (inner.outs, end, drawn.box.along)):
            for port, y in places.items():
                if last - first < 0.5:
                    continue
                y += across + drawn.inner[1]
                a, b = self._point(along + first, y), self._point(along + last, y)
                dashed = any(
                    d for x, d in frame.links.items() if port in (x.tail_port, x.head_port)
                )
                self.groups["edge"].append(
                    Group("edge", shapes=[Curve((a, a, b, b), _LINE, dashed)])
                )

    def _point(self, along: float, across: float) -> Point:
        whole = self.size[0]
        direction = self.graph.direction
        if direction in ("RL", "BT"):
            along = whole - along
        x, y = (along, across) if self.wide else (across, along)
        return x + _MARGIN, y + _MARGIN

    def _corner(self, along: float, across: float, box: Box) -> Point:
        """The upper left corner of a box."""
        if self.graph.direction in ("RL", "BT"):
            along += box.along
        return self._point(along, across)


def _beside(lines: Iterable[float], words: float, across: float) -> tuple[float, float]:
    """The middle of a title that no line crosses, and how wide its frame is then.

    lines: where lines cross the room of the title. words: how wide it is. across: how wide the
    frame is without it.
    """
    room = words + 2 * _PAD
    at = sorted(lines)
    edges = [-_PAD / 2, *at, max(across, room) + _PAD / 2]
    free = [(a + b) / 2 for a, b in pairwise(edges) if b - a >= room]
    across = max(across, words + 16)
    if free:
        return min(free, key=lambda x: abs(x - across / 2)), across
    end = at[-1] + room
    return end - room / 2, max(across, end)


def _ordered(frame: _Frame, boxes: dict[str, Drawn], frames: dict[str, _Frame]) -> list[str]:
    """What is in a frame, in the order of the program: arrays where fewest lines lead back."""
    steps = [c for c in frame.children if c in frames or boxes[c].operation]
    at = {c: k for k, c in enumerate(steps)}
    writers: dict[str, list[int]] = {}
    readers: dict[str, list[int]] = {}
    for tail, _, head, _ in frame.named:
        if tail in at and head and head not in at:
            writers.setdefault(head, []).append(at[tail])
        elif head in at and tail and tail not in at:
            readers.setdefault(tail, []).append(at[head])
    cuts = {}
    for c in frame.children:
        if c not in at:
            cuts[c] = _cut(sorted(writers.get(c, ())), sorted(readers.get(c, ())))
    order = {c: (float(k), 1) for c, k in at.items()} | {c: (float(k), 0) for c, k in cuts.items()}
    place = {c: k for k, c in enumerate(frame.children)}
    return sorted(frame.children, key=lambda c: (order[c], place[c]))


def _cut(writers: list[int], readers: list[int]) -> int:
    """Before which step an array stands: the fewest readers before it and writers after it."""
    if not writers:
        return readers[0] if readers else 0
    choices = [w + 1 for w in writers] + ([readers[0]] if readers else [])

    def back(k: int) -> int:
        return sum(w >= k for w in writers) + sum(r < k for r in readers)

    # Among equals after a step that writes it: what comes out of a loop leads on.
    return min(choices, key=lambda k: (back(k), k == (readers[0] if readers else -1), k))


def _at(shape, x: float, y: float):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    if isinstance(shape, Curve):
        return replace(shape, points=tuple((a + x, b + y) for a, b in shape.points))
    return replace(shape, x=shape.x + x, y=shape.y + y)
