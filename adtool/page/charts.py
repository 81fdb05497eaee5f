"""Curves along a tape as SVG. Colours are classes, for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree import ElementTree

from adtool.figures.scale import log_limits
from adtool.page.words import number, visible
from engine.classes import dataclass

_WIDTH, _HEIGHT = 860.0, 260.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 14.0, 14.0, 44.0
_LETTER = 6.6  # how wide a character of a label is, at most
_POINTS = 700  # of a curve; what is denser is drawn by its extremes
_DOTS = 160  # points that are drawn as such
COLOURS = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve. points: x and y, in order; y may be zero or not finite."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """An upright line. kind: `dies` or `explodes`."""

    kind: str
    at: float


def chart(
    curves: Sequence[Curve], about: str, x_label: str, y_label: str, *, log: bool = False,
    lines: Sequence[Line] = (), bytes_: bool = False,
) -> str:  # fmt: skip
    """The picture as text. log: y by its logarithm, zeros and what is not finite at the edges.

    about: what a reader who cannot see it is told.
    """
    plot = _Plot(curves, log, bytes_)
    root = ElementTree.Element(
        "svg", {"viewBox": f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}", "class": "chart", "role": "img",
                "aria-label": visible(about)},
    )  # fmt: skip
    plot.axes(root, x_label, y_label)
    for line in lines:
        x = f"{plot.x(line.at):.1f}"
        ElementTree.SubElement(
            root, "line", {"x1": x, "x2": x, "y1": str(_TOP), "y2": str(_HEIGHT - _BOTTOM),
                           "class": f"turn turn-{line.kind}"},
        )  # fmt: skip
    for k, curve in enumerate(curves):
        plot.curve(root, curve, min(k, COLOURS - 1))
    return ElementTree.tostring(root, encoding="unicode")


class _Plot:
    def __init__(self, curves: Sequence[Curve], log: bool, bytes_: bool) -> None:
        self.log, self.bytes = log, bytes_
        xs = [x for c in curves for x, _ in c.points]
        self.first, self.last = min(xs, default=0.0), max(xs, default=1.0)
        if self.first == self.last:
            self.first, self.last = self.first - 0.5, self.last + 0.5
        ys = [y for c in curves for _, y in c.points if math.isfinite(y) and (y > 0 or not log)]
        if log:
            low, high = self.limits = log_limits(ys)
            middle, half = (low + high) / 2, max((high - low) / 2 * 1.08, 0.6)
            self.low, self.high = middle - half, middle + half
        else:
            self.low, self.high = 0.0, max(ys, default=1.0) * 1.08 or 1.0
        # The title of the axis stands left of the longest label of a tick.
        widest = max((len(text) for _, text in self._ticks()), default=0)
        self.left = max(_LEFT, 32.0 + _LETTER * widest)

    def x(self, value: float) -> float:
        share = (value - self.first) / (self.last - self.first)
        return self.left + 10 + share * (_WIDTH - self.left - _RIGHT - 20)

    def y(self, value: float) -> float:
        if not math.isfinite(value):
            return _TOP + 5
        if self.log:
            if value <= 0:
                return _HEIGHT - _BOTTOM - 5
            value = math.log10(value)
            if self._off(value):
                return _TOP + 5 if value > self.high else _HEIGHT - _BOTTOM - 5
        return self._height(value)

    def _height(self, at: float) -> float:
        """Where a place of the axis is: a value, or its logarithm."""
        share = (at - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def _off(self, log: float) -> bool:
        return not self.limits[0] - 1e-9 <= log <= self.limits[1] + 1e-9

    def axes(self, root: ElementTree.Element, x_label: str, y_label: str) -> None:
        for value, text in self._ticks():
            # Also beside all points: only of those it is told that they are off the scale.
            y = f"{self._height(math.log10(value) if self.log else value):.1f}"
            ElementTree.SubElement(
                root, "line", {"x1": str(self.left), "x2": str(_WIDTH - _RIGHT), "y1": y, "y2": y,
                               "class": "grid"},
            )  # fmt: skip
            _text(root, self.left - 8, float(y) + 4, text, "end")
        step = _round((self.last - self.first) / 8)
        step = max(1.0, step)
        at = math.ceil(self.first / step) * step
        while at <= self.last:
            _text(root, self.x(at), _HEIGHT - _BOTTOM + 16, f"{at:.0f}", "middle")
            at += step
        _text(root, (self.left + _WIDTH) / 2, _HEIGHT - 6, x_label, "middle")
        label = _text(root, 0, 0, y_label, "middle")
        label.set("transform", f"translate(13 {(_HEIGHT - _BOTTOM + _TOP) / 2:.0f}) rotate(-90)")

    def _ticks(self) -> list[tuple[float, str]]:
        if not self.log:
            from adtool.memory import in_words

            step = 2.0 ** math.ceil(math.log2(self.high / 5)) if self.bytes else _round(
                self.high / 5)  # fmt: skip
            count = int(self.high / step)
            return [(k * step, in_words(k * step) if self.bytes else number(k * step))
                    for k in range(count + 1)]  # fmt: skip
        low, high = math.ceil(self.low), math.floor(self.high)
        step = max(1, round((high - low) / 6))
        found = [(10.0**k, f"1e{k}") for k in range(low, high + 1, step)]
        if len(found) >= 2:
            return found
        values = (10 ** (self.low + (self.high - self.low) * s) for s in (0.1, 0.5, 0.9))
        return [(v, number(v, 2)) for v in values]

    def curve(self, root: ElementTree.Element, curve: Curve, colour: int) -> None:
        g = ElementTree.SubElement(root, "g", {"class": f"curve c{colour}"})
        usual = [p for p in curve.points if math.isfinite(p[1]) and (p[1] > 0 or not self.log)]
        thin = _thinned(usual)
        path = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in thin)
        if len(thin) > 1:
            ElementTree.SubElement(g, "path", {"d": f"M{path}", "fill": "none"})
        off = {p for p in usual if self.log and self._off(math.log10(p[1]))}
        for x, y in sorted(off)[:_DOTS]:
            words = f"{visible(curve.label)}, operation {x:.0f}, off the scale: {number(y)}"
            _dot(g, self.x(x), self.y(y), "4.5", "off", words)
        if len(usual) <= _DOTS:
            for x, y in usual:
                if (x, y) in off:
                    continue
                shown = f"{y:.0f} bytes" if self.bytes else number(y)
                _dot(g, self.x(x), self.y(y), "2.6", "dot",
                     f"{visible(curve.label)}, operation {x:.0f}: {shown}")  # fmt: skip
        lost = [p for p in curve.points if not math.isfinite(p[1]) or (p[1] <= 0 and self.log)]
        for x, y in lost[:_DOTS]:
            kind = "zero" if math.isfinite(y) else "nonfinite"
            _dot(root, self.x(x), self.y(y), "4", kind,
                 f"{visible(curve.label)}, operation {x:.0f}: {number(y)}")  # fmt: skip


def _dot(to: ElementTree.Element, x: float, y: float, r: str, kind: str, title: str) -> None:
    dot = ElementTree.SubElement(
        to, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": r, "class": kind}
    )
    ElementTree.SubElement(dot, "title").text = title


def _text(
    root: ElementTree.Element, x: float, y: float, text: str, anchor: str
) -> ElementTree.Element:
    found = ElementTree.SubElement(
        root, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    )
    found.text = text
    return found


def _round(step: float) -> float:
    """The next of 1, 2, 5, 10, 20, ..."""
    if step <= 0 or not math.isfinite(step):
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= step * 0.999)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most about _POINTS of them: of each stretch the lowest and the highest."""
    if len(points) <= _POINTS:
        return points
    size = math.ceil(2 * len(points) / _POINTS)
    out = []
    for begin in range(0, len(points), size):
        part = points[begin : begin + size]
        ends = {min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])}
        out += sorted(ends)
    return out
