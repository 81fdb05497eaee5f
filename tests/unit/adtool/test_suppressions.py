"""Findings that the user does not want to hear of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adtool.assemble import build_report
from adtool.exits import ToolError
from adtool.job import CheckOptions
from adtool.suppressions import Choice, codes, comments_of
from engine.diagnostics import Span

Make = Callable[..., Any]


@pytest.fixture
def wrong(session: Make, launch: Make, pair: Make) -> Make:
    """A session with a G001 on line 5, and what is given for it."""

    def make(**given: Any) -> Any:
        return session([launch(0, pair("fail"))], **given)

    return make


def comment(source: Path, line: int, text: str) -> None:
    lines = source.read_text().splitlines()
    lines[line - 1] += f"  {text}"
    source.write_text("\n".join(lines) + "\n")


def found(report: Any) -> list[tuple[str, bool, str | None]]:
    return [(f.code, f.suppressed, f.suppressed_by) for f in report.findings]


def test_by_option(wrong: Make) -> None:
    report = build_report(wrong(), "note", Choice(ignore=("G001",)))
    assert found(report) == [("G001", True, "--ignore")]
    assert (report.ok, report.exit_code) == (True, 0)
    report = build_report(wrong(), "note", Choice(select=("G002",)))
    assert found(report) == [("G001", True, "--select")] and report.ok
    report = build_report(wrong(), "note", Choice(select=("G001",)))
    assert found(report) == [("G001", False, None)] and report.exit_code == 1


def test_exit_zero_changes_the_exit_code_alone(wrong: Make, session: Make) -> None:
    report = build_report(wrong(), "error", exit_zero=True)
    assert (report.ok, report.exit_code) == (False, 0)
    assert build_report(session(), "error", exit_zero=True).exit_code == 2


@pytest.mark.parametrize("text", ["ignore[G001]", "ignore[wrong-gradient, G002]", "ignore [g001]"])
def test_by_a_comment(wrong: Make, source: Path, text: str) -> None:
    comment(source, 5, f"# adtool: {text}")
    report = build_report(wrong(), "error")
    assert ("G001", True, "comment") in found(report) and report.ok


def test_a_comment_for_something_else(wrong: Make, source: Path) -> None:
    comment(source, 5, "# adtool: ignore[G002]")
    report = build_report(wrong(), "error")
    assert found(report) == [("G001", False, None), ("unused-ignore", False, None)]
    note = report.findings[1]
    assert (note.severity, note.file, note.line) == ("note", str(source), 5)
    assert "ignore[G002]" in note.message and report.exit_code == 1


def test_a_comment_on_another_line(wrong: Make, source: Path) -> None:
    comment(source, 6, "# adtool: ignore[G001]")
    assert found(build_report(wrong(), "error"))[0] == ("G001", False, None)


def test_a_comment_on_a_statement_of_several_lines(session: Make, launch: Make, pair: Make,
                                                   source: Path) -> None:  # fmt: skip
    comment(source, 7, "# adtool: ignore[G001]")
    span = Span(str(source), 5, 1, 7, 10)
    report = build_report(session([launch(0, pair("fail"), span=span)]), "error")
    assert found(report) == [("G001", True, "comment")]


def test_a_right_program_without_comments_has_no_notes(session: Make, launch: Make, pair: Make,
                                                       source: Path) -> None:  # fmt: skip
    source.write_text(source.read_text() + 's = "# adtool: ignore[G001]"  # not adtool: a text\n')
    assert build_report(session([launch(0, pair())]), "note").findings == ()


def test_comments_that_mean_nothing(session: Make, launch: Make, pair: Make, source: Path) -> None:
    comment(source, 5, "# adtool: ignore")
    comment(source, 6, "# adtool: ignore[G999]")
    report = build_report(session([launch(0, pair())]), "error")
    first, second = (f.message for f in report.findings)
    assert "names no code" in first and "no finding has the code 'G999'" in second and report.ok


def test_unused_is_not_said_where_only_a_part_was_checked(
    session: Make, launch: Make, pair: Make, source: Path
) -> None:
    comment(source, 5, "# adtool: ignore[G001]")
    for options in (CheckOptions(kernels=("k",)), CheckOptions(tapes=(0,)),
                    CheckOptions(end_to_end=False)):  # fmt: skip
        made = session([launch(0, pair())], options=options)
        assert build_report(made, "note").findings == ()
    assert len(build_report(session([launch(0, pair())]), "note").findings) == 1


def test_codes() -> None:
    assert codes("--ignore", ["g001,G002", "wrong-gradient"]) == ("G001", "G002")
    with pytest.raises(ToolError, match="--select: unknown code 'G999'"):
        codes("--select", ["G999"])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_bytes(b"\xff\xfe\n(")
    assert list(comments_of(str(bad))) == list(comments_of(str(tmp_path / "none.py"))) == []
