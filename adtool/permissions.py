"""The options that `[tool.adtool]` of `pyproject.toml` may set.

The file may come with a capture or a repository of other people, so it must not let code run, nor
write where it likes. An option that is not in the table is refused.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

from adtool.exits import ToolError


class Permission(Enum):
    """What a value in the file is good for."""

    ANY = "any value"  # it changes what is looked at, how it is judged, or what is printed
    INSIDE = "files in the project's folder"  # of which it replaces what adtool wrote alone
    NONE = "only the command line"  # it runs code, writes or changes files, or names the target


# By the parameter's name, or COMMAND.NAME where it means another thing to a command.
PERMISSIONS: dict[str, Permission] = {
    # Runs code: the C++ of a capture.
    "trust": Permission.NONE,
    # Changes the program.
    "fix": Permission.NONE,
    "show_fixes": Permission.NONE,
    "unsafe_fixes": Permission.NONE,
    # Says what is run. `scripts` of the file are in its folder.
    "module": Permission.NONE,
    "each": Permission.NONE,
    "changed_since": Permission.NONE,
    # Writes a file, in the place of any other.
    "plot": Permission.NONE,
    "out": Permission.NONE,
    # Writes what is accepted into the baseline.
    "adopt": Permission.NONE,
    # Files.
    "check.out": Permission.INSIDE,
    "baseline.out": Permission.INSIDE,
    "baseline": Permission.INSIDE,
    # Names of arrays.
    "output": Permission.ANY,
    "input": Permission.ANY,
    "track_input": Permission.ANY,
    "track_output": Permission.ANY,
    # What is looked at.
    "kernels": Permission.ANY,
    "kernel": Permission.ANY,
    "skip_kernels": Permission.ANY,
    "exclude": Permission.ANY,
    "launches": Permission.ANY,
    "launch": Permission.ANY,
    "tapes": Permission.ANY,
    "tape": Permission.ANY,
    "stage": Permission.ANY,
    "end_to_end": Permission.ANY,
    "rerun": Permission.ANY,
    "as_run": Permission.ANY,
    "bounds": Permission.ANY,
    "taylor": Permission.ANY,
    "check": Permission.ANY,
    "no_check": Permission.ANY,
    "overwrites": Permission.ANY,
    "max_inputs": Permission.ANY,
    "max_outputs": Permission.ANY,
    "code": Permission.ANY,
    "most": Permission.ANY,
    # How it is judged.
    "eps": Permission.ANY,
    "order": Permission.ANY,
    "rtol": Permission.ANY,
    "atol": Permission.ANY,
    "seed": Permission.ANY,
    "gate": Permission.ANY,
    "factor": Permission.ANY,
    "select": Permission.ANY,
    "ignore": Permission.ANY,
    "exit_zero": Permission.ANY,
    "explodes": Permission.ANY,
    "vanishes": Permission.ANY,
    # How it runs. What runs is still named on the command line.
    "alias": Permission.ANY,
    "device": Permission.ANY,
    "executor": Permission.ANY,
    "jobs": Permission.ANY,
    "fail_fast": Permission.ANY,
    "timeout": Permission.ANY,
    "memory": Permission.ANY,
    "quick": Permission.ANY,
    # What is printed, and how.
    "format": Permission.ANY,
    "annotations": Permission.ANY,
    "verbose": Permission.ANY,
    "quiet": Permission.ANY,
    "durations": Permission.ANY,
    "no_color": Permission.ANY,
    "error": Permission.ANY,
    "direction": Permission.ANY,
    "failing": Permission.ANY,
    "no_health": Permission.ANY,
    "hide_readonly": Permission.ANY,
    "label": Permission.ANY,
    "no_scopes": Permission.ANY,
    "no_simplify": Permission.ANY,
    "short_names": Permission.ANY,
    "reverse": Permission.ANY,
    "sort": Permission.ANY,
    "top": Permission.ANY,
}


def permission(command: str, parameter: str) -> Permission:
    """What the file may say of an option, by the parameter's name."""
    own = PERMISSIONS.get(f"{command}.{parameter}")
    return own or PERMISSIONS.get(parameter, Permission.NONE)


def require_inside(path: str, folder: Path, where: str) -> None:
    """Raises ToolError where a file that settings name is not in their folder, links followed.

    path: as seen from the current folder. where: the settings' file and key.
    """
    if "\0" in path:
        raise ToolError(f"{where}: {path!r} is not a file name", "remove the character U+0000")
    real, root = os.path.realpath(path), os.path.realpath(folder)
    parts = os.path.relpath(real, root).split(os.sep)
    if parts[0] == os.pardir or os.path.isabs(parts[0]):
        raise ToolError(
            f"{where}: `{path}` is not in the folder of the settings",
            (
                "settings may only name files in their own folder; name other files on the "
                "command line"
            ),
        )
    if ".git" in parts:
        raise ToolError(f"{where}: `{path}` belongs to git", "name a file outside of .git")
