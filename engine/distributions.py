"""Versions of installed packages, by the files that belong to them."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution

__all__ = ["version_at"]


def version_at(name: str, file: str | None, package: str = "") -> str:
    """The version of the distribution `name` if it has installed that file, else an empty string.

    Another installation of that name may come later on the path than a folder of the program's.
    file: of the imported package. package: its name, where it is not that of the distribution.
    """
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return ""
    root = (package or name).partition(".")[0]
    if file is None:
        return ""
    place = os.path.realpath(str(found.locate_file(root)))
    here = os.path.realpath(file)
    return found.version if here.startswith((place + os.sep, place + ".")) else ""
