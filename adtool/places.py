"""How files are named in what people read: relative to the current directory, if below it."""

from __future__ import annotations

import os
import re


def short(file: str) -> str:
    """A path below the current directory, relative to it."""
    here = _here()
    return file[len(here) :] if here and file.startswith(here) else file


def shortened(text: str) -> str:
    """The same for the places in a sentence (`at FILE:3`, `(FILE:3)`) and in a traceback."""
    here = _here()
    if not here:
        return text
    return re.sub(rf'(^ *File "| at |\(){re.escape(here)}', r"\1", text, flags=re.MULTILINE)


def _here() -> str:
    try:
        return os.path.join(os.getcwd(), "")
    except OSError:  # it was removed
        return ""
