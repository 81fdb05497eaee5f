"""Makes the user's text readable on a page. The templates escape it."""

from __future__ import annotations

import math
import unicodedata

LONGEST = 4000  # characters of a message
_NAME = 160  # of a name in a table


def visible(text: str, limit: int = LONGEST) -> str:
    """The text with what has no shape of its own spelt out: controls, marks of direction."""
    cut = text if len(text) <= limit else text[: limit - 1] + "\u2026"
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(c if _shown(c) else f"\\u{{{ord(c):x}}}" for c in cut)


def name(text: str) -> str:
    """The same for a name, which has no lines and is cut where it is long."""
    return visible(text.replace("\n", " "), _NAME)


def _shown(c: str) -> bool:
    return c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def number(value: float | None, digits: int = 4) -> str:
    """A number for people; a dash where there is none."""
    if value is None:
        return "\u2013"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return f"{value:.{digits}g}"


def seconds(value: float | None) -> str:
    """A time for people."""
    if value is None:
        return "\u2013"
    if value < 1e-3:
        return f"{value * 1e6:.0f} \u00b5s"
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.1f} s"
