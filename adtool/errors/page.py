"""The page of one error of the engine."""

from __future__ import annotations

import textwrap

from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """what: in which programs it comes. example: a program, or its part, that raises it.

    cure: what to change.
    """

    what: str
    example: str
    cure: str

    @property
    def code(self) -> str:
        """The example, without indentation."""
        return textwrap.dedent(self.example).strip("\n")
