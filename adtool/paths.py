"""Where the tool's own process looks for modules: not in folders of the programs that it checks.

Needs nothing but what Python has loaded already, since it comes before all other imports.
"""

import os
import sys

# The same for a process that Python starts by `-c`. It needs `root`, and leaves `path`, what there
# is to look at without the current folder, and `given`, those of PYTHONPATH among them: an empty
# word in it is the current folder.
OWN_FIRST = """import os, sys
path = [p for p in sys.path if p]
given = os.environ.get("PYTHONPATH", "")
given = [os.path.abspath(p) for p in given.split(os.pathsep)] if given else []
given = [] if sys.flags.ignore_environment else [p for p in path if p in given]
sys.path[:] = [root, *(p for p in path if p not in given), *given]"""

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def programs_last() -> None:
    """Leaves out the current folder, which `python -m` puts first; PYTHONPATH comes last."""
    words = os.environ.get("PYTHONPATH", "")
    given = {os.path.abspath(word) for word in words.split(os.pathsep)} if words else set()
    given -= {_ROOT}
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
