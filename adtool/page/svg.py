"""Cleans SVG from another program: only shapes and words are kept."""

from __future__ import annotations

import re
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}title"
_SHAPES = {"svg", "g", "polygon", "polyline", "path", "ellipse", "circle", "rect", "line", "text",
           "tspan", "title", "a"}  # fmt: skip
_ATTRIBUTES = {
    "viewBox", "transform", "points", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx",
    "ry", "width", "height", "fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity",
    "stroke-opacity", "font-size", "font-weight", "font-style", "text-anchor", "textLength",
}  # fmt: skip
_PLAIN = re.compile(r"[\w\s.,+\-()#%]*")  # no quotes, no `url(`, no colons
_PIXELS = 1.33  # of a point


class SvgError(ValueError):
    """A text is no SVG that can be used."""


def cleaned(text: str) -> tuple[ElementTree.Element, float, float]:
    """The picture with nothing in it that could act, and its width and height in pixels.

    Nodes and frames of Graphviz get `data-node`, the name that the dot text gave them. What is no
    shape is dropped with all that is in it, and so is every attribute that is not known to be
    harmless. Raises SvgError for what is no SVG.
    """
    start = text.find("<svg")
    # No document type is read: it is where entities are declared.
    if start < 0:
        raise SvgError("no <svg> in it")
    try:
        root = ElementTree.fromstring(text[start:])
    except ElementTree.ParseError as error:
        raise SvgError(str(error)) from None
    kept = _kept(root)
    if kept is None or root.tag != f"{_SVG}svg":
        raise SvgError("its root is no <svg>")
    box = re.findall(r"[-\d.]+", root.get("viewBox", ""))
    if len(box) != 4:
        raise SvgError("it has no viewBox")
    return kept, float(box[2]) * _PIXELS, float(box[3]) * _PIXELS


def written(picture: ElementTree.Element) -> str:
    """The picture as text for a page."""
    return ElementTree.tostring(picture, encoding="unicode", short_empty_elements=True)


def _kept(x: ElementTree.Element) -> ElementTree.Element | None:
    if not isinstance(x.tag, str) or not x.tag.startswith(_SVG):
        return None
    tag = x.tag[len(_SVG) :]
    if tag not in _SHAPES:
        return None
    out = ElementTree.Element("g" if tag == "a" else tag)
    for name, value in x.attrib.items():
        if name in _ATTRIBUTES and _PLAIN.fullmatch(value) and "url(" not in value:
            out.set(name, "none" if value == "transparent" else value)
    if tag == "a" and x.get(_LINK):
        title = ElementTree.SubElement(out, "title")
        title.text = x.get(_LINK)
    kind = x.get("class", "")
    if tag == "g" and kind in ("node", "cluster", "edge", "graph"):
        out.set("class", f"g-{kind}")
    if tag in ("text", "tspan", "title"):
        out.text = x.text
    for child in x:
        if kind and child.tag == f"{_SVG}title":
            if kind in ("node", "cluster"):
                out.set("data-node", re.sub(r"\W", "", child.text or "")[:40])
            continue
        inner = _kept(child)
        if inner is not None:
            out.append(inner)
    if kind == "graph" and len(out) and out[0].tag == "polygon":
        out.remove(out[0])  # the paper
    return out
