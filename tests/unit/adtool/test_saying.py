"""All output of commands goes through one cleaner: no other code writes to the streams."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from pathlib import Path

import adtool
from adtool.saying import say

FOLDER = Path(str(adtool.__file__)).parent
# Files that write to a stream, with what: each is data in ASCII or was cleaned by its renderer.
_WRITE = {
    "commands/check_fixes.py": "a diff, for `patch`: exact, unless it is looked at",
    "commands/check_output.py": "a report in one of the formats",
    "commands/doctor.py": "JSON",
    "commands/graph.py": "dot, cleaned by the engine",
    "commands/step.py": "commands to GitHub",
    "commands/selftest.py": "the tool's own kernels",
    "commands/explain.py": "the tool's own pages",
    "commands/schema.py": "the tool's own schemas",
    "__main__.py": "a base package that is missing, before what prints is loaded",
    "child.py": "the traceback of a fork, cleaned",
    "probe.py": "one word",
    "saying.py": "each line is cleaned",
    "usage.py": "JSON",
}
_STREAMS = {"stdout", "stderr", "stream", "buffer", "typer"}


def _printing(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            f = node.func
            of = getattr(f, "value", None)
            name = getattr(of, "attr", getattr(of, "id", ""))
            if isinstance(f, ast.Name) and f.id == "print":
                yield node.lineno
            if isinstance(f, ast.Attribute) and f.attr in ("write", "echo") and name in _STREAMS:
                yield node.lineno


def test_nothing_else_prints() -> None:
    found = set()
    for path in FOLDER.rglob("*.py"):
        name = path.relative_to(FOLDER).as_posix()
        if "selftest/corpus" not in name and [*_printing(ast.parse(path.read_text("utf-8")))]:
            found.add(name)
    renders = {f for f in found if f.startswith("render/")}  # which have tests of their own
    assert found - renders == set(_WRITE)


def test_a_line_stays_a_line() -> None:
    out = io.StringIO()
    say("one\n::error::x", "two\x1b[0m", file=out)
    assert out.getvalue() == "one\\n::error::x\ntwo\\x1b[0m\n"
