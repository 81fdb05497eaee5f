"""Exit codes, and the exception that ends the tool with a message."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every command. An interrupted run (Ctrl-C) is a FAILURE too."""

    CLEAN = 0
    FINDINGS = 1
    FAILURE = 2


class ToolError(Exception):
    """The tool cannot do its job. `help` says what to do about it. Ends with Exit.FAILURE.

    kind: what is to blame, `target` or `environment`.
    """

    def __init__(self, message: str, help: str = "", kind: str = "target") -> None:
        self.message = message
        self.help = help
        self.kind = kind
        super().__init__(message)


def because(error: OSError) -> str:
    """What the system says, and about which file."""
    text = error.strerror or str(error) or type(error).__name__
    return f"{text}: {error.filename}" if error.filename else text


def unreadable(path: object, error: OSError) -> ToolError:
    """The error that a file cannot be read."""
    why = error.strerror or str(error) or type(error).__name__
    return ToolError(f"`{path}` cannot be read: {why}", "", "environment")
