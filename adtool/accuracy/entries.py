"""Entries of a baseline: one for each pair, each kind of tape, and each known finding."""

from __future__ import annotations

import math

from adtool.report import Severity, Verdict
from engine.classes import dataclass

# Below these an error is noise of the reference, or of the machine: "small enough".
FLOOR = 1e-7  # of a pair's error, computed in float64
FLOOR_ROUNDING = 1e-6  # of rounding in the kernel's own precision
FLOOR_WHOLE = 1e-6  # of the derivative of a whole tape
FLOOR_VALUES = 1e-5  # of rounding between the launches of a tape: some hundred float32 units

FACTOR = 10.0  # how many times as large as before, or as its floor, an error may be


@dataclass(frozen=True, slots=True)
class Entry:
    """How accurate one pair (input, output) of a kernel is, over all its launches in a script.

    error: what the adjoint, in float64, is off by, as a part of the largest derivative; None where
    nothing was compared. rounding: the same of what rounding in the kernel's own precision adds;
    each factor of ten is one more digit lost. Of a tape as a whole (tape=True) kernel names its
    kernels, error is relative to the derivative, and rounding is that of the values between its
    launches.
    """

    script: str
    kernel: str
    input: str
    output: str
    verdict: Verdict
    error: float | None
    rounding: float | None = None
    tape: bool = False

    @property
    def key(self) -> tuple[str, bool, str, str, str]:
        """What tells it from others, and their order."""
        return self.script, self.tape, self.kernel, self.input, self.output

    @property
    def floor(self) -> float:
        """Below it, `error` says nothing."""
        return FLOOR_WHOLE if self.tape else FLOOR

    @property
    def floor_rounding(self) -> float:
        """Below it, `rounding` says nothing."""
        return FLOOR_VALUES if self.tape else FLOOR_ROUNDING

    @property
    def name(self) -> str:
        """The derivative, or the tape, for a sentence."""
        if self.tape:
            return f"the tape of `{self.kernel}`, end to end"
        return f"`d {self.output} / d {self.input}`"


@dataclass(frozen=True, slots=True)
class Known:
    """A finding that does not fail the gate. file: relative to the baseline's folder."""

    script: str
    code: str
    fingerprint: str
    severity: Severity
    kernel: str
    file: str

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What tells it from others, and their order."""
        return self.script, self.code, self.kernel, self.file, self.fingerprint


@dataclass(frozen=True, slots=True)
class Baseline:
    """All that a file holds, sorted."""

    entries: tuple[Entry, ...] = ()
    known: tuple[Known, ...] = ()


@dataclass(frozen=True, slots=True)
class Expected:
    """What a baseline says of one script. factor: from which on an error is worse than before.

    script, folder: its name in the baseline, and the folder that names are relative to.
    """

    script: str
    folder: str
    entries: tuple[Entry, ...] = ()
    known: tuple[Known, ...] = ()
    factor: float = FACTOR


_RANK = {
    "pass": 0, "kink": 0, "rounding": 1, "skipped": 2, "inconclusive": 2, "nondeterministic": 2,
    "fail": 3, "nan": 3,
}  # fmt: skip


def rank(verdict: str) -> int:
    """0 for right, then rounding, then not known, then wrong."""
    return _RANK[verdict]


def size(value: float | None) -> float:
    """An error to compare with: one that is no number is as large as can be."""
    if value is None:
        return 0.0
    return math.inf if math.isnan(value) else value


def shown(value: float | None, floor: float) -> str:
    """An error for a sentence."""
    if value is None:
        return "not measured"
    return f"<{floor:g}" if value < floor else f"{value:.2g}"
