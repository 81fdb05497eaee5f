"""What is known of arrays in structs in arrays where a kernel makes such a field hold another."""

from __future__ import annotations

from dataclasses import dataclass

from engine.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Links:
    """Of a function whose stores to tables of places say where other arrays lie.

    joined: pairs of pools, by an array parameter of each: a place in one is stored as one in the
    other, so that they have to be one memory. named: tables in which a row may name an argument
    in place of saying where in a pool it is; see `argument_row`.
    """

    joined: tuple[tuple[str, str, Span], ...] = ()
    named: tuple[tuple[str, Span], ...] = ()


NO_LINKS = Links()


def argument_row(index: int) -> int:
    """The first number of a row of a table that stands for a parameter of the kernel."""
    return -1 - index


def argument_of(first: int) -> int | None:
    """The parameter that such a number stands for; None for a place in a pool."""
    return None if first >= 0 else -1 - first
