"""Places in source text."""

from __future__ import annotations

from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A range of source text. Lines and columns count from 1; the end column is exclusive."""

    file: str
    line: int
    col: int
    end_line: int
    end_col: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


UNKNOWN = Span("<unknown>", 0, 0, 0, 0)
