"""A drawing as shapes and words, and how it is written: as SVG, PNG or PDF.

Positions are in points from the upper left corner. Words are set in DejaVu Sans, which comes with
matplotlib: their widths are known, so that what is drawn around them fits.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import field
from functools import cache
from typing import Any
from xml.etree import ElementTree

from engine.classes import dataclass

Point = tuple[float, float]

_FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
_SVG = "http://www.w3.org/2000/svg"
_WIDE = 1.0  # of a character that the font has not, in parts of its size
DPI = 144
_PIXELS = 30_000  # of a PNG's side


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle; round: the radius of its corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str = "none"
    line: str = "none"
    thick: float = 1.0
    dashed: bool = False
    round: float = 0.0


@dataclass(frozen=True, slots=True)
class Oval:
    """An ellipse in a rectangle."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    line: str
    thick: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """Cubic curves that hang together: the first point, then three for each. arrow: at its end."""

    points: tuple[Point, ...]
    line: str
    dashed: bool = False
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text. x, y: its middle (or its left, with `left`) on the base line."""

    x: float
    y: float
    text: str
    size: float = 11.0
    bold: bool = False
    left: bool = False
    colour: str = "#101010"


@dataclass(frozen=True, slots=True)
class Group:
    """Shapes that are one thing. kind: node, cluster or edge. about: to be read on demand."""

    kind: str
    id: str = ""
    about: str = ""
    shapes: list[Rect | Oval | Curve | Words] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scene:
    """A drawing. Later groups are above earlier ones."""

    width: float
    height: float
    groups: Sequence[Group]


@cache
def _face(bold: bool) -> Any:
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font

    face = FT2Font(
        findfont(FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal"))
    )
    face.set_size(100.0, 72)
    return face


@cache
def _advance(character: str, bold: bool) -> float:
    face = _face(bold)
    index = face.get_char_index(ord(character))
    return face.load_glyph(index).linearHoriAdvance / 65536 / 100 if index else _WIDE


def width(text: str, size: float, bold: bool = False) -> float:
    """How wide a line of text is."""
    return size * sum(_advance(c, bold) for c in text)


# ---- SVG


def svg(scene: Scene) -> ElementTree.Element:
    """The drawing as an `<svg>` element without a namespace, fit to stand in a page."""
    root = ElementTree.Element(
        "svg", {"viewBox": f"0 0 {scene.width:.0f} {scene.height:.0f}", "font-family": _FONT}
    )
    for group in scene.groups:
        g = ElementTree.SubElement(root, "g", {"class": f"g-{group.kind}"})
        if group.id:
            g.set("data-node", group.id)
        if group.about:
            ElementTree.SubElement(g, "title").text = group.about
        for shape in group.shapes:
            _element(g, shape)
    return root


def svg_text(scene: Scene) -> str:
    """The drawing as a file of its own."""
    root = svg(scene)
    root.set("xmlns", _SVG)
    root.set("width", f"{scene.width:.0f}pt")
    root.set("height", f"{scene.height:.0f}pt")
    paper = ElementTree.Element("rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
    root.insert(0, paper)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _element(parent: ElementTree.Element, shape: Rect | Oval | Curve | Words) -> None:
    def add(tag: str, **values: object) -> ElementTree.Element:
        given = {
            k.replace("_", "-"): f"{v:.4g}" if isinstance(v, float) and abs(v) < 100
            else f"{v:.1f}" if isinstance(v, float) else str(v)
            for k, v in values.items() if v is not None
        }  # fmt: skip
        return ElementTree.SubElement(parent, tag, given)

    if isinstance(shape, Words):
        add(
            "text", x=shape.x, y=shape.y, font_size=shape.size, fill=shape.colour,
            font_weight="bold" if shape.bold else None,
            text_anchor=None if shape.left else "middle",
        ).text = shape.text  # fmt: skip
        return
    dash = "4 3" if shape.dashed else None
    if isinstance(shape, Curve):
        (x, y), *rest = shape.points
        d = f"M{x:.1f} {y:.1f}C" + " ".join(f"{a:.1f} {b:.1f}" for a, b in rest)
        add("path", d=d, fill="none", stroke=shape.line, stroke_dasharray=dash)
        if shape.arrow:
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in _head(shape.points))
            add("polygon", points=points, fill=shape.line)
    elif isinstance(shape, Rect):
        add(
            "rect", x=shape.x, y=shape.y, width=shape.width, height=shape.height, fill=shape.fill,
            stroke=shape.line, stroke_width=shape.thick if shape.thick != 1 else None,
            stroke_dasharray=dash, rx=shape.round or None,
        )  # fmt: skip
    else:
        add(
            "ellipse", cx=shape.x + shape.width / 2, cy=shape.y + shape.height / 2,
            rx=shape.width / 2, ry=shape.height / 2, fill=shape.fill, stroke=shape.line,
            stroke_width=shape.thick if shape.thick != 1 else None, stroke_dasharray=dash,
        )  # fmt: skip


def _head(points: Sequence[Point]) -> list[Point]:
    """The arrow at the end of a curve: along its last direction that is one."""
    (x, y), back = points[-1], next((p for p in points[-2::-1] if p != points[-1]), (0.0, 0.0))
    dx, dy = x - back[0], y - back[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    dx, dy = dx / length, dy / length
    return [(x, y), (x - 7 * dx - 3.2 * dy, y - 7 * dy + 3.2 * dx),
            (x - 7 * dx + 3.2 * dy, y - 7 * dy - 3.2 * dx)]  # fmt: skip


# ---- PNG and PDF


def written(scene: Scene, kind: str) -> bytes:
    """The drawing as a file: svg, png or pdf. The same drawing gives the same bytes."""
    if kind == "svg":
        return svg_text(scene).encode("utf-8", "replace")
    import matplotlib

    out = io.BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters that the font has not
        matplotlib.rcdefaults()
        dpi = min(DPI, 72 * _PIXELS / max(scene.width, scene.height))
        _painted(scene).savefig(
            out, format=kind, dpi=dpi, metadata={"CreationDate": None} if kind == "pdf" else None
        )
    return out.getvalue()


def _painted(scene: Scene) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(scene.width / 72, scene.height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    order = 0
    for group in scene.groups:
        for shape in group.shapes:
            order += 1
            _paint(axes, shape, order)
    return figure


def _paint(axes: Any, shape: Rect | Oval | Curve | Words, order: int) -> None:
    from matplotlib import patches
    from matplotlib import path as paths

    if isinstance(shape, Words):
        axes.text(
            shape.x, shape.y, shape.text, fontsize=shape.size, color=shape.colour, zorder=order,
            ha="left" if shape.left else "center", va="baseline", parse_math=False,
            fontfamily="DejaVu Sans", weight="bold" if shape.bold else "normal",
        )  # fmt: skip
        return
    style: dict[str, Any] = {"edgecolor": shape.line, "zorder": order,
                             "linestyle": (0, (4, 3)) if shape.dashed else "-"}  # fmt: skip
    if isinstance(shape, Curve):
        codes = [paths.Path.MOVETO] + [paths.Path.CURVE4] * (len(shape.points) - 1)
        path = paths.Path(list(shape.points), codes)
        axes.add_patch(patches.PathPatch(path, facecolor="none", linewidth=1.0, **style))
        if shape.arrow:
            head = _head(shape.points)
            axes.add_patch(patches.Polygon(head, facecolor=shape.line, linewidth=0, zorder=order))
        return
    style |= {"facecolor": shape.fill, "linewidth": shape.thick}
    if isinstance(shape, Oval):
        middle = (shape.x + shape.width / 2, shape.y + shape.height / 2)
        axes.add_patch(patches.Ellipse(middle, shape.width, shape.height, **style))
    elif shape.round:
        axes.add_patch(
            patches.FancyBboxPatch(
                (shape.x, shape.y), shape.width, shape.height,
                boxstyle=f"round,pad=0,rounding_size={shape.round}", **style,
            )
        )  # fmt: skip
    else:
        axes.add_patch(patches.Rectangle((shape.x, shape.y), shape.width, shape.height, **style))
