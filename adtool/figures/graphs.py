"""Pictures of tapes, as dot text or drawn."""

from __future__ import annotations

import shutil
import subprocess

from adtool import temporary
from adtool.exits import ToolError

FORMATS = ("dot", "svg", "png", "pdf")
_SECONDS = 120.0


def drawn(text: str, kind: str) -> bytes:
    """A picture in one of FORMATS. Raises ToolError where Graphviz is missing or fails."""
    if kind == "dot":
        return text.encode("utf-8")
    program = shutil.which("dot")
    if program is None:
        raise ToolError(
            f"a .{kind} file is drawn by the program `dot`, which is not installed",
            "install Graphviz (apt-get install graphviz, brew install graphviz, or from "
            "graphviz.org), or write a .dot file: --out tape.dot",
            "environment",
        )
    try:
        with temporary.folder() as folder:
            done = subprocess.run(
                [program, f"-T{kind}"], input=text.encode("utf-8"), capture_output=True,
                timeout=_SECONDS, cwd=folder, check=False,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ToolError(
            f"`dot` did not come to an end in {_SECONDS:.0f} s",
            "write a .dot file, or draw less (without --no-simplify; --failing)", "environment",
        ) from None  # fmt: skip
    if done.returncode or not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ToolError(
            f"`dot` failed: {said[0] if said else f'status {done.returncode}'}",
            "write a .dot file: --out tape.dot", "environment",
        )  # fmt: skip
    if b"too large" in done.stderr:  # it draws something all the same, a pixel high
        raise ToolError(
            f"the picture is too large for a .{kind} file",
            "write .svg or .pdf, or draw less (without --no-simplify; --failing)", "environment",
        )  # fmt: skip
    return done.stdout
