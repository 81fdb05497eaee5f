"""`requires_grad=True` at the call that made an array, however that is written."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable

import pytest

from adtool.fixes.creations import requires_grad
from adtool.fixes.edits import applied
from adtool.report import Fix
from engine.diagnostics import Span

Ask = Callable[[str, str], Fix | None]


def span_of(text: str, name: str, file: str, wanted: type[ast.AST] = ast.Call) -> Span:
    """The place, in bytes as Python's own, of the first call whose text begins with a name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            last, end = node.end_lineno, node.end_col_offset
            assert last is not None and end is not None
            return Span(file, node.lineno, node.col_offset + 1, last, end + 1)
    raise AssertionError(f"no call of {name}")


@pytest.fixture
def fix(monkeypatch: pytest.MonkeyPatch) -> Ask:
    def ask(text: str, name: str) -> Fix | None:
        lines = text.splitlines(True)
        monkeypatch.setitem(linecache.cache, "/p/a.py", (len(text), None, lines, "/p/a.py"))
        return requires_grad([span_of(text, name, "/p/a.py")])

    return ask


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("wp.zeros", "wp.zeros(3)", "wp.zeros(3, requires_grad=True)"),
        ("wp.zeros", "wp.zeros()", "wp.zeros(requires_grad=True)"),
        ("wp.zeros", "wp.zeros(3, dtype=float,)", "wp.zeros(3, dtype=float, requires_grad=True)"),
        ("wp.zeros", "wp.zeros((n))", "wp.zeros((n), requires_grad=True)"),
        ("wp.zeros", "wp.zeros(n if n else (1))", "wp.zeros(n if n else (1), requires_grad=True)"),
        ("wp.array", "['é日', wp.array([1.0])]", "['é日', wp.array([1.0], requires_grad=True)]"),
        ("wp.ones", "[wp.ones(k) for k in n]", "[wp.ones(k, requires_grad=True) for k in n]"),
        ("wp.clone", "wp.clone(x)", "wp.clone(x, requires_grad=True)"),
        ("z", "z(3)", "z(3, requires_grad=True)"),
        ("engine.full", "engine.full(3, 1.0)", "engine.full(3, 1.0, requires_grad=True)"),
        ("wp.zeros", "wp.zeros(  3  )", "wp.zeros(  3, requires_grad=True  )"),
        (
            "wp.zeros",
            "wp.zeros(\n\t3,  # é\n\tdtype=float,  # why\n)",
            "wp.zeros(\n\t3,  # é\n\tdtype=float,  # why\n\trequires_grad=True,\n)",
        ),
        (
            "wp.zeros",
            "wp.zeros(3,\n         dtype=float)  # (",
            "wp.zeros(3,\n         dtype=float, requires_grad=True)  # (",
        ),
    ],
)  # fmt: skip
def test_the_argument_is_added(fix: Ask, name: str, before: str, after: str) -> None:
    head = "import engine\nimport engine as wp\nfrom engine import zeros as z\nx = "
    found = fix(f"{head}{before}\n", name)
    assert found is not None and found.safe
    assert applied(f"{head}{before}\n".encode(), found.edits).decode() == f"{head}{after}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("wp.zeros(3, requires_grad=False)", "wp.zeros(3, requires_grad=True)"),
        ("wp.clone(x, None, False)", "wp.clone(x, None, True)"),
    ],
)
def test_what_was_meant_is_changed_as_unsafe(fix: Ask, before: str, after: str) -> None:
    head = "import engine as wp\nx = "
    found = fix(head + before, before.partition("(")[0])
    assert found is not None and not found.safe
    assert applied((head + before).encode(), found.edits).decode() == head + after


@pytest.mark.parametrize(
    "use",
    ["ps = [p for p in arrays if p.requires_grad]", "if x.grad:\n    n = 1", "n = x.grad is None",
     "n = getattr(x, 'grad', None)", "n = not x.grad", "n = x.grad and 1"],
)  # fmt: skip
def test_a_program_that_asks_what_has_a_gradient(fix: Ask, use: str) -> None:
    found = fix(f"import engine as wp\nx = wp.zeros(3)\n{use}\n", "wp.zeros")
    assert found is not None and not found.safe


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("wp.zeros", "wp.zeros(*shape)"),
        ("wp.zeros", "wp.zeros(3, **options)"),
        ("wp.zeros", "wp.zeros(3, requires_grad=flag)"),
        ("wp.zeros", "wp.zeros(3, requires_grad=True)"),
        ("wp.array", "wp.array(v for v in values)"),
        ("make", "make(3)"),
        ("wp.launch", "wp.launch(f, 3)"),
        ("np.zeros", "np.zeros(3)"),
        ("wp.zeros().numpy", "wp.zeros().numpy()"),
    ],
)
def test_where_it_cannot_be_told_there_is_none(fix: Ask, name: str, line: str) -> None:
    assert fix(f"import engine as wp\nimport numpy as np\nx = {line}\n", name) is None


def test_no_text_no_fix() -> None:
    assert requires_grad([Span("<string>", 1, 1, 1, 5)]) is None
    assert requires_grad([]) is None
