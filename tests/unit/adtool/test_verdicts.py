"""The words for what a run came to, the same in every place."""

from __future__ import annotations

import io
from typing import Any

import pytest

from adtool.counts import counted, more, plural
from adtool.page.data import PageRun
from adtool.page.summary import summary
from adtool.render import markdown
from adtool.render.formats import Setting
from adtool.render.text import make_console, print_runs, print_summary
from adtool.report import Failure
from adtool.testing.summary import lines
from adtool.verdicts import kind, tally, verdict
from tests.reports import finding, report

WARNING = finding("G006", severity="warning")
NOTE = finding("G005", severity="note")
HIDDEN = finding("G006", severity="warning", suppressed=True, suppressed_by="--ignore")
RUNS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "passed", "passed"),
    ({"findings": (NOTE, HIDDEN)}, "passed", "passed"),
    ({"findings": (WARNING, NOTE)}, "passed with 1 warning", "passed with warnings"),
    ({"findings": (WARNING, WARNING)}, "passed with 2 warnings", "passed with warnings"),
    ({"findings": (WARNING,), "gate": "warning"}, "failed", "failed"),
    ({"findings": (WARNING, finding())}, "failed", "failed"),
    ({"error": Failure("raised", "it raised")}, "not checked", "not checked"),
]


@pytest.mark.parametrize(("given", "words", "which"), RUNS)
def test_every_place_says_the_same(given: dict[str, Any], words: str, which: str) -> None:
    made = report(**given)
    assert (verdict(made), kind(made)) == (words, which)
    out = io.StringIO()
    print_summary(made, make_console(out, True, width=100))
    assert f" s: {words}" in out.getvalue()
    if which == "passed with warnings":
        assert "warning" not in out.getvalue().partition(words)[2]  # not said twice
    out = io.StringIO()
    print_runs([made, report()], make_console(out, True, width=100))
    shown = out.getvalue().splitlines()
    assert shown[1].split("  ")[1].strip() == words
    head = summary(PageRun("s.py", made))
    assert (head.verdict, head.word) == (which, words)
    assert markdown.render([made], Setting()).startswith(f"## `springs.py`: {words}\n")


def test_reasons_that_are_cut_say_so() -> None:
    reasons = ["the script calls no handwritten gradient " * 3, "short"]
    made = [report(error=Failure("script", why)) for why in reasons]
    out = io.StringIO()
    print_runs(made, make_console(out, True, width=80))
    long, short = out.getvalue().splitlines()[1:3]
    assert len(long) == 80 and long.endswith("…")
    assert short.endswith("  short")


def test_several_runs() -> None:
    made = [report(**given) for given, _, _ in RUNS]
    assert tally(made) == "7 scripts: 2 passed, 2 passed with warnings, 2 failed, 1 not checked"
    assert "## adtool: " + tally(made) in markdown.render(made, Setting(count=7))


def test_pytest_says_it_too() -> None:
    entry = {
        "test": "t.py::test", "tapes": 1, "launches": 1, "pairs": 1, "expected": 0,
        "suppressed": 0, "failed": False, "unchecked": "",
        "findings": [("G006", "warning", "unsure"), ("G005", "note", "a kink")],
    }  # fmt: skip
    (first, colour), *_ = lines([entry], False, {})
    assert first == "1 test, 1 tape, 1 launch, 1 pair checked: passed with 1 warning (1 note)"
    assert colour == "yellow"


@pytest.mark.parametrize(
    ("word", "many"),
    [("launch", "launches"), ("entry", "entries"), ("array", "arrays"), ("tape", "tapes"),
     ("access", "accesses"), ("such access", "such accesses"), ("box", "boxes")],
)  # fmt: skip
def test_plurals(word: str, many: str) -> None:
    assert plural(word) == many
    assert (counted(1, word), counted(0, word)) == (f"1 {word}", f"0 {many}")
    assert (counted(12_000, word), more(1, word)) == (f"12,000 {many}", f"1 more {word}")
    assert more(2, word) == f"2 more {many}"
