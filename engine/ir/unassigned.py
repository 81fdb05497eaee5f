"""The frontend's findings about variables that may be unassigned."""

from __future__ import annotations

from engine.classes import dataclass
from engine.diagnostics import Span


@dataclass(frozen=True, slots=True)
class UnassignedRead:
    """A read that some path reaches before any assignment to the variable, which is zero then.

    name: as the user wrote it. variables: names of the mutable variables behind it.
    """

    name: str
    variables: tuple[str, ...]
    span: Span
