"""A plain picture of a tape for machines without Graphviz: boxes in layers, left to right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from adtool.page.words import visible
from engine.autograd import ArrayNode, Cluster, Graph, OperationNode

LIMIT = 300  # nodes
_WIDTH, _GAP, _ROW = 150.0, 60.0, 16.0
_LABEL = 22  # characters
_FILL = {"error": "#f4a3a0", "nonfinite": "#d8a6e8", "warning": "#f8dc81", "unreached": "#ffffff"}
_ARRAY, _WANTS, _OPERATION = "#d9d9d9", "#b7e1a1", "#e0e0e0"


def operations(items: Sequence[OperationNode | Cluster]) -> Iterator[OperationNode]:
    """All operations of a picture, those in frames too."""
    for item in items:
        if isinstance(item, Cluster):
            yield from operations(item.items)
        else:
            yield item


def drawn(graph: Graph) -> tuple[ElementTree.Element, float, float] | None:
    """The picture, its width and height; None where there are more than LIMIT nodes."""
    nodes: dict[str, ArrayNode | OperationNode] = {a.id: a for a in graph.arrays}
    nodes |= {x.id: x for x in operations(graph.items)}
    if not nodes or len(nodes) > LIMIT:
        return None
    edges = [(e.tail, e.head) for e in graph.edges if e.tail in nodes and e.head in nodes]
    places, width, height = _placed(nodes, _layers(list(nodes), edges))
    root = ElementTree.Element("svg", {"viewBox": f"0 0 {width:.0f} {height:.0f}"})
    for tail, head in edges:
        _edge(root, places[tail], places[head])
    for key, node in nodes.items():
        _box(root, node, places[key])
    return root, width, height


def _layers(names: list[str], edges: list[tuple[str, str]]) -> dict[str, int]:
    """How far each node is from where data comes from; what leads back in a loop is left out."""
    onward: dict[str, list[str]] = {n: [] for n in names}
    for tail, head in edges:
        onward[tail].append(head)
    coming = {head for _, head in edges}
    state: dict[str, int] = {}
    order: list[str] = []
    back: set[tuple[str, str]] = set()
    for start in sorted(names, key=lambda n: n in coming):
        stack = [(start, iter(onward[start]))] if start not in state else []
        state.setdefault(start, 1)
        while stack:
            at, rest = stack[-1]
            for n in rest:
                if n not in state:
                    state[n] = 1
                    stack.append((n, iter(onward[n])))
                    break
                if state[n] == 1:
                    back.add((at, n))
            else:
                state[at] = 2
                order.append(at)
                stack.pop()
    layer = dict.fromkeys(names, 0)
    for n in reversed(order):
        for m in onward[n]:
            if (n, m) not in back:
                layer[m] = max(layer[m], layer[n] + 1)
    return layer


_Place = tuple[float, float, float]  # left, top, height


def _placed(
    nodes: dict[str, ArrayNode | OperationNode], layer: dict[str, int]
) -> tuple[dict[str, _Place], float, float]:
    columns: dict[int, list[str]] = {}
    for key, k in layer.items():
        columns.setdefault(k, []).append(key)
    places: dict[str, _Place] = {}
    height = 0.0
    for k, keys in columns.items():
        y = 10.0
        for key in keys:
            tall = _ROW * (1 + len(_lines(nodes[key]))) + 10
            places[key] = (10 + k * (_WIDTH + _GAP), y, tall)
            y += tall + 18
        height = max(height, y)
    for keys in columns.values():  # in the middle
        last = places[keys[-1]]
        lower = (height - last[1] - last[2] - 10) / 2
        for key in keys:
            x, y, tall = places[key]
            places[key] = (x, y + lower, tall)
    return places, 20 + (max(columns) + 1) * (_WIDTH + _GAP) - _GAP, height


def _lines(node: ArrayNode | OperationNode) -> list[str]:
    mark = [node.mark.text] if node.mark is not None and node.mark.text else []
    return [*node.lines, *mark]


def _edge(root: ElementTree.Element, a: _Place, b: _Place) -> None:
    x, y = a[0] + _WIDTH, a[1] + a[2] / 2
    to, down = b[0], b[1] + b[2] / 2
    bend = max(30.0, abs(to - x) / 2)
    path = f"M{x:.1f} {y:.1f}C{x + bend:.1f} {y:.1f} {to - bend:.1f} {down:.1f} {to:.1f} {down:.1f}"
    ElementTree.SubElement(root, "path", {"d": path, "fill": "none", "stroke": "#606060"})
    points = f"{to - 7:.1f},{down - 3.5:.1f} {to:.1f},{down:.1f} {to - 7:.1f},{down + 3.5:.1f}"
    ElementTree.SubElement(root, "polygon", {"points": points, "fill": "#606060"})


def _box(root: ElementTree.Element, node: ArrayNode | OperationNode, place: _Place) -> None:
    x, y, tall = place
    operation = isinstance(node, OperationNode)
    fill = _OPERATION if operation else _WANTS if getattr(node, "requires_grad", False) else _ARRAY
    if node.mark is not None:
        fill = _FILL.get(node.mark.level, fill)
    g = ElementTree.SubElement(root, "g", {"class": "g-node", "data-node": node.id})
    title = ElementTree.SubElement(g, "title")
    detail = "" if node.mark is None else node.mark.detail or node.mark.text
    title.text = visible(node.label + (f": {detail}" if detail else ""))
    ElementTree.SubElement(
        g, "rect",
        {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": str(_WIDTH), "height": f"{tall:.1f}",
         "rx": "2" if operation else "14", "fill": fill, "stroke": "#707070"},
    )  # fmt: skip
    for k, line in enumerate((node.label, *_lines(node))):
        text = ElementTree.SubElement(
            g, "text",
            {"x": f"{x + _WIDTH / 2:.1f}", "y": f"{y + 17 + k * _ROW:.1f}", "text-anchor": "middle",
             "font-size": "12" if k == 0 else "10", "font-weight": "normal" if k else "bold"},
        )  # fmt: skip
        shown = visible(line)
        text.text = shown if len(shown) <= _LABEL else shown[: _LABEL - 1] + "\u2026"
