"""Where the tool's own process looks for modules: not in folders of the programs that it checks.

Needs nothing but what Python has loaded already, since it comes before all other imports.
"""

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def programs_last() -> None:
    """Leaves out the current folder, which `python -m` puts first; PYTHONPATH comes last."""
    words = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    given = {os.path.abspath(word) for word in words if word} - {_ROOT}
    if sys.flags.ignore_environment:
        given = set()
    first = sys.path[:1]
    if first and first[0] != _ROOT and first[0] in ("", _current()):
        del sys.path[0]
    behind = [folder for folder in sys.path if folder in given]
    sys.path[:] = [*(folder for folder in sys.path if folder not in given), *behind]


def _current() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
