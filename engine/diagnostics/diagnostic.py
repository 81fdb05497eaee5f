"""The Diagnostic as data, and the exceptions that carry diagnostics to the user."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from engine.classes import dataclass
from engine.diagnostics.span import Span

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong, where, and what to do about it.

    `code` is an entry of `engine.diagnostics.catalogue`. `help` says what to
    write instead; `notes` add facts (an expected and a got, a file to read). `line` is
    the source line as it was read, where the file may have changed since.
    """

    code: str
    message: str
    span: Span | None = None
    help: str = ""
    notes: tuple[str, ...] = field(default=())
    severity: Severity = "error"
    line: str = ""


class EngineError(Exception):
    """Base of every error that a user of `engine` can cause. Carries diagnostics."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics = diagnostics
        super().__init__(diagnostics[0].message if diagnostics else "")

    def __str__(self) -> str:
        from engine.diagnostics.render import render

        return "\n\n".join(render(d) for d in self.diagnostics)


# Both are of several of Python's kinds: programs written for Warp catch one or another of them.


class KernelError(EngineError, ValueError, TypeError, RuntimeError):
    """A kernel or function uses something that the language does not have."""


class KernelNameError(KernelError, AttributeError, KeyError):
    """A kernel or function names something that is not there."""


class LaunchError(EngineError, ValueError, TypeError, RuntimeError):
    """A launch or an array operation was given arguments that do not fit."""


class CompilerError(EngineError, RuntimeError):
    """No compiler was found, or it failed on generated text."""


class TapeError(EngineError, RuntimeError, ValueError):
    """A tape was used in a way that has no meaning."""


class GradcheckError(EngineError, ValueError):
    """A gradient check failed (or could not check anything) with `raise_exception=True`."""
