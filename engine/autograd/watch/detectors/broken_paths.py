"""Finds ways from inputs to a loss that leave the tape, or end at a cast (`watch/paths`)."""

from __future__ import annotations

from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.runtime.array import array
from engine.runtime.plan_parts import BoundLaunch
from engine.tape.backward import Pass


class BrokenPaths(Detector):
    """Tells a tape of its ways that are cut (`Broken`), at its first backward pass."""

    def unrecorded(self, launch: BoundLaunch) -> None:
        over = self.program.passed_over()
        for paths in self.program.open_paths():
            if over is not None and paths is over[0].paths:
                paths.replayed(launch, over[1].site, over[1].kind)
            else:
                paths.unrecorded(launch)

    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        over = self.program.passed_over()
        for paths in self.program.open_paths():
            if over is not None and paths is over[0].paths and not meant:
                paths.replayed_copy(dest, src, over[1].site)
            else:
                paths.copied(dest, src, meant, clone)

    def filled(self, dest: array) -> None:
        for paths in self.program.open_paths():
            paths.filled(dest)

    def ended(self, tape: Followed, run: Pass) -> None:
        if tape.paths is not None:
            for broken in tape.paths.broken(run):
                tape.tell(broken)
