"""Builds the picture of a recorded tape."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Literal

from engine.tape.graph.folding import (
    Block,
    Item,
    LeftOut,
    Step,
    counted,
    folded,
    shortened,
)
from engine.tape.graph.listing import ListedScope, TapeListing
from engine.tape.graph.model import (
    ArrayNode,
    Cluster,
    Edge,
    Graph,
    GraphOptions,
    OperationNode,
    worst,
)

_NOTES = 12
_GAP_EDGES = 16


def graph(tape: TapeListing, options: GraphOptions) -> Graph:
    """The picture of a tape. The same listing and options give the same picture."""
    return _Builder(tape, options).graph()


class _Builder:
    def __init__(self, tape: TapeListing, options: GraphOptions) -> None:
        self.tape = tape
        self.options = options
        self.group = list(range(len(tape.arrays)))  # union-find: arrays that share a node
        self.notes: list[str] = []
        self.framed: set[str] = set()
        self.clusters = 0
        self.edges: dict[Edge, None] = {}
        self.shown: dict[int, None] = {}  # arrays that an operation in the picture uses
        self.users: dict[int, str] = {}  # what the first operation calls an array
        self.members: dict[int, list[int]] = {}
        self.hidden: set[int] = set()
        self.path: tuple[str, ...] = ()  # frames around what is being drawn
        self.turning: set[int] = set()  # of which several take turns in a loop
        self.frames: dict[int, tuple[str, ...]] = {}  # around all that writes an array
        self.gaps: list[tuple[str, tuple[int, ...]]] = []

    def graph(self) -> Graph:
        o = self.options
        kept = [
            i for i, x in enumerate(self.tape.operations) if o.only is None or x.index in o.only
        ]
        items = tuple(self._tree(kept))
        if o.simplify:
            items = folded(items, self._same, self._alike)
            items = shortened(items, self._weight)
        self._unite(items)
        self.users = used_as(self.tape)
        for a in range(len(self.group)):
            self.members.setdefault(self._root(a), []).append(a)
        written = {self._root(a) for x in self.tape.operations for a in self.tape.outputs(x)}
        tracked = {self._root(a) for a in (*o.inputs, *o.outputs)}
        if o.hide_readonly:
            self.hidden = set(self.members) - written - tracked
        drawn = self._drawn(items)
        for a in (*o.inputs, *o.outputs):
            self.shown.setdefault(self._root(a))
        self._views(written)
        arrays = tuple(self._array(a) for a in self.shown)
        missing = self.tape.records - len(self.tape.operations)
        if missing:
            self.notes.append(f"{missing} operations in the middle were not kept")
        if o.only is not None and len(kept) < len(self.tape.operations):
            rest = len(self.tape.operations) - len(kept)
            self.notes.append(f"not on the drawn path: {rest} of {len(kept) + rest}")
        notes = self.notes[:_NOTES]
        if len(self.notes) > _NOTES:
            notes.append(f"and {len(self.notes) - _NOTES} more loops or gaps")
        framed = frozenset(self.framed)
        return Graph(o.direction, arrays, drawn, tuple(self.edges), tuple(notes), framed)

    # ---- which operations, in which frames

    def _tree(self, kept: Sequence[int]) -> Iterator[Item]:
        if not self.options.scopes:
            yield from (Step((i,)) for i in kept)
            return
        scopes = sorted(self.tape.scopes, key=lambda s: (s.begin, s.depth))
        yield from self._level(list(kept), scopes)

    def _level(self, kept: list[int], scopes: list[ListedScope]) -> Iterator[Item]:
        """Steps and blocks of one level; scopes that lie in the first one are its own."""
        operations = self.tape.operations
        at = 0
        while scopes:
            outer = scopes.pop(0)
            inner = []
            while scopes and scopes[0].depth > outer.depth:
                inner.append(scopes.pop(0))
            begin, end = outer.begin, outer.end
            while at < len(kept) and operations[kept[at]].index < begin:
                yield Step((kept[at],))
                at += 1
            mine = []
            while at < len(kept) and operations[kept[at]].index < end:
                mine.append(kept[at])
                at += 1
            if mine:
                name = outer.name
                yield Block(name, tuple(self._level(mine, inner)))
        yield from (Step((i,)) for i in kept[at:])

    def _same(self, position: int) -> Hashable:
        x = self.tape.operations[position]
        return x.kernel, x.dim, x.arrays, self._level_of(x.index), self._origin(x.index)

    def _alike(self, position: int) -> Hashable:
        x = self.tape.operations[position]
        wants = tuple(None if a < 0 else self.tape.arrays[a].requires_grad for a in x.arrays)
        return x.kernel, x.dim, wants, self._level_of(x.index), self._origin(x.index)

    def _origin(self, index: int) -> bool:
        """Whether NaN begins there: that is not folded with what follows from it."""
        return self._first(index) and self._level_of(index) == "nonfinite"

    def _first(self, index: int) -> bool:
        return index == self.options.first[0]

    def _level_of(self, index: int) -> str:
        mark = self.options.operations.get(index)
        return "" if mark is None or mark.level == "gradient" else mark.level

    def _weight(self, position: int) -> int:
        index = self.tape.operations[position].index
        return 2 if index == self.options.focus else 1 if self._level_of(index) else 0

    # ---- which arrays share a node

    def _root(self, a: int) -> int:
        while self.group[a] != a:
            self.group[a] = self.group[self.group[a]]
            a = self.group[a]
        return a

    def _unite(self, items: Sequence[Item], fixed: frozenset[int] = frozenset()) -> None:
        """Makes arrays that take turns in a loop one node.

        fixed: arrays that every iteration reads, such as a right side that is the start value too:
        they do not take turns.
        """
        operations = self.tape.operations
        for item in items:
            if isinstance(item, Block):
                self._unite(item.items, fixed | self._always_read(item))
            elif isinstance(item, Step):
                for slot in zip(*(operations[p].arrays for p in item.positions), strict=True):
                    together = sorted({self._root(a) for a in slot if a >= 0 and a not in fixed})
                    for a in together[1:]:
                        self.group[a] = together[0]

    def _always_read(self, block: Block) -> frozenset[int]:
        """The arrays that each iteration of a loop reads by the same parameter."""
        found: set[int] = set()
        for item in block.items:
            if isinstance(item, Block):
                found |= self._always_read(item)
            elif isinstance(item, Step) and len(item.positions) > 1:
                for k in self.tape.kernels[self.tape.operations[item.positions[0]].kernel].reads:
                    slot = {self.tape.operations[p].arrays[k] for p in item.positions}
                    found |= slot if len(slot) == 1 else set()
        return frozenset(found)

    # ---- nodes and edges

    def _drawn(self, items: Sequence[Item]) -> tuple[OperationNode | Cluster, ...]:
        out: list[OperationNode | Cluster] = []
        for item in items:
            if isinstance(item, Step):
                out.append(self._operation(item))
            elif isinstance(item, LeftOut):
                out.append(self._left_out(item))
            else:
                number, self.clusters = self.clusters, self.clusters + 1
                label = item.name
                if item.repeated > 1:
                    label = f"repeated {item.repeated}x"
                    names = self._names(item.items)
                    self.notes.append(f"drawn once, {label}: {counted(names)}")
                    self.framed.add(self.notes[-1])
                name = f"cluster_{number}"
                self.path = (*self.path, name)
                out.append(Cluster(name, label, self._drawn(item.items)))
                self.path = self.path[:-1]
        return tuple(out)

    def _names(self, items: Sequence[Item]) -> list[str]:
        """What the drawn boxes of some items are."""
        out = []
        for i in items:
            if isinstance(i, Block):
                out += self._names(i.items) * i.repeated
            else:
                x = self.tape.operations[i.positions[0]]
                out.append(self.tape.kernels[x.kernel].name)
        return out

    def _operation(self, item: Step) -> OperationNode:
        x = self.tape.operations[item.positions[0]]
        kernel = self.tape.kernels[x.kernel]
        name = f"op{x.index}"
        for port, k in enumerate(kernel.reads):
            for a in self._nodes(item, k):
                self.edges.setdefault(Edge(f"a{a}", name, head_port=f"i{port}"))
        for port, k in enumerate(kernel.writes):
            turns = len({self.tape.operations[p].arrays[k] for p in item.positions}) > 1
            for a in self._nodes(item, k):
                self._frame(a, turns)
                self.edges.setdefault(Edge(name, f"a{a}", tail_port=f"o{port}"))
        members = tuple(self.tape.operations[p].index for p in item.positions)
        lines = []
        if x.dim:
            lines.append("dim " + " x ".join(map(str, x.dim)))
        if len(members) == 1:
            lines.append(f"launch {x.launch}" if x.launch >= 0 else f"record {x.index}")
        else:
            last = self.tape.operations[item.positions[-1]]
            ends = (x.launch, last.launch) if x.launch >= 0 else (x.index, last.index)
            many = "launches" if x.launch >= 0 else "records"
            lines.append(f"{len(members)} {many} from {ends[0]} to {ends[1]}")
        marks = [m for i in members if (m := self.options.operations.get(i)) is not None]
        return OperationNode(
            name, kernel.name, tuple(lines), kernel.kind,
            tuple(kernel.parameters[k] for k in kernel.reads),
            tuple(kernel.parameters[k] for k in kernel.writes), worst(marks), members,
            any(map(self._first, members)),
        )  # fmt: skip

    def _left_out(self, item: LeftOut) -> OperationNode:
        members = tuple(self.tape.operations[p].index for p in item.positions)
        name = f"gap{members[0]}"
        names = []
        for p in item.positions:
            x = self.tape.operations[p]
            names.append(self.tape.kernels[x.kernel].name)
        self.gaps.append((name, item.positions))
        text = f"{len(members)} operations not drawn"
        self.notes.append(f"{text}: {counted(names)}")
        return OperationNode(name, text, (counted(names),), "left out", (), (), None, members)

    def _nodes(self, item: Step, k: int) -> list[int]:
        """The nodes of the arrays that a parameter of some launches is: one, or the fixed too."""
        roots = dict.fromkeys(
            self._root(a) for p in item.positions if (a := self.tape.operations[p].arrays[k]) >= 0
        )
        return [a for a in roots if self._uses(a)]

    def _uses(self, a: int) -> bool:
        root = self._root(a)
        if root in self.hidden:
            return False
        self.shown.setdefault(root)
        return True

    def _frame(self, root: int, turns: bool) -> None:
        """Takes note of where an array is written: it is drawn in the frame of all such places.

        turns: whether arrays take turns there, from launch to launch; then no other place counts.
        """
        if turns and root not in self.turning:
            self.turning.add(root)
            self.frames.pop(root, None)
        elif root in self.turning and not turns:
            return
        common = self.frames.setdefault(root, self.path)
        same = 0
        while self.path[: same + 1] == common[: same + 1] and same < len(common):
            same += 1
        self.frames[root] = common[:same]

    def _views(self, written: set[int]) -> None:
        """What is left out touches arrays that are drawn; views touch what they are views of."""
        for name, gone in self.gaps:
            edges: dict[Edge, None] = {}
            for p in gone:
                x = self.tape.operations[p]
                for a in map(self._root, self.tape.inputs(x)):
                    if a in self.shown:
                        edges.setdefault(Edge(f"a{a}", name))
                for a in map(self._root, self.tape.outputs(x)):
                    if a in self.shown:
                        edges.setdefault(Edge(name, f"a{a}"))
            if len(edges) <= _GAP_EDGES:  # more would hide all others
                self.edges |= edges
        for a, known in enumerate(self.tape.arrays):
            if known.base < 0:
                continue
            view, base = self._root(a), self._root(known.base)
            if view == base or view not in self.shown:
                continue
            if base not in self.shown or base in self.hidden:
                continue
            ends = (view, base) if view in written and base not in written else (base, view)
            self.edges.setdefault(Edge(f"a{ends[0]}", f"a{ends[1]}", kind="view"))

    def _array(self, a: int) -> ArrayNode:
        members = self.members[a]
        arrays = [self.tape.arrays[m] for m in members]
        first = arrays[0]
        label = self._label(members[0])
        lines: list[str] = []
        if len(members) > 1:
            last = self._label(members[-1])
            label += "" if last == label else f" \u2026 {last}"
            lines.append(f"{len(members)} arrays")
        shape = " x ".join(map(str, first.shape))
        if any(x.shape != first.shape or x.dtype != first.dtype for x in arrays):
            lines.append("of several shapes")
        else:
            lines.append(f"{first.dtype}[{shape}]")
        role: Literal["", "input", "output"] = ""
        if any(self._root(x) == a for x in self.options.outputs):
            role = "output"
        if any(self._root(x) == a for x in self.options.inputs):
            role = "input"
        marks = [m for x in members if (m := self.options.arrays.get(x)) is not None]
        frames = self.frames.get(a)
        return ArrayNode(
            f"a{a}", label, tuple(lines), any(x.requires_grad for x in arrays),
            role, worst(marks), tuple(members),
            frames[-1] if frames and not role else "",
            f"array: dtype={first.dtype}, shape=({shape}), "
            f"requires_grad={any(x.requires_grad for x in arrays)}",
            self.options.first[1] in members,
        )  # fmt: skip

    def _label(self, a: int) -> str:
        return array_label(self.tape, a, self.options, self.users.get(a, ""))


def array_label(tape: TapeListing, a: int, options: GraphOptions, used_as: str = "") -> str:
    """What to call an array: as asked for, as the program does, else as its kernel does."""
    if a in options.labels:
        return options.labels[a]
    known = tape.arrays[a]
    found = known.name if options.longest else known.short
    if found:
        return found
    if known.base >= 0:
        base = tape.arrays[known.base]
        named = options.labels.get(known.base) or (base.name if options.longest else base.short)
        if named:
            return f"view of {named}"
    return used_as or f"array {a}"


def used_as(tape: TapeListing) -> dict[int, str]:
    """What kernels call the arrays: the parameter by which one is written first, else read."""
    written: dict[int, str] = {}
    read: dict[int, str] = {}
    for x in tape.operations:
        kernel = tape.kernels[x.kernel]
        for k, a in enumerate(x.arrays):
            if a >= 0:
                (written if k in kernel.writes else read).setdefault(a, kernel.parameters[k])
    return read | written
