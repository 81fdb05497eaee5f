"""The text output, at 80 columns and without colour. UPDATE_SNAPSHOTS=1 rewrites the files."""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from adtool import status
from adtool.assemble import build_report
from adtool.render.progress import CheckProgress
from adtool.render.rows import checked, count, tables, value
from adtool.render.text import make_console, print_failure, print_report
from adtool.report import Failure, Problem
from engine.autograd import Entry, NonFinite
from engine.diagnostics import Span

SMALL = Entry(3, 2, -1.234567e-05, -2.345678e-05, 0.47, 1e-9)

Make = Callable[..., Any]

SNAPSHOTS = Path(__file__).parent / "snapshots"


def shown(session: Any, verbose: bool = False, width: int = 80, gate: Any = "error") -> str:
    stream = io.StringIO()
    console = make_console(stream, no_color=True, width=width)
    print_report(build_report(session, gate), console, verbose)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def failure(given: Failure, width: int = 80) -> str:
    stream = io.StringIO()
    print_failure(given, make_console(stream, no_color=True, width=width))
    return stream.getvalue()


def compare(name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.fixture
def broken(session: Make, launch: Make, pair: Make, source: Path) -> Any:
    """One of everything, in values that need their whole width."""
    at = NonFinite(
        "pos", (3,), float("-inf"), Span(str(source), 7, 23, 7, 42), "sqrt", (("pos[i]", "0.0"),)
    )
    long = {"kernel": "integrate_particles_in_contact"}
    return session(
        [
            launch(0, pair(), pair("fail", worst=SMALL)),
            launch(
                1,
                pair(
                    "nan", worst=Entry(3, 3, float("-inf"), -1.0), max_abs_error=float("inf"),
                    max_rel_error=float("inf"), nonfinite=at,
                ),
                **long,
            ),
            launch(2, pair("kink", directional=12, checked=4096), **long),
            launch(3, pair("inconclusive", reason="noise 0.6 above the tolerance"), **long),
            launch(4, skipped="no input array has requires_grad=True", kernel="clear"),
        ]
    )  # fmt: skip


def test_passing(session: Make, launch: Make, pair: Make) -> None:
    compare("passing", shown(session([launch(0, pair()), launch(1, pair(input="rest"))])))


def test_one_of_everything(broken: Any) -> None:
    compare("everything", shown(broken))


def test_a_long_tape_is_collapsed(session: Make, launch: Make, pair: Make) -> None:
    tape = [launch(i, pair("fail" if i % 25 == 7 else "pass")) for i in range(500)]
    text = shown(session(tape))
    compare("long", text)
    assert " 20/500 " in text and "480/500 " in text


def test_tapes_with_the_same_launches_share_a_table(
    session: Make, launch: Make, pair: Make
) -> None:
    tapes = [[launch(0, pair()), launch(1, pair("fail" if t == 5 else "pass"))] for t in range(200)]
    compare("many_tapes", shown(session(*tapes)))


@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_longer_than_the_terminal(broken: Any, verbose: bool) -> None:
    assert max(map(len, shown(broken, verbose).splitlines())) <= 80


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_column_is_lost(broken: Any, width: int) -> None:
    """Every cell's text is there."""
    report = build_report(broken, "error")
    text = shown(broken, width=width)
    squeezed = text.split("\n\n")[0]
    for table in tables(report)[0]:
        for row in table.rows:
            for cell in (row.launch, row.checked, row.error, row.relative, row.ad, row.reference):
                assert cell in squeezed
    for head in ("launch", "checked", "error", "relative", "AD", "reference", "verdict"):
        assert head in squeezed
    for verdict in ("pass", "fail", "nan", "kink", "inconclusive", "skipped"):
        assert verdict in squeezed


@pytest.mark.parametrize(
    ("relative", "text"),
    [(0.25, "0.25"), (0.0, "0"), (None, "-"), (1e200, ">1e+06"), (math.inf, ">1e+06")],
)
def test_relative_errors_that_mean_nothing(
    session: Make, launch: Make, pair: Make, relative: float | None, text: str
) -> None:
    worst = Entry(3, 2, -1.5, -2.0, relative, 2e-5)
    wrong = pair("fail", max_abs_error=0.7, max_rel_error=0.9, worst=worst)
    ((table,), _) = tables(build_report(session([launch(0, wrong)]), "error"))
    row = table.rows[0]
    assert (row.error, row.relative, row.ad, row.reference) == ("0.5", text, "-1.5", "-2")


def test_verbose_shows_every_launch(session: Make, launch: Make, pair: Make) -> None:
    text = shown(session([launch(i, pair()) for i in range(50)]), verbose=True, width=100)
    assert sum("spring_forces" in line for line in text.splitlines()) == 50


@pytest.mark.parametrize("width", [80, 90, 120])
def test_no_word_is_broken(broken: Any, width: int) -> None:
    table = shown(broken, width=width).split("\n\n")[0]
    for word in ("integrate_particles_in_contact", "inconclusive", "spring_forces"):
        assert word in table
    unsure = table.replace("inconclusive", "")
    assert "incon" not in unsure and "clusive" not in unsure


def test_markup_and_escapes_of_the_user_are_shown_as_they_are(
    session: Make, launch: Make, pair: Make
) -> None:
    unsure = pair("inconclusive", input="[red]x[/]", reason="\x1b[31m[bold]noise[/bold]\x07")
    text = shown(session([launch(0, pair(), unsure)]), width=120)
    assert "[red]x[/]" in text
    assert r"\x1b[31m[bold]noise[/bold]\x07" in text
    assert "\x1b" not in text


def test_a_long_source_line_keeps_the_caret_in_sight(
    session: Make, launch: Make, pair: Make, source: Path
) -> None:
    source.write_text("pad\n" * 4 + "x = " + "1 + " * 60 + "target\n")
    span = Span(str(source), 5, 245, 5, 251)
    text = shown(session([launch(0, pair("fail"), span=span)]))
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith("target"))
    assert lines[at + 1].strip("| ") == "^^^^^^"
    assert lines[at].index("target") == lines[at + 1].index("^")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [40, 80])
