"""Whether a target can be run as a Python script: said before its process is started."""

from __future__ import annotations

import ast
import glob
import json
import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from adtool import places
from adtool.captures.sniff import MAGIC
from adtool.exits import ToolError
from engine.reading import head, read

if TYPE_CHECKING:
    from adtool.job import Target

_MAGIC = "*?["
_BEGIN = 4096  # bytes of a file by which its kind is told

# Endings of names that are no script's, with what has such a name.
_KINDS = {
    ".pyi": "a stub",
    ".pyx": "Cython code",
    ".pxd": "Cython code",
    ".toml": "a TOML file",
    ".yaml": "a YAML file",
    ".yml": "a YAML file",
    ".csv": "a table",
    ".npy": "an array of NumPy",
    ".npz": "arrays of NumPy",
    ".c": "C code", ".cc": "C++ code", ".cpp": "C++ code", ".cu": "CUDA code", ".h": "C++ code",
    ".sh": "a shell script",
}  # fmt: skip
_NATIVE = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_IMAGES = {b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture", b"%PDF": "a PDF document"}
_JSON = (b"{", b"[")
_CAPTURE = MAGIC.encode()
_ARCHIVES = (b"PK\3\4", b"PK\5\6", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def require_script(target: Target) -> None:
    """Raises ToolError where the target's file is not there, or is plainly no Python script."""
    script = target.script
    if script is None:
        return
    if target.text is not None:
        _require_python(target.text.encode("latin-1"))
        return
    if os.path.isdir(script):
        if not in_folder(script):
            raise ToolError(f"the folder `{script}` has no script", _instead(script))
        raise ToolError(f"`{script}` is a directory", "name a script in it, or use -m MODULE")
    if not os.path.exists(script):
        if is_pattern(script):
            raise ToolError(
                f"no file matches the pattern `{script}`",
                f"the current folder is {places.folder()}",
            )
        kind = "capture" if target.capture else "script"
        raise ToolError(
            f"the {kind} `{script}` does not exist", f"the current folder is {places.folder()}"
        )
    if not os.access(script, os.R_OK):
        raise ToolError(f"`{script}` cannot be read", "check the permissions of the file")
    if target.capture:
        return
    with suppress(OSError):  # a pipe, too: that is told by who reads it
        begin = head(script, _BEGIN)
        if begin.lstrip()[:1] in _JSON:
            with suppress(OSError):  # it is too large: its beginning has to do
                begin = read(script)
        _require_python(begin, script)


def is_pattern(word: str) -> bool:
    """Whether a word is a pattern of names, unless a file has that name."""
    return any(c in word for c in _MAGIC)


def in_folder(folder: str) -> list[str]:
    """The scripts of a folder."""
    found = sorted(glob.glob(os.path.join(glob.escape(folder), "*.py")))
    return [f for f in found if not os.path.basename(f).startswith("_")]


def _instead(folder: str) -> str:
    """What to do about a folder that has no script."""
    name = os.path.basename(os.path.normpath(folder))
    if os.path.isfile(os.path.join(folder, "__main__.py")):
        return f"it has a `__main__.py`: run it with -m {name}"
    if glob.glob(os.path.join(glob.escape(folder), "*.ipynb")):
        return (
            "it has notebooks; remove their lines with % or !, and convert them to scripts: "
            f"jupyter nbconvert --to script {os.path.join(shlex.quote(folder), '*.ipynb')}"
        )
    return (
        "adtool checks its files `*.py`, except names that begin with `_`; for subfolders, use a "
        f"pattern: '{os.path.join(folder, '**', '*.py')}'"
    )


def _require_python(text: bytes, script: str = "") -> None:
    """Raises ToolError for what is plainly no Python.

    text: the beginning of the script, or all of what may be JSON. script: its path; empty for
    standard input.
    """
    name = f"`{script}`" if script else "standard input"
    stem, suffix = os.path.splitext(script)
    suffix = suffix.lower()
    json_kind = _json_kind(text, suffix == ".json")
    if suffix == ".ipynb" or json_kind == "notebook":
        raise ToolError(f"{name} is a notebook, not a Python script", notebook_help(script))
    if suffix in (".pyc", ".pyo") or (text[2:4] == b"\r\n" and b"\0" in text[4:16]):
        raise ToolError(
            f"{name} is compiled Python, which has no source lines to check",
            f"name the source that it was made from{_source_of(script)}",
        )
    if text.startswith(_NATIVE):
        raise ToolError(
            f"{name} is a program or library in machine code, not a Python script",
            "name the Python script that imports it",
        )
    if text.startswith(_ARCHIVES[0]) and text[30:].startswith(_CAPTURE):
        raise ToolError(f"{name} is a capture, not a Python script", "name its file: RUN.adt")
    if text.startswith(_ARCHIVES):
        raise ToolError(
            f"{name} is an archive, not a Python script",
            "unpack it, and name a script in it, or use -m MODULE",
        )
    for magic, kind in _IMAGES.items():
        if text.startswith(magic):
            raise ToolError(f"{name} is {kind}, not a Python script", "name a script")
    if json_kind == "report":
        file = shlex.quote(script) if suffix == ".json" else "REPORT.json"
        renamed = "" if suffix == ".json" or not script else f"rename it to {file}; "
        raise ToolError(
            f"{name} is a report of adtool, not a Python script",
            f"{renamed}`adtool report {file} --out page.html` makes a page from it",
        )
    if json_kind:
        raise ToolError(f"{name} is JSON, not a Python script", "name a script")
    if suffix in _KINDS:
        raise ToolError(
            f"{name} has the name of {_KINDS[suffix]}, not of a Python script",
            f"name a script; if the file is one, rename it to {os.path.basename(stem)}.py",
        )


def _json_kind(text: bytes, named: bool) -> Literal["", "notebook", "report", "json"]:
    """What kind of JSON a text is; empty for none, and for what also is Python.

    named: whether its name says that it is JSON. A list of numbers is both; `null` is no Python.
    """
    if text.lstrip()[:1] not in _JSON:
        return ""
    found: object = None
    with suppress(ValueError, RecursionError):  # one of these where it is only the beginning
        found = json.loads(text)
    if b'"cell_type"' in text or (isinstance(found, dict) and "nbformat" in found):
        return "notebook"
    if (found or named) and b'"tool": "adtool' in text:
        return "report"
    if named or not found:
        return "json" if named else ""
    try:  # whether it also is Python
        ast.literal_eval(text.decode())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return "json"
    return ""


def notebook_help(script: str) -> str:
    """How a notebook becomes a script. script: its path; empty where it is not known."""
    stem, suffix = os.path.splitext(script)
    file = shlex.quote(script) if script else "NOTEBOOK.ipynb"
    renamed = ""
    if suffix.lower() == ".py":  # the script would have the same name
        file = shlex.quote(f"{stem}.ipynb")
        renamed = f"rename it to {file}, "
    return (
        f"{renamed}remove its lines with % or !, and convert it to a script: "
        f"jupyter nbconvert --to script {file}"
    )


def _source_of(compiled: str) -> str:
    """The file that a compiled one was made of, as Python names it; empty where it is not there."""
    folder, name = os.path.split(compiled)
    if os.path.basename(folder) == "__pycache__":
        folder = os.path.dirname(folder)
    source = os.path.join(folder, name.split(".")[0] + ".py")
    found = source != compiled and os.path.isfile(source)
    return f": {source}" if found else ""


def no_python_hint(script: str) -> str:
    """What to do about a syntax error in a file whose name is not that of a Python script."""
    suffix = os.path.splitext(script)[1].lower()
    if suffix in ("", ".py", ".pyw") or script.startswith("<"):
        return ""
    return f"a file name that ends in {suffix} is not a Python script: name the script"
