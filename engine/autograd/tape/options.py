"""Options of the check of a tape."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import field

from engine.autograd.comparison.block import EntryBlock
from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.launch.check import LaunchOptions
from engine.autograd.launch.compare import CompareOptions
from engine.autograd.launch.directions import Pair
from engine.autograd.launch.experience import Experience
from engine.autograd.results import LaunchResult
from engine.autograd.variables.roles import Mask
from engine.classes import dataclass

# Called with how many steps are done, of how many, and the next one's kernel. A step is a
# launch, or the tape as a whole.
Progress = Callable[[int, int, str], None]
# Called with the result and the compared entries of a launch.
Keep = Callable[[LaunchResult, Mapping[Pair, EntryBlock]], None]


@dataclass(frozen=True)
class Options:
    """What to check and how. Kernel names are glob patterns; empty means all.

    all_entries: compares entries of every launch, not only of the first of its kind. reverse:
    the last launch first. skip_to: the first launch that is checked. launches: numbers of those to
    check, all where empty. whole: checks the tape as a whole, too, unless only a part of it was
    asked for. experience: of earlier checks.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    kernels: tuple[str, ...] = ()
    skip_kernels: tuple[str, ...] = ()
    max_inputs: int = -1
    max_outputs: int = -1
    seed: int = 0
    masks: Mapping[str, Mask] | None = None
    reverse: bool = False
    skip_to: int = 0
    all_entries: bool = False
    whole: bool = True
    order: int = 1
    keep: Keep | None = None
    launches: tuple[int, ...] = ()
    experience: Experience | None = None

    @property
    def partial(self) -> bool:
        """Whether only a part of the tape was asked for."""
        return bool(
            self.kernels or self.skip_kernels or self.masks or self.skip_to or self.launches
        )

    @property
    def end_to_end(self) -> bool:
        """Whether the tape as a whole is checked."""
        return self.whole and not self.partial

    def wants(self, kernel: str) -> bool:
        """Whether launches of a kernel are checked."""
        if any(fnmatch.fnmatchcase(kernel, p) for p in self.skip_kernels):
            return False
        return not self.kernels or any(fnmatch.fnmatchcase(kernel, p) for p in self.kernels)

    def of_launch(self, kernel: str) -> LaunchOptions:
        """How a launch of a kernel is checked."""
        compare = CompareOptions(
            self.tolerance, self.max_inputs, self.max_outputs, self.all_entries
        )
        mask = self.masks.get(kernel) if self.masks else None
        return LaunchOptions(compare, mask, self.order, self.seed, self.end_to_end)
