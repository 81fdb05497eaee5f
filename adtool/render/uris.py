"""Files as URIs."""

from __future__ import annotations

import os
from urllib.parse import quote


def relative(file: str, folder: str) -> str | None:
    """The path below the folder, with slashes; None where the file lies elsewhere.

    folder: absolute, or empty where there is none.
    """
    if not folder:
        return None
    full = os.path.normpath(os.path.join(folder, file))
    start = os.path.join(os.path.normpath(folder), "")
    return full[len(start) :].replace(os.sep, "/") if full.startswith(start) else None


def encoded(path: str) -> str:
    """A path, percent-encoded: names that are no UTF-8 by their bytes. Slashes stay."""
    return quote(path.encode("utf-8", "surrogateescape" if _escaped(path) else "backslashreplace"))


def file_uri(path: str) -> str:
    """The `file:` URI of an absolute path."""
    named = path.replace(os.sep, "/")
    return "file://" + ("" if named.startswith("/") else "/") + encoded(named)


def _escaped(path: str) -> bool:
    """Whether all half characters are bytes of a name that is no UTF-8."""
    return not any("\ud800" <= c <= "\udfff" and not "\udc80" <= c <= "\udcff" for c in path)
