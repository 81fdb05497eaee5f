"""Edits leave everything else of a file as it is; diffs are those that other tools take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from adtool.fixes.edits import EditError, apart, applied, diff, lines_of
from adtool.report import Edit


def edit(line: int, column: int, text: str, end: int = 0, end_line: int = 0) -> Edit:
    return Edit("a.py", line, column, end_line or line, end or column, text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a = 1\r\nb = 2\r\n", b"a = 1\r\nnew\r\nb = 3\r\n"),
        (b"a = 1\nb = 2", b"a = 1\nnew\nb = 3"),
        (b"\xef\xbb\xbfa = 1\nb = 2\n", b"\xef\xbb\xbfa = 1\nnew\nb = 3\n"),
        (b"a = 1\rb = 2\r", b"a = 1\rnew\rb = 3\r"),
        (b"a = 1\r\nb = 2\n", b"a = 1\r\nnew\r\nb = 3\n"),
        ("a = 'é'\nb = 2\n".encode(), "a = 'é'\nnew\nb = 3\n".encode()),
    ],
)
def test_ends_of_lines_and_marks_stay(before: bytes, after: bytes) -> None:
    length = len(lines_of(before)[0])
    found = applied(before, [edit(1, length, "\nnew"), edit(2, 5, "3", 6)])
    assert found == after


def test_columns_are_characters_and_the_encoding_stays() -> None:
    before = "# coding: latin-1\nx = 'éé', f(1)\n".encode("latin-1")
    found = applied(before, [edit(2, 14, ", 2")])
    assert found == "# coding: latin-1\nx = 'éé', f(1, 2)\n".encode("latin-1")
    with pytest.raises(EditError, match="cannot be changed"):
        applied(before, [edit(2, 14, "日")])


@pytest.mark.parametrize("where", [(9, 1), (1, 9), (0, 1), (1, 0), (3, 2)])
def test_a_place_that_is_not_there(where: tuple[int, int]) -> None:
    with pytest.raises(EditError, match="no line"):
        applied(b"ab\nc\n", [edit(*where, "x")])


def test_what_is_no_text() -> None:
    with pytest.raises(EditError):
        applied(b"a = '\xff'\n", [edit(1, 1, "x")])
    with pytest.raises(EditError):
        applied(b"# coding: nonsense\n", [edit(1, 1, "x")])


def test_edits_at_one_place_are_not_apart() -> None:
    assert apart([edit(1, 1, "x")], [edit(1, 2, "y")])
    assert not apart([edit(1, 1, "x")], [edit(1, 1, "y")])
    assert not apart([edit(1, 3, "x")], [edit(1, 1, "y", end_line=2, end=2)])


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"a\nb\nc", b"a\nx\nc"), (b"a\nc", b"a\nc\nd"), (b"a\r\nb\r\n", b"a\r\nx\r\n"),
     (b"\xe9\nb\x0cc\n", b"\xe9\nx\x0cc\n"), (b"a\rb\nc\n", b"x\rb\nc\n")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.py", "some folder/é b.py"])
@pytest.mark.parametrize("tool", [["git", "apply", "--whitespace=nowarn"],
                                  ["patch", "-p1", "--binary", "-s"]])  # fmt: skip
def test_diffs_are_applied_by_others(
    tmp_path: Path, before: bytes, after: bytes, name: str, tool: list[str]
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before)
    text = b"what the script printed\n" + diff(before, after, name)
    subprocess.run(tool, cwd=tmp_path, input=text, check=True, timeout=60)
    assert path.read_bytes() == after
