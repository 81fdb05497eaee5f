"""The module search path of the tool's processes, which leaves out folders of checked programs.

Needs nothing but what Python has loaded already, since it comes before all other imports.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# How a process begins that Python starts by `-c`, with `root` for where the tool is. It leaves what
# `own_first` returns.
OWN_FIRST = """sys.path.insert(0, root)
from adtool.paths import own_first
path, given = own_first(root, sys.path[1:])"""


def own_first(root: str, folders: list[str]) -> tuple[list[str], list[str]]:
    """Sets `sys.path`: the tool is found, and folders that PYTHONPATH names come last.

    folders: what `sys.path` was; an empty one, the current folder, is left out. Returns those for
    the program, and those of PYTHONPATH among them: an empty word in it is the current folder.
    """
    words = "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "")
    named = {os.path.abspath(word) for word in words.split(os.pathsep)} if words else set()
    path = [folder for folder in folders if folder]
    given = [folder for folder in path if folder in named]
    own = [folder for folder in path if folder not in named]
    sys.path[:] = [*([] if root in own else [root]), *own, *given]
    return path, given


def programs_last() -> None:
    """The same for the process that the user starts: `python -m` puts the current folder first."""
    first = sys.path[0] if sys.path else ""
    own_first(ROOT, sys.path[1:] if first != ROOT and first == _current() else sys.path)


def _current() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
