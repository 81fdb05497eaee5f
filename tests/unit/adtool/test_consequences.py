"""Findings that follow from others are a line under these; so is what needs nothing, at the end."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import adtool
from adtool.consequences import arranged, headline
from adtool.fingerprints import linked
from adtool.render import github, junit, markdown, sarif
from adtool.render.formats import Setting
from adtool.render.text import make_console, print_report
from adtool.report import Finding
from adtool.rules.base import mark_of
from tests.reports import finding, report

CAUSE = finding("G004", kernel="g", tape=2, launch=1, fingerprint="abc", message="no gradient: why")
FOLLOWS = finding(
    "G012", severity="note", kernel="f", message="kernel `f` was not checked: no input", help="see",
    fingerprint="def", follows=mark_of("G004", 2, 1),
)  # fmt: skip
OTHER = finding("G012", severity="note", message="something else was not checked: it is not")
IDLE = finding(
    "G003",
    severity="note",
    message="`x` (argument `a` of kernel `k`) was overwritten: 12 numbers",
    idle=True,
)


def found() -> tuple[Finding, ...]:
    return linked((CAUSE, FOLLOWS, OTHER, IDLE))


def text(verbose: bool, *findings: Finding) -> str:
    out = io.StringIO()
    print_report(report(findings=findings), make_console(out, True, width=80), verbose)
    return out.getvalue()


def test_a_mark_becomes_the_fingerprint_of_the_cause() -> None:
    _, follows, other, idle = found()
    assert (follows.follows, other.follows, idle.follows) == ("abc", "", "")


def test_without_its_cause_a_finding_stands_for_itself() -> None:
    (alone,) = linked((FOLLOWS,))
    assert alone.follows == ""
    hidden = finding("G004", tape=2, launch=1, fingerprint="abc", suppressed=True,
                     suppressed_by="--ignore")  # fmt: skip
    _, alone = linked((hidden, FOLLOWS))
    assert alone.follows == ""


def test_arranged() -> None:
    cause, follows, other, idle = found()
    whole, rest = arranged(found())
    assert [t.finding for t in whole] == [cause, other] and rest == [idle]
    assert whole[0].consequences == (follows,) and whole[1].consequences == ()
    assert headline(follows) == "note[G012] /w/springs.py:3: kernel `f` was not checked"
    assert headline(follows, cause) == "note[G012] line 3: kernel `f` was not checked"


def test_text_has_a_line_for_each_and_all_of_it_where_asked() -> None:
    lines = text(False, *found()).splitlines()
    at = lines.index("because of it (-v shows more):")
    assert lines[at + 1] == "  note[G012] line 3: kernel `f` was not checked"
    at = lines.index("no action needed (-v shows more):")
    assert lines[at + 1] == "  note[G003] /w/springs.py:3: `x` was overwritten"
    assert not any("no input" in x or "12 numbers" in x for x in lines)
    assert any("something else was not checked: it is not" in x for x in lines)
    whole = text(True, *found())
    assert "kernel `f` was not checked: no input" in whole and "12 numbers" in whole
    assert "because of it" not in whole
    assert "2 notes" in text(False, CAUSE, OTHER, IDLE)  # they count all the same


def test_other_formats() -> None:
    given, setting = report(findings=found()), Setting("/w", "/w")
    shown = markdown.render([given], setting)
    assert "because of it:\n\n- note\\[G012\\] line 3: kernel `f` was not checked" in shown
    assert "no input" not in shown and "12 numbers" not in shown
    notes = github.render([given], setting)
    assert notes.count("::notice ") == 2 and "because of it%3A" not in notes
    assert "because of it: note[G012] line 3: kernel `f` was not checked" in notes
    for whole in (sarif.render([given], setting), junit.render([given], setting)):
        assert "no input" in whole and "12 numbers" in whole


def test_paths_in_sentences_are_relative_to_the_repository() -> None:
    said = finding(message="it was made at /w/a/b.py:3 (/w/c.py:4), not at /else/d.py:5",
                   notes=("read by `k` at /w/a/b.py:9",), help="see /w/README")  # fmt: skip
    given = report(findings=(said,))
    for words in (
        github.render([given], Setting("/elsewhere", "/w")),
        sarif.render([given], Setting("/w", "/w")),
    ):
        assert "made at a/b.py:3 (c.py:4), not at /else/d.py:5" in words
        assert "at a/b.py:9" in words and "see README" in words


def test_paths_in_sentences_are_relative_to_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = finding(message=f"it was made at {tmp_path}/b.py:3")
    assert "it was made at b.py:3" in junit.render([report(findings=(said,))], Setting())


# Nouns that sentences count; whoever writes one of them behind a number wants `counted` or `more`.
NOUNS = "row|launch|tape|finding|pair|entry|entries|script|note|warning|error|test|kernel|array"
MANY = re.compile(rf"\}} (?:more )?(?:{NOUNS})(?:e?s)\b(?! of )|\}} more entries\b")
OTHERS = ("of {total} kernels", "{report.error} errors")  # "3 of 71 kernels", "absolute errors"


def test_counts_with_nouns_come_from_one_place() -> None:
    root = Path(str(adtool.__file__)).parent
    bad = []
    for path in sorted(root.rglob("*.py")):
        if "selftest" in path.parts or path.name == "counts.py":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if MANY.search(line) and not any(words in line for words in OTHERS):
                bad.append(f"{path.name}:{number}: {line.strip()}")
    assert bad == []
