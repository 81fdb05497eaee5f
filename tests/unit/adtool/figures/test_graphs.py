"""Pictures of tapes: where boxes, frames and lines are, what the legend says, what files hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal
from xml.etree import ElementTree

import pytest

from adtool.exits import ToolError
from adtool.figures import graphs, layers
from adtool.figures.scene import Curve, Group, Oval, Rect, Scene, Words, svg, width, written
from engine.autograd import ArrayNode, Cluster, Edge, Graph, Mark, OperationNode

Direction = Literal["LR", "RL", "TB", "BT"]
DIRECTIONS: tuple[Direction, ...] = ("LR", "RL", "TB", "BT")
Frames = dict[str, tuple[str, ...]]


def some_graph(seed: int, direction: Direction) -> tuple[Graph, Frames]:
    """A random picture, and the frames around each box and frame of it."""
    dice = random.Random(seed)
    around: Frames = {}
    names: list[str] = []

    def items(depth: int, path: tuple[str, ...]) -> Iterator[OperationNode | Cluster]:
        for _ in range(dice.randint(1, 4)):
            if depth < 3 and dice.random() < 0.3:
                name = f"cluster_{len(around)}"
                around[name] = path
                label = "a scope of a long name " * dice.randint(0, 2) or "s"
                yield Cluster(name, label, tuple(items(depth + 1, (*path, name))))
            else:
                name = f"op{len(around)}"
                around[name] = path
                names.append(name)
                ports = [tuple(f"p{k}" * dice.randint(1, 3) for k in range(dice.randint(0, 5)))
                         for _ in range(2)]  # fmt: skip
                mark = dice.choice((None, Mark("error", "G001 wrong"), Mark("gradient", "2", 2.0)))
                yield OperationNode(name, "kernel" * dice.randint(1, 3), ("dim 3",), "launch",
                                    *ports, mark, (len(names),), dice.random() < 0.1)  # fmt: skip

    made = tuple(items(0, ()))
    known = {x.id: x for x in _operations(made)}
    arrays, edges = [], []
    for k in range(dice.randint(1, 12)):
        name = f"a{k}"
        writers = dice.sample(names, dice.randint(0, min(2, len(names))))
        readers = dice.sample(names, dice.randint(0, min(3, len(names))))
        path: tuple[str, ...] = ()
        if writers:
            paths = [around[w] for w in writers]
            while all(len(p) > len(path) and p[: len(path) + 1] == paths[0][: len(path) + 1]
                      for p in paths):  # fmt: skip
                path = paths[0][: len(path) + 1]
        around[name] = path
        mark = dice.choice((None, Mark("unreached", "none"), Mark("gradient", "|grad| 3", 30.0)))
        arrays.append(ArrayNode(
            name, f"state[{k}]", ("vec3f[4]",), dice.random() < 0.5,
            dice.choice(("", "", "input")), mark, (k,), path[-1] if path else "",
        ))  # type: ignore[arg-type]  # fmt: skip
        edges += [Edge(w, name, tail_port=f"o{dice.randrange(len(known[w].outputs))}")
                  for w in writers if known[w].outputs]  # fmt: skip
        edges += [Edge(name, r, head_port=f"i{dice.randrange(len(known[r].inputs))}")
                  for r in readers if known[r].inputs]  # fmt: skip
        if k and dice.random() < 0.2:
            edges.append(Edge("a0", name, kind="view"))
    return Graph(direction, tuple(arrays), made, tuple(dict.fromkeys(edges))), around


def _operations(items: tuple[OperationNode | Cluster, ...]) -> Iterator[OperationNode]:
    for x in items:
        if isinstance(x, Cluster):
            yield from _operations(x.items)
        else:
            yield x


Bounds = tuple[float, float, float, float]


def bounds(group: Group) -> Bounds:
    """Left, top, right and bottom of what is not text."""
    found = [s for s in group.shapes if isinstance(s, Rect | Oval)]
    return (
        min(s.x for s in found), min(s.y for s in found),
        max(s.x + s.width for s in found), max(s.y + s.height for s in found),
    )  # fmt: skip


def within(inner: Bounds, outer: Bounds) -> bool:
    return (inner[0] >= outer[0] and inner[1] >= outer[1]
            and inner[2] <= outer[2] and inner[3] <= outer[3])  # fmt: skip


def apart(a: Bounds, b: Bounds) -> bool:
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def leads(lines: list[Curve], start: Bounds, end: Bounds) -> bool:
    """Whether lines that hang together lead from the edge of one box to that of another."""

    def at(p: tuple[float, float], box: Bounds) -> bool:
        return box[0] - 1 <= p[0] <= box[2] + 1 and box[1] - 1 <= p[1] <= box[3] + 1

    reached = [c for c in lines if at(c.points[0], start)]
    seen = set(map(id, reached))
    while reached:
        c = reached.pop()
        if at(c.points[-1], end):
            return True
        for other in lines:
            near = max(abs(u - v) for u, v in zip(c.points[-1], other.points[0], strict=True))
            if id(other) not in seen and near < 0.01:
                seen.add(id(other))
                reached.append(other)
    return False


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(25))
def test_where_everything_is(seed: int, direction: Direction) -> None:
    graph, around = some_graph(seed, direction)
    scene = graphs.scene(graph)
    assert scene is not None
    boxes = {g.id: bounds(g) for g in scene.groups if g.id}
    assert set(boxes) == set(around)
    lines = [s for g in scene.groups if g.kind == "edge" for s in g.shapes if isinstance(s, Curve)]
    for a, path in around.items():
        assert within(boxes[a], (0.0, 0.0, scene.width, scene.height))
        for b, other in around.items():
            if a in other:
                assert within(boxes[b], boxes[a]), f"{b} is in {a}"
            elif a < b and b not in path:
                assert apart(boxes[a], boxes[b]), (a, b)
    for e in graph.edges:
        assert leads(lines, boxes[e.tail], boxes[e.head]), e
    for g in scene.groups:
        if g.kind in ("node", "cluster"):
            left, top, right, bottom = bounds(g)
            for s in g.shapes:
                if isinstance(s, Words):
                    half = width(s.text, s.size, s.bold) / 2
                    assert left <= s.x - half and s.x + half <= right, s.text
                    assert top <= s.y - 0.7 * s.size and s.y <= bottom, s.text
    assert all(0 <= x <= scene.width and 0 <= y <= scene.height for c in lines for x, y in c.points)
    for g in scene.groups:
        for s in g.shapes if g.kind == "cluster" else ():
            if isinstance(s, Words):
                assert not any(crosses(c, s) for c in lines), s.text


def crosses(curve: Curve, words: Words) -> bool:
    """Whether a curve goes through a line of text."""
    half = width(words.text, words.size, words.bold) / 2
    points = curve.points
    for k in range(0, len(points) - 1, 3):
        ends = points[k : k + 4]
        for n in range(65):
            t = n / 64
            parts = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x, y = (sum(w * p[i] for w, p in zip(parts, ends, strict=True)) for i in (0, 1))
            if abs(x - words.x) < half and words.y - 0.7 * words.size < y < words.y:
                return True
    return False


def chain(steps: int, marks: dict[int, Mark] | None = None) -> Graph:
    """Arrays and operations that follow one another."""
    known = marks or {}
    arrays = tuple(ArrayNode(f"a{k}", f"x{k}", (), True, members=(k,)) for k in range(steps + 1))
    boxes = tuple(
        OperationNode(f"op{k}", "step", (), "launch", ("x",), ("y",), known.get(k), (k,), k == 1)
        for k in range(steps)
    )
    edges = [
        e for k in range(steps)
        for e in (Edge(f"a{k}", f"op{k}", head_port="i0"), Edge(f"op{k}", f"a{k + 1}", "o0"))
    ]  # fmt: skip
    return Graph("LR", arrays, boxes, tuple(edges))


def test_data_flows_one_way() -> None:
    scene = graphs.scene(chain(6))
    assert scene is not None
    left = {g.id: bounds(g)[0] for g in scene.groups if g.id}
    order = [n for k in range(6) for n in (f"a{k}", f"op{k}")] + ["a6"]
    assert [left[n] for n in order] == sorted(left.values())


def test_where_nan_begins_looks_unlike_what_follows_from_it() -> None:
    marks = {k: Mark("nonfinite", "gradient not finite") for k in (0, 1, 2)}
    scene = graphs.scene(chain(3, marks))
    assert scene is not None
    thick = {
        g.id: max(s.thick for s in g.shapes if isinstance(s, Rect))
        for g in scene.groups if g.id.startswith("op")
    }  # fmt: skip
    assert thick["op1"] > thick["op0"] == thick["op2"]
    assert "thick line: the first problem" in texts(scene)


def texts(scene: Scene) -> list[str]:
    return [s.text for g in scene.groups for s in g.shapes if isinstance(s, Words)]


@pytest.mark.parametrize("seed", range(25))
def test_the_legend_has_every_colour_and_line(seed: int) -> None:
    graph, _ = some_graph(seed, "LR")
    scene = graphs.scene(graph)
    assert scene is not None
    legend = next(g for g in scene.groups if g.kind == "legend")
    words = " ".join(s.text for s in legend.shapes if isinstance(s, Words))
    nodes = [s for g in scene.groups if g.kind == "node" for s in g.shapes]
    fills = {s.fill for s in nodes if isinstance(s, Rect | Oval)}
    for colour, word in (("#d9d9d9", "grey"), ("#b7e1a1", "green"), ("#f4a3a0", "red"),
                         ("#d8a6e8", "purple"), ("#f8dc81", "yellow")):  # fmt: skip
        assert (f"{word}: " in words) == (colour in fills), (word, words)
    assert ("grey box: " in words) == ("#e0e0e0" in fills)
    known = {"#d9d9d9", "#b7e1a1", "#f4a3a0", "#ffffff", "#e0e0e0", "#f4f4f4", "none"}
    assert ("blue to orange" in words) == bool(fills - known)
    assert ("white, dashed" in words) == any(
        s.dashed and s.fill == "#ffffff" for s in nodes if isinstance(s, Oval)
    )
    assert ("frame: " in words) == any(g.kind == "cluster" for g in scene.groups)
    lines = [s for g in scene.groups if g.kind == "edge" for s in g.shapes]
    assert ("dashed line: " in words) == any(getattr(s, "dashed", False) for s in lines)
    borders = {s.line for s in nodes if isinstance(s, Oval)}
    assert ("green" in words) == ("#3c7a22" in borders)


@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_files_are_the_same_for_the_same_picture(kind: str, start: bytes) -> None:
    graph, _ = some_graph(3, "LR")
    one = graphs.drawn(graph, kind)
    assert one.startswith(start)
    assert graphs.drawn(graph, kind) == one


def test_names_of_the_users_are_text() -> None:
    bad = "<b>&\u202e$x_1$\x1b\u4e2d"
    graph = Graph("LR", (ArrayNode("a0", bad, (bad,), True, about=bad),), (), ())
    scene = graphs.scene(graph)
    assert scene is not None
    text = graphs.drawn(graph, "svg").decode()
    root = ElementTree.fromstring(text.encode())
    assert any(t.startswith("<b>&") and t.endswith("\u4e2d") for t in root.itertext())
    assert not set(text) & set("\u202e\x1b")
    assert graphs.drawn(graph, "png").startswith(b"\x89PNG")  # $ is no mathematics


def test_a_long_chain_is_drawn_and_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = graphs.scene(chain(1000))
    assert scene is not None
    assert written(scene, "png").startswith(b"\x89PNG")
    assert svg(scene).tag == "svg"
    for name, value in (("_BOXES", 10), ("MOST", 3)):
        with monkeypatch.context() as patch:
            patch.setattr(graphs if name == "_BOXES" else layers, name, value)
            graph = chain(10)
            if name == "MOST":  # lines that pass many boxes
                longer = [Edge("a0", f"op{k}", head_port="i0") for k in range(2, 10)]
                graph = Graph("LR", graph.arrays, graph.items, (*graph.edges, *longer))
            assert graphs.scene(graph) is None
            with pytest.raises(ToolError, match="too large") as caught:
                graphs.drawn(graph, "png")
            assert ".dot" in caught.value.help
            assert graphs.drawn(graph, "dot").startswith(b"digraph")
