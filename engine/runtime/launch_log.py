"""`config.print_launches`: a line of the log for each launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.logger import log_info
from engine.runtime import events

if TYPE_CHECKING:
    from engine.runtime.kernel import Kernel


class LaunchLog(events.Observer):
    """Logs each launch that is about to run."""

    __slots__ = ()

    def launching(self, kernel: Kernel, dim: tuple[int, ...], values: list[Any] | None) -> None:
        said = "(called from JAX)" if values is None else f"arguments: {values}"
        log_info(f"kernel: {kernel.key} dim: {dim} {said}")
