"""The error of a failed compilation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.compile.snippet_errors import snippet_errors
from engine.diagnostics import CompilerError, Diagnostic
from engine.ir.nodes import Function


def failure(
    compiler: str, fns: Sequence[Function], said: str, source: str, text: str, log: Path, help: str
) -> CompilerError:
    """E304 for each snippet that is refused; E302 where the rest is.

    compiler: which one, and what it did. said: its words. source: the name of the file that it
    compiled, and text its content. log: where all that is kept.
    """
    refused = snippet_errors(said, source, text, fns, str(log))
    if refused:
        return CompilerError(*refused)
    names = ", ".join(repr(f.name) for f in fns[:3])
    names += f" and {len(fns) - 3} more" if len(fns) > 3 else ""
    errors = [line.strip() for line in said.splitlines() if "error" in line.lower()]
    notes = [f"its output and the source are in {log}"]
    notes += [f"first of them: {errors[0]}"] if errors else []
    span = fns[0].span if len(fns) == 1 else None
    problem = f"{compiler} on kernel {names}"
    return CompilerError(Diagnostic("E302", problem, span, help, tuple(notes)))
