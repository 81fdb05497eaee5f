"""Source spans, diagnostics as data, and their plain text form."""

from engine.diagnostics.catalogue import CODES
from engine.diagnostics.diagnostic import (
    CompilerError,
    Diagnostic,
    EngineError,
    GradcheckError,
    KernelError,
    KernelNameError,
    LaunchError,
    TapeError,
)
from engine.diagnostics.render import render, snippet
from engine.diagnostics.site import Site, definition_of
from engine.diagnostics.span import UNKNOWN, Span

__all__ = [
    "CODES",
    "UNKNOWN",
    "CompilerError",
    "Diagnostic",
    "EngineError",
    "GradcheckError",
    "KernelError",
    "KernelNameError",
    "LaunchError",
    "Site",
    "Span",
    "TapeError",
    "definition_of",
    "render",
    "snippet",
]
