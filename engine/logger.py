"""Messages of the engine for users, with levels: see `config.log_level`."""

from __future__ import annotations

import sys
import warnings
from typing import Protocol, runtime_checkable

from engine import config
from engine.characters import clean

LOG_DEBUG = 10
LOG_INFO = 20
LOG_WARNING = 30
LOG_ERROR = 40


@runtime_checkable
class Logger(Protocol):
    """What `set_logger` takes: something with a method for each level."""

    def debug(self, message: str) -> None:
        """A message of the level `LOG_DEBUG`."""

    def info(self, message: str) -> None:
        """A message of the level `LOG_INFO`."""

    def warning(
        self, message: str, category: type[Warning] | None = None, stacklevel: int = 1
    ) -> None:
        """A warning; the other arguments are those for `warnings.warn` in this method."""

    def error(self, message: str) -> None:
        """A message of the level `LOG_ERROR`."""


class _Streams:
    """The logger at first: information goes to standard output, errors to standard error."""

    def debug(self, message: str) -> None:
        sys.stdout.write(message + "\n")

    info = debug

    def warning(
        self, message: str, category: type[Warning] | None = None, stacklevel: int = 1
    ) -> None:
        warnings.warn(message, category or UserWarning, stacklevel=stacklevel)

    def error(self, message: str) -> None:
        sys.stderr.write(message + "\n")


_METHODS = ("debug", "info", "warning", "error")
_logger: Logger = _Streams()


def get_logger() -> Logger:
    """Who gets the engine's messages."""
    return _logger


def set_logger(logger: Logger | None) -> None:
    """Gives the engine's messages to `logger`; for None to the streams, as at first.

    Raises TypeError for what lacks one of the methods `debug`, `info`, `warning`, `error`.
    """
    global _logger
    if logger is not None and not all(callable(getattr(logger, m, None)) for m in _METHODS):
        raise TypeError(f"a logger has the methods {', '.join(_METHODS)}; got {logger!r}")
    _logger = _Streams() if logger is None else logger


def log_info(message: str) -> None:
    """Gives a message of the level of information."""
    if config.log_level <= LOG_INFO:
        _logger.info(clean(message))


def log_warning(
    message: str, category: type[Warning] = UserWarning, at: tuple[str, int] | None = None
) -> None:
    """Gives a warning. It is of the user's own line, or of the file and line `at`.

    Python's filters and `warnings.catch_warnings` see it, unless another logger takes it.
    """
    if config.log_level > LOG_WARNING:
        return
    message = clean(message)
    if at is not None and isinstance(_logger, _Streams):
        warnings.warn_explicit(message, category, *at)
    else:
        _logger.warning(message, category=category, stacklevel=_depth())


def _depth() -> int:
    """Frames up to the user's own, as `warnings.warn` counts them in a method of a logger."""
    from engine.diagnostics.site import is_own

    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and is_own(frame):
        depth, frame = depth + 1, frame.f_back
    return depth


class ScopedLogger:
    """`with ScopedLogger(mine):` gives the engine's messages to another logger in the block."""

    def __init__(self, logger: Logger | None) -> None:
        self.logger = logger
        self._before: list[Logger] = []

    def __enter__(self) -> ScopedLogger:
        before = get_logger()
        set_logger(self.logger)
        self._before.append(before)
        return self

    def __exit__(self, *exc: object) -> None:
        set_logger(self._before.pop())


class ScopedLogLevel:
    """`with ScopedLogLevel(LOG_ERROR):` sets `config.log_level` inside the block."""

    def __init__(self, log_level: int) -> None:
        self.log_level = log_level
        self._before: list[int] = []

    def __enter__(self) -> ScopedLogLevel:
        self._before.append(config.log_level)
        config.log_level = self.log_level
        return self

    def __exit__(self, *exc: object) -> None:
        config.log_level = self._before.pop()
