"""Text of figures, and markdown tables."""

from __future__ import annotations


def seconds(value: float) -> str:
    """A time with a unit and three digits."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def ratio(ours: float, theirs: float) -> str:
    """Two digits, however small."""
    return f"{ours / theirs:.2g}" if ours < theirs else f"{ours / theirs:.2f}"


def times(factor: float) -> str:
    """How many times faster, two digits and more."""
    return f"{factor:.2g}x" if factor < 10 else f"{factor:.0f}x"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
