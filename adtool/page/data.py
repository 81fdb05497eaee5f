"""The content of a page as data: reports, traces, matrices, and the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adtool.matrices import LaunchPictures
from adtool.report import Report
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.traces import Traces


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that the page does not have. why: a sentence; `way` says how to get it."""

    what: str
    why: str
    way: str = ""


@dataclass(frozen=True, slots=True)
class PageRun:
    """One script's run.

    traces: None where the source has none. missing: what the page has not, and why. local:
    whether files that findings name are those of this machine, so that lines around a finding may
    be read.
    """

    script: str
    report: Report
    traces: Traces | None = None
    pictures: tuple[LaunchPictures, ...] = ()
    missing: tuple[Missing, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class PageData:
    """A page. source: what it was made from, in words. environment: names and what was found.

    remarks: what must be known of the run before its verdict is believed.
    """

    runs: tuple[PageRun, ...]
    source: str
    tool: str
    environment: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
