"""Whether a target can be run as a Python script: said before its process is started."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from adtool import places
from adtool.exits import ToolError
from engine.reading import head

if TYPE_CHECKING:
    from adtool.job import Target

_BEGIN = 4096  # bytes of a file by which its kind is told

# Names that are no script's, with what such a file is.
_KINDS = {
    ".pyi": "a stub, which has types and no statements to run",
    ".pyx": "Cython, which must be compiled",
    ".pxd": "Cython, which must be compiled",
    ".toml": "TOML",
    ".yaml": "YAML",
    ".yml": "YAML",
    ".csv": "a table",
    ".npy": "an array of NumPy",
    ".npz": "arrays of NumPy",
    ".c": "C", ".cc": "C++", ".cpp": "C++", ".cu": "CUDA", ".h": "C++", ".sh": "a shell script",
}  # fmt: skip
_NATIVE = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_IMAGES = {b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture", b"%PDF": "a PDF document"}
_ARCHIVES = (b"PK\3\4", b"PK\5\6", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def require_script(target: Target) -> None:
    """Raises ToolError where the target's file is not there, or is plainly no Python script."""
    script = target.script
    if script is None or target.text is not None:
        return
    if os.path.isdir(script):
        raise ToolError(f"`{script}` is a directory", "name a script in it, or use -m MODULE")
    if not os.path.exists(script):
        raise ToolError(
            f"the script `{script}` does not exist", f"the current directory is {places.folder()}"
        )
    if not os.access(script, os.R_OK):
        raise ToolError(f"`{script}` cannot be read", "check the permissions of the file")
    if not target.capture:
        _require_python(script)


def _require_python(script: str) -> None:
    try:
        begin = head(script, _BEGIN)
    except OSError:  # a pipe, too: that is told by who reads it
        return
    stem, suffix = os.path.splitext(script)
    suffix = suffix.lower()
    if suffix == ".ipynb" or (begin.lstrip()[:1] == b"{" and b'"cell_type"' in begin):
        raise ToolError(
            f"`{script}` is a notebook, not a Python script",
            f"convert it to a script: jupyter nbconvert --to script {shlex.quote(script)}",
        )
    if suffix in (".pyc", ".pyo") or (begin[2:4] == b"\r\n" and b"\0" in begin[4:16]):
        raise ToolError(
            f"`{script}` is compiled Python, which has no source lines to check",
            f"name its source: {_source_of(script)}",
        )
    if begin.startswith(_NATIVE):
        raise ToolError(
            f"`{script}` is a program or library in machine code, not a Python script",
            "name the Python script that imports it",
        )
    if begin.startswith(_ARCHIVES):
        raise ToolError(
            f"`{script}` is an archive, not a Python script",
            "unpack it, and name a script in it, or use -m MODULE",
        )
    for magic, kind in _IMAGES.items():
        if begin.startswith(magic):
            raise ToolError(f"`{script}` is {kind}, not a Python script", "name a script")
    if suffix == ".json" and begin.lstrip()[:1] in (b"{", b"["):
        report = b'"tool": "adtool' in begin
        raise ToolError(
            f"`{script}` is {'a report of adtool' if report else 'JSON'}, not a Python script",
            f"`adtool report {shlex.quote(script)} --out page.html` makes a page from it"
            if report else "name a script",
        )  # fmt: skip
    if suffix in _KINDS:
        raise ToolError(
            f"`{script}` is {_KINDS[suffix]} by its name, not a Python script",
            f"name a script; if the file is one, rename it to {os.path.basename(stem)}.py",
        )


def _source_of(compiled: str) -> str:
    """The file that a compiled one was made of, as Python names it."""
    folder, name = os.path.split(compiled)
    if os.path.basename(folder) == "__pycache__":
        folder = os.path.dirname(folder)
    return os.path.join(folder, name.split(".")[0] + ".py")


def no_python_hint(script: str) -> str:
    """What to do about a syntax error in a file whose name is not that of a Python script."""
    suffix = os.path.splitext(script)[1].lower()
    if suffix in ("", ".py", ".pyw") or script.startswith("<"):
        return ""
    return f"a file name that ends in {suffix} is not a Python script: name the script"
