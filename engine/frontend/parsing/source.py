"""Source text of a Python function, parsed at its absolute place in the file.

Nothing is dedented: an indented function is parsed below an `if 1:` line, so that
the columns of the syntax tree are those of the file.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, KernelError, Span
from engine.frontend.parsing.text import FunctionText, function_text


@dataclass(frozen=True, slots=True)
class Source:
    """A function's syntax tree with what is needed to turn nodes into spans.

    `shift` is added to the tree's line numbers to get those of the file; `lines` are
    the lines of the file's block, the first one being tree line `first`.
    """

    file: str
    tree: ast.FunctionDef
    lines: tuple[str, ...]
    shift: int
    first: int

    def _column(self, line: int, offset: int) -> int:
        """Column from 1, in characters, of a UTF-8 byte offset (what `ast` counts in)."""
        at = line - self.first
        if not 0 <= at < len(self.lines):
            return offset + 1
        return len(self.lines[at].encode()[:offset].decode(errors="replace")) + 1

    def span(self, node: ast.AST) -> Span:
        """LValue of a node in the file."""
        line = getattr(node, "lineno", None)
        if line is None:
            return self.header()
        col = getattr(node, "col_offset", 0)
        end = getattr(node, "end_lineno", None) or line
        end_col = getattr(node, "end_col_offset", None)
        return Span(
            self.file,
            line + self.shift,
            self._column(line, col),
            end + self.shift,
            self._column(end, col + 1 if end_col is None else end_col),
        )

    def parameter(self, name: str) -> Span:
        """A parameter of the function; the `def` line where there is none of that name."""
        args = self.tree.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            if arg.arg == name:
                return self.span(arg)
        return self.header()

    def header(self) -> Span:
        """The `def` line, from `def` to the end of that line's text."""
        line = self.tree.lineno
        text = self.lines[line - self.first] if line - self.first < len(self.lines) else ""
        start = self._column(line, self.tree.col_offset)
        at = line + self.shift
        return Span(self.file, at, start, at, max(start + 1, len(text.rstrip()) + 1))

    def line(self, span: Span) -> str:
        """The first line of a place in the function; empty for other places."""
        at = span.line - self.shift - self.first
        inside = span.file == self.file and 0 <= at < len(self.lines)
        return self.lines[at] if inside else ""

    def text(self, node: ast.AST) -> str:
        """The node as the user wrote it, on one line."""
        span = self.span(node)
        first = span.line - self.shift - self.first
        last = span.end_line - self.shift - self.first
        if not (0 <= first <= last < len(self.lines)):
            return ""
        if first == last:
            return self.lines[first][span.col - 1 : span.end_col - 1]
        return self.lines[first][span.col - 1 :].strip() + " ..."


def too_deep(source: Source) -> KernelError:
    """The error for a function nested more deeply than Python's own stack allows."""
    worst = max(source.tree.body, key=_depth, default=None)
    what = "expression"
    if isinstance(worst, (ast.If, ast.For, ast.While)):
        what = "statement"
    return KernelError(
        Diagnostic(
            "E101",
            f"this {what} is nested too deeply",
            source.header() if worst is None else _first_line(source, worst),
            "split the expression: give parts of it names, sum in a loop, or move branches "
            "of a long `if` / `elif` into functions",
        )
    )


def _first_line(source: Source, node: ast.stmt) -> Span:
    """The place of a statement, of which one line is enough."""
    span = source.span(node)
    at = node.lineno - source.first
    if span.end_line == span.line or not 0 <= at < len(source.lines):
        return span
    end = len(source.lines[at].rstrip()) + 1
    return Span(span.file, span.line, span.col, span.line, max(span.col + 1, end))


def _depth(node: ast.AST) -> int:
    """How deeply nodes are nested, found without recursion."""
    deepest = 0
    pending = [(node, 1)]
    while pending:
        at, depth = pending.pop()
        deepest = max(deepest, depth)
        pending += [(child, depth + 1) for child in ast.iter_child_nodes(at)]
    return deepest


