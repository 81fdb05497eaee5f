"""Collects the problems of one function, to report them together."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.diagnostics import Diagnostic, KernelError, KernelNameError, Span
from engine.frontend.parsing.source import Source


class Report:
    """Diagnostics in the order found, each one once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: dict[Diagnostic, None] = {}

    def add(
        self,
        code: str,
        where: ast.AST | Span,
        message: str,
        help_text: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        span = where if isinstance(where, Span) else self.source.span(where)
        line = self.source.line(span)
        found = Diagnostic(code, message, span, help_text, tuple(notes), line=line)
        self.diagnostics[found] = None

    def take(self, error: KernelError) -> None:
        """Adds the diagnostics of an error raised for a callee."""
        self.diagnostics.update(dict.fromkeys(error.diagnostics))

    def check(self) -> None:
        """Raises KernelError if anything was found, in the order of the source."""
        if self.diagnostics:
            found = sorted(self.diagnostics, key=_place)
            names = all(d.code == "E102" for d in found)
            raise (KernelNameError if names else KernelError)(*found)


def _place(d: Diagnostic) -> tuple[str, int, int]:
    return (d.span.file, d.span.line, d.span.col) if d.span else ("", 0, 0)
