"""A program's text as a tree, with places as offsets of characters."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from adtool.report import Edit
from adtool.sources import ENGINES, tree_of
from engine.classes import dataclass
from engine.reading import getlines

if TYPE_CHECKING:
    from engine.diagnostics import Span

N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it is known to tracebacks. lines: without their ends, the first is number 1.

    parents: of each node, what it stands in. names: what names of the engine are called here.
    """

    file: str
    lines: tuple[str, ...]
    tree: ast.Module
    parents: dict[ast.AST, ast.AST]
    engines: frozenset[str]
    names: dict[str, str]

    def column(self, line: int, offset: int) -> int:
        """The column, from 1 and in characters, of a place that is given in bytes of UTF-8."""
        return len(self.lines[line - 1].encode()[:offset].decode("utf-8", "ignore")) + 1

    def start(self, node: Any) -> tuple[int, int]:
        """Line and column of a node's first character."""
        return node.lineno, self.column(node.lineno, node.col_offset)

    def end(self, node: Any) -> tuple[int, int]:
        """Line and column after a node's last character."""
        return node.end_lineno, self.column(node.end_lineno, node.end_col_offset)

    def at(self, span: Span, kind: type[N]) -> N | None:
        """The one node of a kind that has this place; None where there is none, or several.

        Columns of spans may be of characters or of bytes; where Python keeps none, they are a
        whole line.
        """
        nodes = [n for n in ast.walk(self.tree) if isinstance(n, kind)]
        whole = (span.col, span.end_col) == (1, 1)
        found = [
            n
            for n in nodes
            if n.lineno == span.line  # type: ignore[attr-defined]
            and (whole or self._fits(n, span))
        ]
        return found[0] if len(found) == 1 else None

    def _fits(self, node: Any, span: Span) -> bool:
        if node.end_lineno != span.end_line:
            return False
        in_bytes = (node.col_offset + 1, node.end_col_offset + 1)
        in_characters = (self.start(node)[1], self.end(node)[1])
        return (span.col, span.end_col) in (in_bytes, in_characters)

    def called(self, node: ast.AST) -> str:
        """The name in the engine of what a call calls; empty where it is none of the engine's."""
        if not isinstance(node, ast.Call):
            return ""
        f = node.func
        if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
            return f.attr if f.value.id in self.engines else ""
        return self.names.get(f.id, "") if isinstance(f, ast.Name) else ""

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, innermost first."""
        while (up := self.parents.get(node)) is not None:
            yield up
            node = up

    def block(self, statement: ast.AST) -> list[ast.stmt]:
        """The list of statements that a statement is one of."""
        up = self.parents.get(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(up, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return []

    def alone(self, statement: Any) -> bool:
        """Whether no other statement, and no text that goes on, shares its lines.

        So that lines can be put before or after it, or moved.
        """
        line, column = self.start(statement)
        last, end = self.end(statement)
        before, after = self.lines[line - 1][: column - 1], self.lines[last - 1][end - 1 :].strip()
        clear = not before.strip() and (not after or after.startswith("#"))
        # A line that ends by a backslash is joined to what is next to it.
        joined = line > 1 and self.lines[line - 2].endswith("\\")
        return clear and not joined and not after.endswith("\\")

    def indentation(self, statement: Any) -> str:
        """The blanks before a statement that is alone in its line."""
        line, column = self.start(statement)
        return self.lines[line - 1][: column - 1]

    def insertion(self, line: int, column: int, text: str) -> Edit:
        """Puts a text somewhere."""
        return Edit(self.file, line, column, line, column, text)

    def line_after(self, line: int, text: str) -> Edit:
        """Puts a new line after a line."""
        return self.insertion(line, len(self.lines[line - 1]) + 1, f"\n{text}")

    def line_before(self, line: int, text: str) -> Edit:
        """Puts a new line before a line."""
        return self.insertion(line, 1, f"{text}\n")

    def tokens(self, first: tuple[int, int], last: tuple[int, int]) -> list[tokenize.TokenInfo]:
        """The tokens between two places, lines and columns from 1, but for comments and ends."""
        skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT,
                   tokenize.DEDENT)  # fmt: skip
        return [
            t
            for t in _tokens("\n".join(self.lines) + "\n")
            if t.type not in skipped
            and (t.start[0], t.start[1] + 1) >= first
            and (t.end[0], t.end[1] + 1) <= last
        ]


def source_of(file: str) -> Source | None:
    """The source behind a file's name; None where it is not known, or is no Python."""
    tree = tree_of(file)
    if not tree.body:
        return None
    text = "".join(getlines(file))
    if "\f" in text or "\r" in text:  # what a line is differs from reader to reader
        return None
    parents = {c: n for n in ast.walk(tree) for c in ast.iter_child_nodes(n)}
    engines, names = _imported(tree)
    # As the tree counts lines: at line feeds alone.
    return Source(file, tuple(text.split("\n")), tree, parents, engines, names)


@lru_cache(maxsize=4)
def _tokens(text: str) -> tuple[tokenize.TokenInfo, ...]:
    return tuple(tokenize.generate_tokens(io.StringIO(text).readline))


def _imported(tree: ast.Module) -> tuple[frozenset[str], dict[str, str]]:
    engines: set[str] = set()
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            engines |= {a.asname or a.name for a in node.names if a.name in ENGINES}
        elif isinstance(node, ast.ImportFrom) and node.module in ENGINES and not node.level:
            names |= {a.asname or a.name: a.name for a in node.names}
    return frozenset(engines), names
