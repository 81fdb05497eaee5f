"""A picture in the language of Graphviz, with every string escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from engine.characters import clean
from engine.tape.graph.colours import (
    BOX,
    EDGE,
    FIRST,
    FRAME,
    GREEN_LINE,
    GREY_LINE,
    PORT,
    Colours,
)
from engine.tape.graph.model import ArrayNode, Cluster, Edge, Graph, Mark, OperationNode

_PORTS = 24  # drawn of one operation's inputs, and of its outputs
_LABEL = 120  # characters of one line


def dot(graph: Graph) -> str:
    """The text of a picture. The same picture gives the same text."""
    return _Writer(graph).text()


class _Writer:
    def __init__(self, graph: Graph) -> None:
        import graphviz

        self.graph = graph
        self.quote = graphviz.escape
        self.plain = graphviz.nohtml  # what is no HTML, whatever it looks like
        self.wide = graph.direction in ("LR", "RL")
        self.out: Any = graphviz.Digraph("tape")
        self.colours = Colours(graph)

    def text(self) -> str:
        """All of it."""
        out = self.out
        out.attr(rankdir=self.graph.direction, compound="true")
        out.attr("graph", fontname="Helvetica", fontsize="11")
        out.attr("node", fontname="Helvetica", fontsize="11")
        out.attr("edge", color=EDGE, arrowsize="0.7")
        legend = self._legend()
        if legend:
            out.attr(label=legend, labelloc="b", labeljust="l")
        for a in self.graph.arrays:
            if not a.cluster:
                self._array(out, a)
        self._items(out, self.graph.items)
        for e in self.graph.edges:
            self._edge(e)
        return clean(str(out.source))

    def _legend(self) -> Any:
        lines = [*self.colours.notes(), *(k.text for k in self.colours.legend())]
        return self.plain("".join(f"{self.quote(_line(x))}\\l" for x in lines))

    # ---- nodes

    def _array(self, out: Any, a: ArrayNode) -> None:
        fill = self.colours.array(a)
        lines = [a.label, *a.lines]
        if a.role:
            lines.append(f"({a.role})")
        if a.mark is not None and a.mark.text:
            lines.append(a.mark.text)
        more = {}
        if a.mark is not None and a.mark.level == "unreached":
            more["style"] = "filled,dashed"
        if a.role:
            more["peripheries"] = "2"
        border = GREEN_LINE if a.requires_grad else GREY_LINE
        if a.first:
            more["penwidth"] = "3"
            border = FIRST
        out.node(
            a.id, self._text(lines), shape="ellipse", fillcolor=fill, color=border,
            tooltip=self._tooltip(a.about or a.label, a.mark), **({"style": "filled"} | more),
        )  # fmt: skip

    def _items(self, out: Any, items: Sequence[OperationNode | Cluster]) -> None:
        for item in items:
            if isinstance(item, OperationNode):
                self._operation(out, item)
                continue
            with out.subgraph(name=item.id) as inner:
                inner.attr(label=self.quote(_line(item.label)), style="rounded", color=FRAME,
                           fontcolor="#404060", labelloc="t", labeljust="c")  # fmt: skip
                for a in self.graph.arrays:
                    if a.cluster == item.id:
                        self._array(inner, a)
                self._items(inner, item.items)

    def _operation(self, out: Any, x: OperationNode) -> None:
        tooltip = self._tooltip("; ".join([x.kind, *x.lines]), x.mark)
        if x.kind == "left out":
            out.node(
                x.id, self._text([x.label, *x.lines]), shape="box", style="dashed,filled",
                fillcolor="#ffffff", tooltip=tooltip,
            )  # fmt: skip
            return
        out.node(x.id, f"<{self._table(x)}>", shape="plain", tooltip=tooltip)

    def _table(self, x: OperationNode) -> str:
        """A grey box with the ports below its title: inputs first, then outputs."""
        fill = self.colours.operation(x)
        title = f"<B>{_html(x.label)}</B>"
        lines = list(x.lines)
        if x.mark is not None and x.mark.text:
            lines.append(x.mark.text)
        for line in lines:
            title += f'<BR/><FONT POINT-SIZE="9">{_html(line)}</FONT>'
        ins = self._ports("i", x.inputs, "LEFT" if self.wide else "CENTER")
        outs = self._ports("o", x.outputs, "RIGHT" if self.wide else "CENTER")
        if self.graph.direction == "RL":
            ins, outs = outs, ins
        rows = []
        if self.wide:
            empty = f'<TD BGCOLOR="{PORT}" BORDER="0"></TD>'
            for k in range(max(len(ins), len(outs))):
                left = ins[k] if k < len(ins) else empty
                right = outs[k] if k < len(outs) else empty
                rows.append(f"<TR>{left}{right}</TR>")
            span = 2
        else:
            cells = ins + outs
            rows += [f"<TR>{''.join(cells)}</TR>"] if cells else []
            span = max(1, len(cells))
        head = f'<TR><TD COLSPAN="{span}" BGCOLOR="{fill}">{title}</TD></TR>'
        style = ' STYLE="dashed"' if x.mark is not None and x.mark.level == "unreached" else ""
        line = f'BORDER="3" COLOR="{FIRST}"' if x.first else f'BORDER="1" COLOR="{BOX}"'
        return (
            f'<TABLE {line} CELLBORDER="1" CELLSPACING="0" CELLPADDING="4"'
            f'{style} BGCOLOR="{PORT}">{head}{"".join(rows)}</TABLE>'
        )

    def _ports(self, prefix: str, names: Sequence[str], align: str) -> list[str]:
        cells = [
            f'<TD PORT="{prefix}{k}" ALIGN="{align}" BGCOLOR="{PORT}">{_html(name)}</TD>'
            for k, name in enumerate(names[:_PORTS])
        ]
        if len(names) > _PORTS:
            cells.append(f'<TD BGCOLOR="{PORT}">and {len(names) - _PORTS} more</TD>')
        return cells

    def _edge(self, e: Edge) -> None:
        tail = f"{e.tail}:{e.tail_port}" if self._has(e.tail_port) else e.tail
        head = f"{e.head}:{e.head_port}" if self._has(e.head_port) else e.head
        if e.kind == "view":
            self.out.edge(tail, head, style="dashed", arrowhead="none")
        else:
            self.out.edge(tail, head)

    def _has(self, port: str) -> bool:
        return bool(port) and int(port[1:]) < _PORTS

    # ---- pieces

    def _text(self, lines: Iterable[str]) -> Any:
        return self.plain("\\n".join(self.quote(_line(x)) for x in lines))

    def _tooltip(self, label: str, mark: Mark | None) -> Any:
        detail = "" if mark is None else f": {mark.detail or mark.text}"
        return self.quote(_line(label + detail.rstrip(": "), 400))


def _line(text: str, limit: int = _LABEL) -> str:
    """Text of the user's as one line that XML can hold."""
    shown = "".join(c if c.isprintable() else " " if c.isspace() else f"\\x{ord(c):02x}"
                    for c in text)  # fmt: skip
    return shown if len(shown) <= limit else shown[: limit - 1] + "\u2026"


def _html(text: str) -> str:
    return html.escape(_line(text))