def test_a_source_line_that_is_cut_shows_it(
    session: Make, launch: Make, pair: Make, source: Path, width: int
) -> None:
    line = "def kernel(" + ", ".join(f"argument_{k}: float" for k in range(12)) + "):"
    source.write_text("pad\n" * 4 + line + "\n")
    for start, end in ((1, len(line) + 1), (100, len(line) + 1), (100, 140)):
        span = Span(str(source), 5, start, 5, end)
        text = shown(session([launch(0, pair("fail"), span=span)]), width=width)
        lines = text.splitlines()
        at = next(i for i, x in enumerate(lines) if x.startswith("5 | "))
        body, carets = lines[at][4:], lines[at + 1][4:]
        assert len(lines[at]) == width
        first, last = carets.index("^"), len(carets) - 1
        assert body[first : last + 1].strip("\u2026") in line[start - 1 : end - 1]
        assert body[last] != "\u2026" and body.endswith("\u2026") == (body[-1] != line[-1])
        assert body.startswith("\u2026") == (body[0] != line[0])


def test_ascii_terminals() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")
    console = make_console(stream, no_color=True, width=80)
    print_failure(Failure("raised", "the script raised Ärger"), console)
    stream.flush()
    assert rb"\xc4rger" in raw.getvalue()


def test_colour_only_where_wanted(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    report = build_report(broken, "error")

    def printed(no_color: bool) -> str:
        stream = io.StringIO()
        print_report(report, make_console(stream, no_color, 80))
        return stream.getvalue()

    assert "\x1b[" in printed(False)
    assert "\x1b" not in printed(True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(False)


def test_failure_with_traceback_and_problems(source: Path) -> None:
    text = failure(
        Failure(
            "engine",
            "the engine refused an operation of the script at springs.py:7",
            "see the manual",
            'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: [x]',
            (Problem("E104", "no overload", "cast it", "error", str(source), 7, 23, 7, 34),),
        )
    )
    compare("failure", text)


@pytest.mark.parametrize(
    ("entries", "directions", "text"),
    [(64, 0, "64"), (64, 3, "64+3d"), (0, 3, "3d"), (12_345, 0, "12k"), (4_096_000, 0, "4.1M")],
)
def test_counts(entries: int, directions: int, text: str) -> None:
    assert checked(entries, directions) == text


@pytest.mark.parametrize("number", [9_999, 10_000, 99_999, 999_999, 9_960_000, 10**9 - 1])
def test_counts_are_short(number: int) -> None:
    assert len(count(number)) <= 5


@pytest.mark.parametrize(
    "number", [0.0, -1.2345678e-30, 3.4028235e38, -0.33333334, 1e-45, 123456.789, float("-inf")]
)
def test_values_fit_their_column(number: float) -> None:
    assert len(value(number)) <= 9
    assert float(value(number)) == pytest.approx(number, rel=0.01)


class TestProgress:
    def test_appears_on_a_terminal_after_its_delay(self) -> None:
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=True, width=80)
        with CheckProgress(console, delay=0.0) as bar:
            bar(status.Status(status.SCRIPT, 3, kernel="k"))
            assert not stream.getvalue()
            bar(status.Status(status.CHECK, 3, 0, 2, 4, 5, 10, "my_[kernel]"))
        assert "checking tape 1 of 2" in stream.getvalue()
        assert "5/10" in stream.getvalue() and "0 of 0" not in stream.getvalue()
        assert "my_[kernel]" in stream.getvalue()

    def test_not_in_the_first_second(self) -> None:
        stream = io.StringIO()
        with CheckProgress(Console(file=stream, force_terminal=True)) as bar:
            bar(status.Status(status.CHECK, 3, 0, 2, 4, 5, 10, "k"))
        assert not stream.getvalue()

    def test_not_in_a_file(self) -> None:
        stream = io.StringIO()
        with CheckProgress(Console(file=stream), delay=0.0) as bar:
            bar(status.Status(status.CHECK, 3, 0, 2, 4, 5, 10, "k"))
        assert not stream.getvalue()


def test_only_render_imports_rich() -> None:
    root = Path(sys.modules["adtool"].__file__ or "").parent
    users = {p.parent.name for p in root.rglob("*.py") if "rich." in p.read_text()}
    assert users <= {"render"}
