"""Errors of launches and array operations, located at the user's call."""

from __future__ import annotations

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span


class IndexLaunchError(LaunchError, IndexError):
    """An index outside an array, on the host."""


class KernelStopped(LaunchError):
    """A kernel that ended early. reason: why, without the kernel's name."""

    def __init__(self, *diagnostics: Diagnostic, reason: str = "") -> None:
        super().__init__(*diagnostics)
        self.reason = reason


def fail(code: str, message: str, *notes: str, help: str = "") -> LaunchError:
    """A LaunchError whose span is the user's call; the caller raises it."""
    return LaunchError(Diagnostic(code, message, call_span(), help, notes))


def index_error(message: str) -> IndexLaunchError:
    """An error for a host-side index that is out of range."""
    return IndexLaunchError(Diagnostic("E206", message, call_span()))


def size_text(nbytes: int) -> str:
    """Bytes for people: `1.5 GiB`."""
    size = float(min(nbytes, 1 << 1000))
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{int(size)} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
