"""Where boxes go that are in layers, along the flow of data: one frame, without what is inside.

A layout of Sugiyama's kind: ranks by the longest path, an order within each rank that has few
crossings, then places that are as near to their neighbours as the order allows. Data flows along
the first axis, "along"; ranks are spread over the second one, "across".
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise

from engine.classes import dataclass

GAP, APART, LANE = 52.0, 20.0, 12.0  # between ranks, between boxes, between lines
_TURN = 26.0  # how far a line that leads back swings out
_SWEEPS = 8
MOST = 20_000  # places where lines pass ranks

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """Something to be placed. ins, outs: where lines come in and go out, across, from its edge."""

    along: float
    across: float
    ins: dict[str, float] = field(default_factory=dict)
    outs: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """A line between two boxes of a frame, by number and port; from or to its edge where None.

    For an edge of the frame the port is the name that the line has there.
    """

    tail: int | None
    tail_port: str
    head: int | None
    head_port: str


@dataclass(frozen=True, slots=True)
class Placed:
    """corners: of each box. lines: of each link, as points of cubic curves that hang together.

    ins, outs: where lines cross the edges of the frame, across.
    """

    along: float
    across: float
    corners: list[Point]
    lines: list[list[Point]]
    ins: dict[str, float]
    outs: dict[str, float]


class TooLarge(ValueError):
    """There is more to place than anyone could look at."""


class _Node:
    """A box, or a place where a line passes a rank."""

    __slots__ = ("after", "at", "before", "box", "rank", "size")

    def __init__(self, rank: int, size: float, box: int = -1) -> None:
        self.rank, self.size, self.box = rank, size, box
        self.at = 0.0
        # Neighbours in the ranks around: the node, and where both ends of the line are, across.
        self.before: list[tuple[_Node, float, float]] = []
        self.after: list[tuple[_Node, float, float]] = []


def ranks(count: int, links: Sequence[Link]) -> list[int]:
    """How far each box is from where data comes from. Boxes are in order; what leads back does not
    count.
    """
    onward: list[set[int]] = [set() for _ in range(count)]
    coming = [0] * count
    for x in links:
        if x.tail is not None and x.head is not None and x.tail < x.head:
            onward[x.tail].add(x.head)
        if x.head is not None and (x.tail is None or x.tail < x.head):
            coming[x.head] += 1
    rank = [0] * count
    for k in range(count):
        for n in onward[k]:
            rank[n] = max(rank[n], rank[k] + 1)
    for k in reversed(range(count)):  # what nothing leads to stands beside what reads it
        if not coming[k] and onward[k]:
            rank[k] = max(rank[k], min(rank[n] for n in onward[k]) - 1)
    return rank


def placed(boxes: Sequence[Box], links: Sequence[Link]) -> Placed:
    """Places boxes, which are in the order of the program, and the lines between them."""
    return _Layers(boxes, links).placed()


class _Layers:
    def __init__(self, boxes: Sequence[Box], links: Sequence[Link]) -> None:
        self.boxes, self.links = boxes, links
        rank = ranks(len(boxes), links)
        self.last = max(rank, default=0)
        self.nodes = [
            _Node(r, b.across, k) for k, (r, b) in enumerate(zip(rank, boxes, strict=True))
        ]
        self.columns: list[list[_Node]] = [[] for _ in range(self.last + 3)]  # edges first and last
        for n in self.nodes:
            self.columns[n.rank + 1].append(n)
        self.edges: dict[tuple[bool, str], _Node] = {}
        self.passing: dict[tuple[object, ...], _Node] = {}
        self.routes = [self._route(x) for x in links]

    # ---- nodes for lines

    def _edge(self, left: bool, name: str) -> _Node:
        key = (left, name)
        if key not in self.edges:
            self.edges[key] = n = _Node(-1 if left else self.last + 1, LANE)
            self.columns[0 if left else -1].append(n)
        return self.edges[key]

    def _pass(self, x: Link, rank: int) -> _Node:
        key = (x.tail, x.tail_port, rank)
        if key not in self.passing:
            if len(self.passing) >= MOST:
                raise TooLarge
            self.passing[key] = n = _Node(rank, LANE)
            self.columns[rank + 1].append(n)
        return self.passing[key]

    def _leads_back(self, x: Link) -> bool:
        if x.tail is None or x.head is None:
            return False
        return self.nodes[x.tail].rank >= self.nodes[x.head].rank

    def _route(self, x: Link) -> list[_Node]:
        tail = self._edge(True, x.tail_port) if x.tail is None else self.nodes[x.tail]
        head = self._edge(False, x.head_port) if x.head is None else self.nodes[x.head]
        if self._leads_back(x):
            return [tail, head]
        middle = [self._pass(x, r) for r in range(tail.rank + 1, head.rank)]
        route = [tail, *middle, head]
        for k, (a, b) in enumerate(pairwise(route)):
            out = self._offset(x, False) if k == 0 else LANE / 2
            into = self._offset(x, True) if k == len(route) - 2 else LANE / 2
            if any(n is b and o == out and i == into for n, o, i in a.after):
                continue
            a.after.append((b, out, into))
            b.before.append((a, into, out))
        return route

    def _offset(self, x: Link, head: bool) -> float:
        box, port = (x.head, x.head_port) if head else (x.tail, x.tail_port)
        if box is None:
            return LANE / 2
        known = self.boxes[box].ins if head else self.boxes[box].outs
        return known.get(port, self.boxes[box].across / 2)

    # ---- order

    def placed(self) -> Placed:
        self._order()
        self._spread()
        low = min((n.at for c in self.columns for n in c), default=0.0)
        for c in self.columns:
            for n in c:
                n.at -= low
        across = max((n.at + n.size for c in self.columns for n in c), default=0.0)
        lefts, widths, x = [], [], 0.0
        for c in self.columns:
            wide = max((self.boxes[n.box].along for n in c if n.box >= 0), default=0.0)
            lefts.append(x)
            widths.append(wide)
            x += wide + self._gap(len(lefts) - 1)
        along = lefts[-1]
        corners = [
            (lefts[n.rank + 1] + (widths[n.rank + 1] - b.along) / 2, n.at)
            for n, b in zip(self.nodes, self.boxes, strict=True)
        ]
        lanes = self._lanes()
        across = max((across, *(y + LANE / 2 for y in lanes.values())))
        lines = [
            self._line(k, route, lefts, widths, corners, lanes)
            for k, route in enumerate(self.routes)
        ]
        sides: tuple[dict[str, float], dict[str, float]] = ({}, {})
        for (left, name), n in self.edges.items():
            sides[0 if left else 1][name] = n.at + LANE / 2
        return Placed(along, across, corners, lines, *sides)

    def _gap(self, column: int) -> float:
        """The room behind a rank: more where many lines pass."""
        if column == 0 or column == len(self.columns) - 2:
            return 18.0 + (14.0 if any(map(self._leads_back, self.links)) else 0.0)
        return GAP + min(60.0, 2.5 * sum(len(n.after) for n in self.columns[column]))

    def _order(self) -> None:
        for c in self.columns:
            for k, n in enumerate(c):
                n.at = float(k)
        best, least = self.columns, _crossings(self.columns)
        columns = [list(c) for c in self.columns]
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for c in columns if down else columns[::-1]:
                keys = {}
                for k, n in enumerate(c):
                    near = n.before if down else n.after
                    # `at` is the place in its rank meanwhile.
                    known = [m.at + o / (m.size or 1) for m, _, o in near]
                    keys[n] = sum(known) / len(known) if known else float(k)
                c.sort(key=keys.__getitem__)
                for k, n in enumerate(c):
                    n.at = float(k)
            crossed = _crossings(columns)
            if crossed < least or sweep == 0:
                best, least = [list(c) for c in columns], crossed
        self.columns = best

    def _spread(self) -> None:
        """Places across: as near to neighbours as the order and the room between allow."""
        for c in self.columns:
            y = 0.0
            for n in c:
                n.at = y
                y += n.size + APART
        for sweep in range(2 * _SWEEPS):
            down = sweep % 2 == 0
            for c in self.columns if down else self.columns[::-1]:
                wanted, weights = [], []
                for n in c:
                    near = n.before if down else n.after
                    if sweep >= 2 * _SWEEPS - 3:
                        near = n.before + n.after
                    if not near:
                        wanted.append(n.at)
                        weights.append(0.05)
                        continue
                    pulls = [
                        (m.at + o - i, 8.0 if n.box < 0 and m.box < 0 else 1.0) for m, i, o in near
                    ]
                    total = sum(w for _, w in pulls)
                    wanted.append(sum(y * w for y, w in pulls) / total)
                    weights.append(total)
                _settle(c, wanted, weights)

    # ---- lines

    def _lanes(self) -> dict[int, float]:
        """Where lines that lead back run, by their links' numbers: below what they pass."""
        low = [max((n.at + n.size for n in c), default=0.0) for c in self.columns]
        lanes: dict[int, float] = {}
        known: dict[tuple[int | None, str, int], int] = {}
        back = [k for k, x in enumerate(self.links) if self._leads_back(x)]

        def ends(k: int) -> tuple[int, int]:
            tail, head = self.routes[k]
            return head.rank + 1, tail.rank + 1

        for k in sorted(back, key=lambda k: (ends(k)[1] - ends(k)[0], k)):
            first, last = ends(k)
            x = self.links[k]
            same = known.setdefault((x.tail, x.tail_port, first), k)
            if same == k:
                lanes[k] = max(low[first : last + 1]) + LANE
                low[first : last + 1] = [lanes[k]] * (last + 1 - first)
            else:
                lanes[k] = lanes[same]
        return lanes

    def _line(
        self, number: int, route: list[_Node], lefts: list[float], widths: list[float],
        corners: list[Point], lanes: dict[int, float],
    ) -> list[Point]:  # fmt: skip
        x = self.links[number]

        def left(n: _Node) -> float:
            return lefts[n.rank + 1]

        def right(n: _Node) -> float:
            return lefts[n.rank + 1] + widths[n.rank + 1]

        tail, head = route[0], route[-1]
        y, to = tail.at + self._offset(x, False), head.at + self._offset(x, True)
        begin = right(tail) if x.tail is None else corners[x.tail][0] + self.boxes[x.tail].along
        end = left(head) if x.head is None else corners[x.head][0]
        points: list[Point] = [(begin, y)]
        if number in lanes:
            lane, out, into = lanes[number], right(tail), left(head)
            _straight(points, (out, y))
            points += [(out + _TURN, y), (out + _TURN, lane), (out, lane)]
            _straight(points, (into, lane))
            points += [(into - _TURN, lane), (into - _TURN, to), (into, to)]
            _straight(points, (end, to))
            return points
        if x.tail is not None:
            _straight(points, (right(tail), y))
        for n in route[1:-1]:
            _curve(points, (left(n), n.at + LANE / 2))
            _straight(points, (right(n), n.at + LANE / 2))
        _curve(points, (left(head), to))
        _straight(points, (end, to))
        return points


