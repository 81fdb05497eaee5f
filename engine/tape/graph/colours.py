"""The colours and lines of a picture of a tape, and the legend of what each of them means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from engine.classes import dataclass
from engine.tape.graph.model import (
    ArrayNode,
    Cluster,
    Graph,
    Level,
    Mark,
    OperationNode,
    norm_text,
)

GREY, GREEN = "#d9d9d9", "#b7e1a1"  # arrays without and with requires_grad
GREY_LINE, GREEN_LINE = "#707070", "#3c7a22"  # around them
BOX, HEAD, PORT = "#bdbdbd", "#e0e0e0", "#f4f4f4"  # operations: lines, titles, parameters
FRAME, EDGE, FIRST = "#8080a0", "#606060", "#101010"
_FILL: dict[Level, str] = {
    "error": "#f4a3a0",
    "nonfinite": "#d8a6e8",
    "warning": "#f8dc81",
    "unreached": "#ffffff",
}
_MEANING: dict[Level, str] = {
    "error": "red: an error was found here",
    "nonfinite": "purple: a gradient here is NaN or infinite",
    "warning": "yellow: a warning was given here",
    "unreached": "white, dashed: no gradient reached it",
}
# Norms of gradients, from the smallest to the largest: blue, white, orange.
_SCALE = ((146, 190, 224), (244, 244, 244), (245, 174, 97))
_DECADES = 2.0  # from the middle of the scale to its ends, at least

Shape = Literal["oval", "box", "frame", "line", "scale"]


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the legend: a small shape as it is drawn, and what it means.

    line: the colour of its line, "" for one that does not matter. fill2: the other end of a scale.
    """

    text: str
    shape: Shape = "box"
    fill: str = ""
    line: str = BOX
    dashed: bool = False
    thick: bool = False
    fill2: str = ""


class Colours:
    """The colours of one picture: those of norms depend on the norms that are in it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.boxes = list(operations(graph.items))
        nodes = [*(a.mark for a in graph.arrays), *(x.mark for x in self.boxes)]
        marks = [m for m in nodes if m is not None]
        self.levels = {m.level for m in marks}
        self.suppressed = {m.level for m in marks if m.suppressed}
        self.counting = {m.level for m in marks if not m.suppressed}
        norms = [m for m in marks if m.level == "gradient" and m.value is not None]
        self.several = any(m.others is not None for m in norms)
        values = [abs(v) for m in norms for v in (m.value, *(m.others or ())) if v is not None]
        logs = [math.log10(v) for v in values if v > 0 and math.isfinite(v)]
        self.low, self.high = (min(logs), max(logs)) if logs else (0.0, 0.0)
        self.middle = (self.low + self.high) / 2
        self.half = max((self.high - self.low) / 2, _DECADES)

    def array(self, a: ArrayNode) -> str:
        """The fill of an array."""
        return self._fill(a.mark) or (GREEN if a.requires_grad else GREY)

    def operation(self, x: OperationNode) -> str:
        """The fill of an operation's title."""
        return "#ffffff" if x.kind == "left out" else self._fill(x.mark) or HEAD

    def legend(self) -> list[Key]:
        """What every colour and kind of line means that is in the picture."""
        arrays, boxes = self.graph.arrays, self.boxes
        fills = [(self.array(a), a.requires_grad) for a in arrays]
        out = [
            Key(f"{word}: an array {how} requires_grad", "oval", fill, line)
            for word, how, fill, line, wants in (
                ("green", "with", GREEN, GREEN_LINE, True),
                ("grey", "without", GREY, GREY_LINE, False),
            )
            if (fill, wants) in fills
        ]  # fmt: skip
        lines = {a.requires_grad for a in arrays if (self.array(a), a.requires_grad) in fills
                 and self.array(a) not in (GREEN, GREY)}  # fmt: skip
        for wants, word, how, line in (
            (True, "green", "with", GREEN_LINE), (False, "grey", "without", GREY_LINE),
        ):  # fmt: skip
            if wants in lines and (GREEN if wants else GREY, wants) not in fills:
                out.append(
                    Key(f"{word} line: an array {how} requires_grad", "oval", "#ffffff", line)
                )
        out += [
            Key(self._meaning(x), fill=_FILL[x], dashed=x == "unreached")
            for x in _MEANING if x in self.levels
        ]  # fmt: skip
        if any(self.operation(x) == HEAD for x in boxes):
            scaled = self.low != self.high
            words = " without a gradient, or with one of 0" if scaled else ""
            out.append(Key(f"grey box: an operation{words}", fill=HEAD))
        if any(a.first for a in arrays) or any(x.first for x in boxes):
            out.append(Key("thick line: the first problem", line=FIRST, thick=True))
        if "gradient" in self.levels and self.low != self.high:
            ends = (norm_text(10**v) for v in (self.low, self.high))
            low, high = self._mixed(self.low), self._mixed(self.high)
            words = "blue to orange: norms of gradients from " + " to ".join(ends)
            if self.several:
                words += " (of several, the one that is furthest from 1)"
            out.append(Key(words, "scale", low, fill2=high))
        if any(a.role for a in arrays):
            out.append(Key("double line: a requested input or output", "oval", "#ffffff",
                           GREY_LINE, thick=True))  # fmt: skip
        if any(isinstance(x, Cluster) for x in self.graph.items):
            out.append(Key("frame: a scope, or what is repeated", "frame", "", FRAME))
        if any(x.kind == "left out" for x in boxes):
            out.append(Key("dashed box: operations that are not drawn", "box", "#ffffff",
                           GREY_LINE, dashed=True))  # fmt: skip
        if any(e.kind == "view" for e in self.graph.edges):
            out.append(Key("dashed line: a view, and the array that it is a part of", "line", "",
                           EDGE, dashed=True))  # fmt: skip
        return out

    def _meaning(self, level: Level) -> str:
        if level not in self.suppressed:
            return _MEANING[level]
        if level not in self.counting:
            return f"{_MEANING[level]} (suppressed)"
        return f"{_MEANING[level]} (or a suppressed one, where the box says so)"

    def notes(self) -> list[str]:
        """Sentences below the picture: what is not drawn one by one."""
        return [x for x in self.graph.notes if x not in self.graph.framed]

    def _fill(self, mark: Mark | None) -> str:
        if mark is None:
            return ""
        if mark.level != "gradient":
            return _FILL.get(mark.level, "")
        if mark.value is None or not mark.value > 0 or self.low == self.high:
            return ""
        return self._mixed(math.log10(mark.value))

    def _mixed(self, log: float) -> str:
        at = 1.0 + (log - self.middle) / self.half
        k = min(1, int(at))
        a, b = _SCALE[k], _SCALE[k + 1]
        mixed = (round(x + (y - x) * (at - k)) for x, y in zip(a, b, strict=True))
        return "#" + "".join(f"{v:02x}" for v in mixed)


def operations(items: Sequence[OperationNode | Cluster]) -> Iterable[OperationNode]:
    """All operations of a picture, those in frames too."""
    for item in items:
        if isinstance(item, Cluster):
            yield from operations(item.items)
        else:
            yield item
