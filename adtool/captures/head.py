"""The head of a capture: what it says about its run."""

from __future__ import annotations

from adtool.faults import Seen
from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the program: its name in the capture, and the member with its text."""

    name: str
    member: str


@dataclass(frozen=True, slots=True)
class Digest:
    """A file of the program: its name, and the SHA-256 of what was in it."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Head:
    """Of which run a capture is. why: where it holds no tapes, the reason.

    script: as it was named. recorded: launches of each tape. processes: that the script started.
    checked: source files of the last run, by which it is seen that they have changed since.
    """

    tool: str
    script: str
    device: str = "cpu"
    recorded: tuple[int, ...] = ()
    processes: int = 0
    script_seconds: float = 0.0
    sources: tuple[Source, ...] = ()
    why: str = ""
    checked: tuple[Digest, ...] = ()


@dataclass(frozen=True, slots=True)
class Faults:
    """What launches did wrong while the program ran."""

    faults: tuple[Seen, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """What the process that ran a program wrote of it. sources: see `Head`.

    why: what is missing, and the reason; failed: whether the file cannot be written.
    """

    sources: tuple[Source, ...] = ()
    why: str = ""
    failed: bool = False
