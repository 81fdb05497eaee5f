"""Scripts that are modules of a package: the command line that runs one as such."""

from __future__ import annotations

import ast
import importlib.util
import os
import shlex
import sys
from contextlib import suppress

from adtool.job import Job
from adtool.sources import tree_of

_WORDS = "attempted relative import with no known parent package"


def as_module(error: BaseException, file: str, job: Job) -> str:
    """What to do about a relative import in the script; empty where the error is another one.

    file: where the error was raised.
    """
    target, words = job.target, ""
    if not isinstance(error, ImportError) or target.text is not None:
        return ""
    with suppress(Exception):  # the program may raise one that cannot be written
        words = str(error)
    if target.script is not None:
        script = os.path.abspath(target.script)
    else:  # -m: a name without a dot, where a package's folder is the current one
        script = os.path.abspath(f"{target.module}.py")
    if words != _WORDS or os.path.abspath(file) != script:
        return ""
    root, module = _module_of(script)
    if not module:
        return ""
    kernel = [] if job.listing is None else [job.listing.kernel]
    line = shlex.join(["adtool", *target.command.split(), "-m", module, *kernel, *target.args])
    here = os.path.realpath(os.curdir)
    if os.path.realpath(root) != here:
        line = f"cd {shlex.quote(os.path.relpath(root, here))} && {line}"
    return f"the script is a module of a package: run {line}"


def not_installed(error: BaseException) -> str:
    """What to do about a package that is not installed; empty where the error is another one."""
    name = getattr(error, "name", None)
    if not isinstance(error, ModuleNotFoundError) or type(name) is not str:
        return ""
    top = name.partition(".")[0]
    try:
        if not top or importlib.util.find_spec(top) is not None:
            return ""
    except (ImportError, ValueError, AttributeError):
        return ""
    return (
        f"adtool runs the script with {sys.executable}, which has no module `{top}`: install it "
        "there, or install adtool where the script runs with plain `python`"
    )


def _module_of(script: str) -> tuple[str, str]:
    """The folder that a script's package lies in, and the script's name as a module.

    Folders with `__init__.py` are packages, and so are as many as its imports go up. The name is
    empty where a part of it is none that Python can import.
    """
    folder, name = os.path.split(script)
    names = [os.path.splitext(name)[0]]
    imports = (n for n in ast.walk(tree_of(script)) if isinstance(n, ast.ImportFrom))
    least = max((n.level for n in imports), default=1)
    while os.path.isfile(os.path.join(folder, "__init__.py")) or len(names) <= least:
        folder, name = os.path.split(folder)
        if not name:
            return folder, ""
        names.insert(0, name)
    if not all(name.isidentifier() for name in names):
        return folder, ""
    if names[-1] == "__main__":  # that of a package is run by the package's name
        names.pop()
    return folder, ".".join(names)
