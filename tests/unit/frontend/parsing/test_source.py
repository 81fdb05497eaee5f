"""Finding the text of a function: nested, decorated, in other alphabets, without a file."""

from __future__ import annotations

import ast
import linecache
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import engine as wp
from engine.frontend import lower_kernel
from engine.frontend.parsing import source
from engine.frontend.parsing.source import source_of


class Outer:
    class Inner:
        @staticmethod
        def method(
            a: wp.array(dtype=float),
            # A comment that is indented less.
            n: int,
        ):
            """A text
            with lines that are indented less.
            """
            a[0] = größe  # noqa: F821


def make(text: str, file: str, name: str = "k", known: bool = True) -> Any:
    """A function made by exec, with its text in linecache as notebooks do it."""
    if known:
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"wp": wp, "__name__": "made"}
    exec(compile(text, file, "exec"), space)
    return space[name]


def failure(function: Any) -> wp.Diagnostic:
    with pytest.raises(wp.KernelError) as caught:
        lower_kernel(function)
    (d,) = caught.value.diagnostics
    return d


def test_columns_are_those_of_the_file() -> None:
    d = failure(Outer.Inner.method)
    assert d.span is not None and d.code == "E102"
    line = Path(__file__).read_text().splitlines()[d.span.line - 1]
    assert line[d.span.col - 1 : d.span.end_col - 1] == "größe"


def test_columns_count_characters_not_bytes() -> None:
    d = failure(
        make("def k(a: wp.array(dtype=float)):\n    é = 1.0; a[0] = é + nope\n", "<cell 1>")
    )
    assert d.span is not None
    assert (d.span.line, d.span.col, d.span.end_col) == (2, 25, 29)
    shown = str(wp.KernelError(d)).splitlines()
    assert shown[3] == "2 |     é = 1.0; a[0] = é + nope"
    assert shown[4] == "  | " + " " * 24 + "^^^^"


def test_the_header_is_the_def_line() -> None:
    def decorate(f: Any) -> Any:
        return f

    @decorate
    @decorate
    def function(
        x: float,
    ):
        pass

    span = source_of(function).header()
    line = Path(__file__).read_text().splitlines()[span.line - 1]
    assert line[span.col - 1 : span.end_col - 1] == "def function("


def test_no_text() -> None:
    d = failure(make("def k():\n    pass\n", "<nowhere>", known=False))
    assert d.code == "E111" and "`k`" in d.message and "linecache" in d.help


def test_other_text() -> None:
    k = make("def k():\n    pass\n", "<cell 2>")
    linecache.cache["<cell 2>"] = (9, None, ["x = 1\n", "y = 2\n"], "<cell 2>")
    assert failure(k).code == "E111"


def test_a_text_without_a_file_that_is_another_one() -> None:
    """A name like `<string>` says nothing of a text: no file has changed, and no line is shown."""
    k = make("def k():\n    pass\n", "<cell 4>", known=False)
    linecache.cache["<cell 4>"] = (9, None, ["x = 1\n", "y = 2\n"], "<cell 4>")
    d = failure(k)
    assert (d.code, d.message) == ("E111", "the source text of `k` is not available")
    assert d.span is None and "has changed" not in d.help and "linecache" in d.help


def test_lambda_and_async() -> None:
    assert failure(lambda a: a).code == "E101"
    assert failure(make("async def k():\n    pass\n", "<cell 3>")).code == "E101"


def test_not_a_function() -> None:
    assert failure(len).code == "E111"


_COMMAND = """
import engine as wp
@wp.kernel
def k(a: wp.array(dtype=float)):
    a[0] = 2.0
    a[1] = nope
try:
    k.ir
except wp.KernelError as e:
    print(e)
"""


def test_python_dash_c() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "error[E102]: `nope` is not defined"
    assert lines[1] == "  --> <string>:6:12"
    assert lines[3] == "6 |     a[1] = nope"


def test_long_expression(tmp_path: Any) -> None:
    script = tmp_path / "long.py"
    total = "+".join(["x[0]"] * 1200)
    script.write_text(
        "import engine as wp\n@wp.kernel\ndef k(x: wp.array(dtype=float)):\n"
        f"    x[0] = {total}\n"
        "wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=float)])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert "RecursionError" not in done.stderr, done.stderr[-300:]
    assert "error[E101]" in done.stderr and "split the expression" in done.stderr


TRICKY = '''
@decorated
@decorated(
"""text
at the edge""",
)
def one(
    a: int, b: str = """
def two(): pass
""",
):
    # comment
    x = [
1, 2,
]
    y = 1 + \\
2
# at the edge
    return x, """
edge
"""  # behind
    # after


class C:
    @decorated
    def three(self): return 3
    x = 1

    def four(self):
        if self:
            def five():
                pass
        else: pass
        return five
        # after

    async def six(self): pass

def seven(): return 7
def eight():
\treturn 8
'''


def test_blocks_end_where_functions_end() -> None:
    lines = TRICKY.splitlines(keepends=True)
    found = [n for n in ast.walk(ast.parse(TRICKY)) if hasattr(n, "decorator_list")]
    for node in found:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min(n.lineno for n in (node, *node.decorator_list)) - 1
            block = source._block(lines[first:])
            assert block is not None
            assert block[0] == lines[first : node.end_lineno]
            assert ast.dump(block[1][0]) == ast.dump(node)
    assert source._block(["x = 1\n", "def f(): pass\n"]) is None
    assert source._block(["(\n", *["x\n"] * 100, ")\n"]) is None
    assert source._block(["def f():\n"]) is None
