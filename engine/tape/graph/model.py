"""A picture of a tape as data, independent of how it is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from engine.classes import dataclass

Direction = Literal["LR", "RL", "TB", "BT"]
Level = Literal["error", "nonfinite", "warning", "unreached", "gradient", ""]

# From the worst on.
LEVELS: tuple[Level, ...] = ("error", "nonfinite", "warning", "unreached", "gradient", "")
FOUND: tuple[Level, ...] = LEVELS[:3]  # something is wrong


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known of the health of an operation or an array.

    text: a line for the picture. value: the norm of a gradient; of several, the one that is
    furthest from 1, and others: all of them from the smallest to the largest. detail: to be read on
    demand. suppressed: the user does not want it to count, which the text says.
    """

    level: Level
    text: str = ""
    value: float | None = None
    detail: str = ""
    suppressed: bool = False
    others: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """What to draw, as `Tape.visualize` has it.

    labels: names of arrays, by their positions in the listing. inputs, outputs: positions of
    arrays that are always drawn. only: the operations to draw, by index; None for all.
    operations, arrays: marks, by index and by position. focus: the operation that is drawn
    whatever is left out, by index. first: where it goes wrong first: an operation by index, and
    an array by position.
    """

    simplify: bool = True
    hide_readonly: bool = False
    labels: Mapping[int, str] = field(default_factory=dict)
    longest: bool = True
    scopes: bool = True
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    direction: Direction = "LR"
    only: frozenset[int] | None = None
    operations: Mapping[int, Mark] = field(default_factory=dict)
    arrays: Mapping[int, Mark] = field(default_factory=dict)
    focus: int | None = None
    first: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """One array, or those that take turns in a loop. lines: below the label. about: on demand.

    cluster: the innermost frame that has all operations that write it, "" where none does.
    first: whether it goes wrong here first.
    """

    id: str
    label: str
    lines: tuple[str, ...]
    requires_grad: bool
    role: Literal["", "input", "output"] = ""
    mark: Mark | None = None
    members: tuple[int, ...] = ()
    cluster: str = ""
    about: str = ""
    first: bool = False


@dataclass(frozen=True, slots=True)
class OperationNode:
    """One operation, or those of a loop. inputs, outputs: names of ports, numbered from 0.

    kind: what it does, or `left out`. members: the indices of the records that it stands for.
    first: whether it goes wrong here first.
    """

    id: str
    label: str
    lines: tuple[str, ...]
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mark: Mark | None = None
    members: tuple[int, ...] = ()
    first: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """From a node (and its port) to another. kind: `view` where an array is part of the other."""

    tail: str
    head: str
    tail_port: str = ""
    head_port: str = ""
    kind: Literal["flow", "view"] = "flow"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes in a frame."""

    id: str
    label: str
    items: tuple[OperationNode | Cluster, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A picture. notes: what is not drawn one by one, in sentences. framed: those in frames."""

    direction: Direction
    arrays: tuple[ArrayNode, ...]
    items: tuple[OperationNode | Cluster, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...] = ()
    framed: frozenset[str] = frozenset()


def worst(marks: list[Mark]) -> Mark | None:
    """One mark for several things: the worst level, and the range of the values.

    Where a gradient reached some of them, that counts: the last state of a loop may have none.
    What is suppressed counts only where nothing else was found.
    """
    if not marks:
        return None
    levels = {m.level for m in marks}
    if "gradient" in levels:
        levels.discard("unreached")
    found = [m for m in marks if m.level in FOUND and not m.suppressed]
    level = min({m.level for m in found} or levels, key=LEVELS.index)
    mine = [m for m in found or marks if m.level == level]
    values = [m.value for m in mine if m.value is not None]
    text = mine[0].text
    if len(values) > 1:
        low, high = min(values), max(values)
        text = f"|grad| {norm_text(low)}" + ("" if low == high else f" to {norm_text(high)}")
    if len(mine) < len(marks):
        text += f" (in {len(mine)} of {len(marks)})"
    value = max(values, key=_away, default=None)
    details = dict.fromkeys(m.detail for m in mine if m.detail)
    return Mark(
        level, text, value, "\n".join(list(details)[:3]), mine[0].suppressed,
        (min(values), max(values)) if len(values) > 1 else None,
    )  # fmt: skip


def norm_text(value: float) -> str:
    """The norm of a gradient, in boxes and legends alike."""
    return f"{value:.3g}"


def _away(value: float) -> float:
    """How far a norm is from 1, in decades: a vanishing gradient is as far as an exploding one."""
    return abs(math.log10(value)) if value > 0 and math.isfinite(value) else math.inf
