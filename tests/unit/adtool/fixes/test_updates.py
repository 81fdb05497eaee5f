"""Atomic updates in place of statements that are exactly such."""

from __future__ import annotations

import linecache

import pytest

from adtool.fixes.comments import removed
from adtool.fixes.edits import applied
from adtool.fixes.updates import atomic
from adtool.suppressions import Comment

FILE = "/p/kernels.py"
HEAD = "import engine as wp\n@wp.kernel\ndef f(g: wp.array(dtype=float)):\n    i = wp.tid()\n"


def told(monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    monkeypatch.setitem(linecache.cache, FILE, (len(text), None, text.splitlines(True), FILE))
    return text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("g[0] = g[0] + v  # é", "wp.atomic_add(g, 0, v)  # é"),
        ("g[i, 0] = 2.0 * v + g[i, 0]", "wp.atomic_add(g, i, 0, 2.0 * v)"),
        ("g[0] = wp.max(g[0], v)", "wp.atomic_max(g, 0, v)"),
        ("g[0] = v - g[0]", None),
        ("g[0] = v", None),
        ("t = g[0]; g[0] = t + v", None),
        ("g[0] = (g[0] +\n        v)", None),
        ("g[0] = g[0] + g[0]", None),
    ],
)
def test_one_line(monkeypatch: pytest.MonkeyPatch, before: str, after: str | None) -> None:
    text = told(monkeypatch, f"{HEAD}    {before}\n")
    fix = atomic(FILE, [5])
    if after is None:
        assert fix is None
    else:
        assert fix is not None and fix.safe
        assert applied(text.encode(), fix.edits).decode() == f"{HEAD}    {after}\n"


def test_not_where_the_engine_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    head = HEAD.replace("import engine as wp", "from engine import array, kernel, tid")
    told(monkeypatch, f"{head}    g[0] = g[0] + v\n")
    assert atomic(FILE, [5]) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # adtool: ignore[G001]\n", "x = 1\n"),
        ("x = 1  # adtool: ignore[G001]", "x = 1"),
        ("y = 1\n# adtool: ignore[G001]\nx = 1\n", "y = 1\nx = 1\n"),
        ("x = '#'  # adtool: ignore[G001]\n", "x = '#'\n"),
        ("x = 1  # adtool: ignore[G001] and a word\n", None),
        ("x = 1  # noqa # adtool: ignore[G001]\n", "x = 1  # noqa\n"),
    ],
)
def test_a_comment(monkeypatch: pytest.MonkeyPatch, before: str, after: str | None) -> None:
    text = told(monkeypatch, before)
    at = text.index("# adtool")
    line, column = text[:at].count("\n") + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    end = column + len("# adtool: ignore[G001]")
    fix = removed(Comment(FILE, line, column, end, ("G001",)))
    assert (None if fix is None else applied(text.encode(), fix.edits).decode()) == after
    assert removed(Comment(FILE, line, column, end, ("G001", "G002"))) is None
