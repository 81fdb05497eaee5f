"""What to run and how to check it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How tapes are checked; None leaves a choice to the engine.

    kernels, skip_kernels: glob patterns of kernel names. max_inputs, max_outputs:
    how many scalars of an array are compared, all for values <= 0. memory: GiB that
    copies of what launches read may take.
    """

    eps: float | None = None
    atol: float | None = None
    rtol: float | None = None
    kernels: tuple[str, ...] = ()
    skip_kernels: tuple[str, ...] = ()
    max_inputs: int = -1
    max_outputs: int = -1
    device: str | None = None
    seed: int = 0
    memory: float | None = None

    def deselects(self, kernel: str) -> bool:
        """Whether the user asked for this kernel to be left out."""
        if any(fnmatchcase(kernel, p) for p in self.skip_kernels):
            return True
        return bool(self.kernels) and not any(fnmatchcase(kernel, p) for p in self.kernels)


@dataclass(frozen=True, slots=True)
class JacobianOptions:
    """Which Jacobians to look at, and how.

    kernel: its name. inputs, outputs: names of arguments, all where empty. launch: numbers of
    tape and launch, None for the first one of the kernel. plot: the format of the plot,
    empty for none. error: what to plot in place of the Jacobian, or empty.
    """

    kernel: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    launch: tuple[int, int] | None = None
    plot: Literal["", "png", "svg", "pdf"] = ""
    error: Literal["", "relative", "absolute"] = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A script's path or a module's name (one of them), and its arguments."""

    script: str | None = None
    module: str | None = None
    args: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The target as the user named it."""
        return self.script if self.script is not None else f"-m {self.module}"


@dataclass(frozen=True, slots=True)
class Job:
    """A target with its options, as it is handed to the child process.

    jacobian: what to look at in place of a check. check: whether to check at all. traces: how
    many operations of the tapes to trace and to hand back.
    """

    target: Target
    options: CheckOptions
    jacobian: JacobianOptions | None = None
    check: bool = True
    traces: int = 0
