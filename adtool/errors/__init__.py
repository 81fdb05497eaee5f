"""What the engine's error codes mean: a page for each code of `engine.diagnostics.catalogue`."""

from __future__ import annotations

import textwrap

from adtool.errors import compilation, language, launches, tapes
from adtool.errors.page import Page
from engine.diagnostics import CODES

__all__ = ["PAGES", "Page", "text_of"]

PAGES: dict[str, Page] = {
    **language.PAGES, **launches.PAGES, **compilation.PAGES, **tapes.PAGES,
}  # fmt: skip


def text_of(code: str) -> str:
    """The page of a code, for a terminal. Raises KeyError where there is no such code."""
    page = PAGES[code]
    parts = (
        f"{code} {CODES[code]} (error of the engine)",
        "What it is\n" + _prose(page.what),
        "Example\n" + textwrap.indent(page.code, "  "),
        "What to do\n" + _prose(page.cure),
    )
    return "\n\n".join(parts) + "\n"


def _prose(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 78, initial_indent="  ", subsequent_indent="  ",
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip
