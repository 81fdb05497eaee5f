"""Links in terminals that support them (OSC 8)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adtool.render.uris import file_uri

# What says of itself that it shows links, and from which version on.
_PROGRAMS = {
    "iTerm.app": (3, 1), "WezTerm": (0,), "vscode": (1, 72), "ghostty": (0,), "Hyper": (0,),
    "rio": (0,), "Tabby": (0,), "mintty": (0,),
}  # fmt: skip
_TERMS = ("xterm-kitty", "alacritty", "foot", "xterm-ghostty", "contour")
_NAMED = ("WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "KITTY_WINDOW_ID", "ALACRITTY_WINDOW_ID")
_VTE = 5000  # 0.50; versions before it print the address


def wanted(environ: Mapping[str, str], terminal: bool, plain: bool) -> bool:
    """Whether links are written. terminal: the stream is one. plain: no colour was asked for.

    FORCE_HYPERLINK decides alone where it is set, but for `plain`: 0 is no, all else yes.
    """
    if plain:
        return False
    force = environ.get("FORCE_HYPERLINK")
    if force is not None:
        return force.lower() not in ("0", "false", "no", "never")
    term = environ.get("TERM", "")
    if not terminal or term in ("", "dumb", "linux") or environ.get("CI"):
        return False
    if term.startswith("screen") or environ.get("STY"):  # hands on no links
        return False
    if term in _TERMS or any(environ.get(n) for n in _NAMED):
        return True
    vte = environ.get("VTE_VERSION", "")
    if vte.isdigit():
        return int(vte) >= _VTE
    least = _PROGRAMS.get(environ.get("TERM_PROGRAM", ""))
    return least is not None and _version(environ.get("TERM_PROGRAM_VERSION", "")) >= least


def linked(text: str, file: str) -> str:
    """The text as a link to a file. Both are the user's: the text must be clean already."""
    return f"\x1b]8;;{file_uri(file)}\x1b\\{text}\x1b]8;;\x1b\\"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:2])