def _straight(points: list[Point], to: Point) -> None:
    a = points[-1]
    if a != to:
        points += [a, to, to]


def _curve(points: list[Point], to: Point) -> None:
    a = points[-1]
    if abs(a[0] - to[0]) < 1e-9 and abs(a[1] - to[1]) < 1e-9:
        return
    bend = (to[0] - a[0]) / 2
    points += [(a[0] + bend, a[1]), (to[0] - bend, to[1]), to]


def _settle(column: Sequence[_Node], wanted: Sequence[float], weights: Sequence[float]) -> None:
    """The places nearest to those wanted, by weighted squares, that keep order and distance.

    With the room taken off that the nodes before need, places have to rise: pools of neighbours
    that do not are brought to their mean.
    """
    pools: list[list[float]] = []  # mean, weight, count
    room, rooms = 0.0, []
    for n, want, weight in zip(column, wanted, weights, strict=True):
        rooms.append(room)
        pools.append([want - room, weight, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, w, count = pools.pop()
            other = pools[-1]
            other[0] = (other[0] * other[1] + mean * w) / (other[1] + w)
            other[1] += w
            other[2] += count
        room += n.size + (APART if n.box >= 0 else LANE)
    at = iter(zip(column, rooms, strict=True))
    for mean, _, count in pools:
        for _ in range(int(count)):
            n, room = next(at)
            n.at = mean + room


def _crossings(columns: Iterable[Sequence[_Node]]) -> int:
    """How many pairs of lines cross between neighbouring ranks."""
    total = 0
    for c in columns:
        seen: list[float] = []
        for n in c:
            ends = sorted((i, m.at + o / (m.size or 1)) for m, i, o in n.before)
            total += sum(len(seen) - bisect_right(seen, e) for _, e in ends)
            for _, e in ends:
                insort(seen, e)
    return total