def fail(span: Span | None, message: str, help_text: str, *notes: str) -> KernelError:
    """E111: the error for a function without readable source text."""
    return KernelError(Diagnostic("E111", message, span, help_text, notes))


_NO_TEXT = (
    "put the function in a .py file or a notebook cell; for exec(), enter the source in "
    "`linecache.cache` under the file name of the code"
)
_OTHER_TEXT = (
    "the file has changed since it was imported: import it again, or run the program again; "
    "programs that exec() runs need a file name of their own, with their text in "
    "`linecache.cache`"
)


_TRIES = 24  # lines at which a block might end, until its tokens are looked at


def _block(lines: Sequence[str]) -> tuple[list[str], list[ast.stmt]] | None:
    """The lines of the function that they begin with, and its statement; None where it is not seen.

    Its end is the first line that is indented no more than it, and before which all is whole:
    lines of a bracket or of a text may begin anywhere.
    """
    edge = _indentation(lines[0])
    tries = 0
    for at in range(1, len(lines) + 1):
        if at < len(lines):
            line = lines[at]
            if not line.strip() or line.lstrip().startswith("#") or _indentation(line) > edge:
                continue
        block = list(lines[:at])
        try:
            body = _statements(block)
        except (SyntaxError, ValueError):
            body = []
        if body and isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
            end = (body[0].end_lineno or 0) - (1 if edge else 0)
            return block[:end], body
        tries += 1
        if tries == _TRIES:
            break
    return None


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _statements(block: Sequence[str]) -> list[ast.stmt]:
    """The statements of lines, below an `if` where they are indented. Raises SyntaxError."""
    text = "".join(block)
    if text[:1] not in (" ", "\t"):
        return ast.parse(text).body
    body = ast.parse("if 1:\n" + text).body
    return body[0].body if isinstance(body[0], ast.If) else body


def _block_by_tokens(lines: list[str], where: Span, name: str) -> tuple[list[str], list[ast.stmt]]:
    """The same for all that is not found so. Raises KernelError E111."""
    try:
        block = inspect.getblock(lines)
    except (SyntaxError, IndentationError):
        block = lines
    try:
        return block, _statements(block)
    except SyntaxError as error:
        raise fail(
            where, f"the source text of `{name}` cannot be parsed ({error.msg})", _NO_TEXT
        ) from None


def source_of(func: Callable[..., Any], text: FunctionText | None = None) -> Source:
    """The source of a Python function. Raises KernelError E111 where there is none.

    text: as its decorator found it.
    """
    func = inspect.unwrap(func)
    text = text or function_text(func)
    name = getattr(func, "__name__", repr(func))
    if text is None:
        raise fail(None, f"`{name}` is not a Python function", "decorate a `def` function")
    code = text.code
    start = code.co_firstlineno - 1
    where = Span(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 2)
    if not text.versions:
        raise fail(where, f"the source text of `{name}` is not available", _NO_TEXT)
    lines = text.lines
    if lines is None and not text.has_file:
        # Another text has the same name, like `<string>`: its lines must not be shown.
        raise fail(None, f"the source text of `{name}` is not available", _NO_TEXT)
    if lines is None or start >= len(lines):
        raise fail(where, f"the text at this place is not the source of `{name}`", _OTHER_TEXT)
    block, body = _block(lines[start:]) or _block_by_tokens(lines[start:], where, name)
    tree = body[0] if body else None
    if name == "<lambda>":
        raise KernelError(
            Diagnostic("E101", "a lambda cannot be a kernel or function", where, "write a `def`")
        )
    if isinstance(tree, ast.AsyncFunctionDef):
        raise KernelError(
            Diagnostic("E101", "`async def` is not supported", where, "write a plain `def`")
        )
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
        raise fail(where, f"the text at this place is not the source of `{name}`", _OTHER_TEXT)
    first = 2 if block[0][:1] in (" ", "\t") else 1
    return Source(
        code.co_filename, tree, tuple(s.rstrip("\n") for s in block), start + 1 - first, first
    )
