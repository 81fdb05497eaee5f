"""Comparison of a run with a baseline, by reports made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from adtool.accuracy.comparison import compared, known_of, updated
from adtool.accuracy.entries import Baseline, Entry, Expected, Known
from adtool.accuracy.judging import compare_report
from adtool.accuracy.measuring import Measured, measured, measured_report
from adtool.report import EndToEnd, Report, at_gate
from tests.reports import finding, launch, pair, report


def entries(given: Report) -> tuple[Entry, ...]:
    return tuple(m.entry for m in measured_report(given, "springs.py", "/w"))


def of(*pairs: Any, **given: Any) -> Report:
    return report(launches=(launch(0, *pairs),), **given)


def judged(now: Report, before: Report, factor: float = 10.0, known: Any = ()) -> Report:
    expected = Expected("springs.py", "/w", entries(before), known, factor)
    return compare_report(now, expected)[0]


def sized(error: float | None = 1e-12, off: float = 0.0, **given: Any) -> Any:
    """A pair whose derivative is of size 1."""
    return pair(max_abs_error=error, max_rel_error=error, scale=1.0, off=off, **given)


def codes(given: Report) -> list[str]:
    return [f.code for f in given.findings]


def test_the_same_is_silent() -> None:
    for p in (sized(1e-4, 1e-3), sized(0.0), sized(None), pair("nan", max_rel_error=math.nan)):
        found = judged(of(p), of(p))
        assert (codes(found), found.notes) == ([], ())


@pytest.mark.parametrize(
    ("before", "now", "fires"),
    [
        (sized(1e-5), sized(0.9e-4), False),
        (sized(1e-5), sized(1.1e-4), True),
        (sized(1e-12), sized(0.9e-6), False),  # ten times the floor, and not what it was
        (sized(1e-12), sized(1.1e-6), True),
        (sized(off=1e-7), sized(off=0.9e-5), False),
        (sized(off=1e-7), sized(off=1.1e-5), True),
        (sized(1e-5), sized(math.nan), True),
        (sized(1e-5), pair("nan", max_abs_error=math.nan, max_rel_error=math.nan), False),  # G002
        (sized(), sized(verdict="inconclusive"), True),
        (sized(), pair("skipped", max_abs_error=None, max_rel_error=None), True),
        (sized(verdict="inconclusive"), sized(), False),
        (sized(), sized(verdict="kink"), False),
        (sized(), sized(off=1e-3, verdict="rounding"), True),
    ],
)
def test_regressions(before: Any, now: Any, fires: bool) -> None:
    found = judged(of(now), of(before))
    assert codes(found) == ["G015"] * fires
    assert (found.ok, found.exit_code) == (not fires, int(fires))
    if fires:
        (f,) = found.findings
        assert (f.severity, f.kernel, f.file, f.line, f.launch) == (
            "error", "springs", "/w/springs.py", 3, 0
        )  # fmt: skip
        assert "`d y / d x`" in f.message and f.fingerprint


def test_the_factor_is_the_users() -> None:
    now, before = of(sized(1e-4)), of(sized(1e-5))
    assert codes(judged(now, before, 20.0)) == []
    assert codes(judged(now, before, 5.0)) == ["G015"]


def test_tapes_as_wholes() -> None:
    before = of(sized(), end_to_end=(EndToEnd(0, "pass", 1e-9),))
    now = of(sized(), end_to_end=(EndToEnd(0, "pass", 1e-4),))
    (f,) = judged(now, before).findings
    assert f.code == "G015" and "the tape of `springs`" in f.message
    assert (f.tape, f.launch, f.file) == (0, -1, None)


def test_a_pair_that_is_not_checked_any_more() -> None:
    both = of(sized(), sized(input="k"))
    (f,) = judged(of(sized()), both).findings
    assert f.code == "G015" and "`d y / d k`" in f.message and "is not checked now" in f.message
    # An argument that has another name now is no loss.
    renamed = judged(of(sized(), sized(input="stiffness")), both)
    assert codes(renamed) == []
    assert [n.split(":")[1] for n in renamed.notes] == [
        " not yet in the file", " expired, no longer recorded"
    ]  # fmt: skip
    # Nor is what was left out, or came to nothing.
    for part in (of(sized(), end_to_end=()), of(sized(), partial=True)):
        found = judged(part, both)
        assert (codes(found), found.notes) == ([], ())


def test_kernels_that_come_and_go() -> None:
    before = of(sized())
    now = report(launches=(launch(0, sized(), kernel="other"),))
    found = judged(now, before)
    assert codes(found) == [] and found.ok
    assert any("not yet in the file" in n and "`other`" in n for n in found.notes)
    assert any("expired" in n and "`springs`" in n for n in found.notes)


def test_better_is_a_note() -> None:
    found = judged(of(sized(1e-6)), of(sized(1e-4)))
    assert codes(found) == []
    assert any("more accurate" in n and "error 1e-06, was 0.0001" in n for n in found.notes)


@pytest.mark.parametrize(
    ("adjoint", "error", "fires"),
    [(3.0, 0.5, False), (3.2, 0.6, False), (30.0, 14.0, True), (300.0, 149.0, True),
     (0.02, 0.99, False)],
)  # fmt: skip
def test_a_known_wrong_gradient_that_gets_worse(adjoint: float, error: float, fires: bool) -> None:
    """The derivative is 2; the size that a pair has is that of the adjoint, right or wrong."""

    def wrong(adjoint: float, error: float) -> Report:
        off = abs(adjoint - 2.0)
        p = pair("fail", max_abs_error=off, max_rel_error=error, scale=adjoint, off=0.0)
        return of(p, findings=(finding(),))

    before = wrong(3.0, 0.5)
    known = known_of(before.findings, Expected("springs.py", "/w", ()), "error")
    found = judged(wrong(adjoint, error), before, known=known)
    assert [f.code for f in found.findings if not f.suppressed] == ["G015"] * fires


def test_a_part_says_nothing_of_the_rest() -> None:
    skipped = EndToEnd(0, "skipped", None, "only some of its launches were selected")
    for partial in (False, True):
        given = of(sized(), end_to_end=(skipped,), partial=partial)
        assert [e.tape for e in entries(given)] == [False] + [True] * (not partial)
        gap = finding("G012", severity="warning")
        known = known_of([gap], Expected("springs.py", "/w", ()), "error", partial)
        assert [k.code for k in known] == ["G012"] * (not partial)


def test_known_findings_pass_and_expire() -> None:
    wrong = of(pair("fail"), findings=(finding(),))
    assert not wrong.ok
    expected = Expected("springs.py", "/w", entries(wrong))
    known = known_of(wrong.findings, expected, "error")
    assert [(k.code, k.file) for k in known] == [("G001", "springs.py")]
    found = judged(wrong, wrong, known=known)
    assert found.ok
    assert [(f.suppressed, f.suppressed_by) for f in found.findings] == [(True, "baseline")]
    assert found.notes == ()
    # Another one is not known, nor the same one if it is worse.
    assert not judged(replace(wrong, findings=(finding(fingerprint="ff"),)), wrong, known=known).ok
    mild = tuple(replace(k, severity="warning") for k in known)
    assert not judged(wrong, wrong, known=mild).ok
    gone = judged(of(sized()), of(sized()), known=known)
    assert gone.ok and any("expired" in n and "G001" in n for n in gone.notes)


def test_a_new_wrong_pair_is_not_hidden_by_a_known_finding() -> None:
    """A finding is one of a kernel: the known one stands for the new pair, too."""
    before = of(pair("fail"), sized(input="k"), findings=(finding(),))
    now = of(pair("fail"), pair("fail", input="k"), findings=(finding(),))
    known = known_of(before.findings, Expected("springs.py", "/w"), "error")
    found = judged(now, before, known=known)
    assert [f.code for f in found.findings if not f.suppressed] == ["G015"]
    assert not found.ok


def test_what_is_known_is_at_the_gate_or_a_warning() -> None:
    some = (
        finding(severity="warning"), finding("G005", severity="note"),
        finding("G007", suppressed=True, suppressed_by="comment"), finding("G015"),
    )  # fmt: skip
    expected = Expected("springs.py", "/w")
    assert [k.code for k in known_of(some, expected, "error")] == ["G001"]
    assert [k.code for k in known_of(some, expected, "note")] == ["G001", "G005"]
    assert at_gate("note", "note")


def test_noise_changes_no_line() -> None:
    before = of(sized(1e-5, 1e-4))
    expected = Expected("springs.py", "/w", entries(before))
    for p, same in ((sized(1.9e-5, 0.6e-4), True), (sized(2.1e-5, 1e-4), False)):
        found = measured_report(of(p), "springs.py", "/w")
        kept = updated(found, expected, True)
        assert (kept[0] == expected.entries[0]) is same
    # Growth by little steps is measured from where it began.
    slow = of(sized(1.9e-5, 1e-4))
    kept = updated(measured_report(slow, "springs.py", "/w"), expected, True)
    assert kept[0].error == 1e-5


def test_adopting_takes_what_is_new_alone() -> None:
    before, now = of(sized(1e-5)), of(sized(1e-3), sized(input="k"))
    expected = Expected("springs.py", "/w", entries(before))
    found = measured_report(now, "springs.py", "/w")
    comparison = compared(found, ["springs"], expected, True)
    kept = {(e.input, e.error) for e in updated(found, expected, True, comparison) if not e.tape}
    assert kept == {("x", 1e-5), ("k", 1e-12)}


def names(found: tuple[Measured, ...]) -> list[str]:
    return [m.entry.kernel for m in found if not m.entry.tape]


def test_kernels_of_one_name_are_told_apart_by_their_files() -> None:
    some = (launch(0, sized()), launch(1, sized(), file="/w/lib/more.py"),
            launch(2, sized(), file="/elsewhere/far.py"))  # fmt: skip
    found = measured(some, (), "springs.py", "/w")
    assert names(found) == ["springs@far.py", "springs@lib/more.py", "springs@springs.py"]


@pytest.mark.parametrize(("error", "fires"), [(1e-12, False), (1e-3, True)])
def test_a_kernel_that_gets_a_namesake(error: float, fires: bool) -> None:
    before = report(launches=(launch(0, sized(), kernel="f", file="/w/lib.py"),))
    for first, second in ((error, 1e-12), (1e-12, error)):
        now = report(
            launches=(
                launch(0, sized(first), kernel="f", file="/w/lib.py"),
                launch(1, sized(second), kernel="f", file="/w/other.py"),
            )
        )
        assert codes(judged(now, before)) == ["G015"] * fires


def test_the_end_of_a_fit_is_measured_by_its_beginning() -> None:
    first = launch(0, sized(1e-12))
    last = launch(1, pair("rounding", max_abs_error=1e-9, max_rel_error=0.5, scale=1e-9, off=1e-9))
    (m,) = measured((first, last), (), "springs.py", "/w")
    assert m.entry.verdict == "pass"
    assert m.entry.error == pytest.approx(1e-7) and m.entry.rounding == pytest.approx(1e-7)


def test_what_has_no_reference_has_no_error() -> None:
    for verdict in ("inconclusive", "nondeterministic", "kink", "skipped"):
        (m,) = measured((launch(0, sized(0.5, verdict=verdict)),), (), "springs.py", "/w")
        assert (m.entry.error, m.entry.rounding) == (None, None)
    assert Baseline((m.entry,), (Known("a", "G001", "0", "error", "k", ""),)).known


def test_a_pair_that_is_not_there_is_lost_only_with_its_gradient() -> None:
    """A kernel that reads an array no more has no such pair; a lost gradient hides one."""
    before = of(sized(), sized(input="y"))
    assert codes(judged(of(sized()), before)) == []  # y is written still, and read no more
    (note,) = judged(of(sized()), before).notes
    assert "expired" in note and "`d y / d y`" in note
    gone = judged(of(sized(input="y")), before)  # x has no gradient any more
    assert codes(gone) == ["G015"] and "is not checked now" in gone.findings[0].message


def test_digits_that_are_lost_between_launches() -> None:
    def tape(rounding: float | None) -> Report:
        return of(sized(), end_to_end=(EndToEnd(0, "pass", 1e-9, rounding=rounding),))

    for before, now, fires in (
        (1e-7, 0.9e-4, False), (1e-7, 1.1e-4, True), (1e-3, 0.9e-2, False), (1e-3, 1.1e-2, True),
        (None, 1.0, False), (1e-3, None, False),
    ):  # fmt: skip
        found = judged(tape(now), tape(before))
        assert codes(found) == ["G015"] * fires, (before, now)
        if fires:
            assert "the tape is less accurate" in found.findings[0].message


def test_noise_of_the_reference_is_no_error() -> None:
    noisy = sized(1e-5, forward_error=1e-15)
    entry = next(e for e in entries(of(noisy)) if not e.tape)
    assert entry.error == 1e-15
    assert codes(judged(of(noisy), of(sized(1e-12)))) == []
    wrong = of(sized(0.5, forward_error=1e-15, verdict="fail"))
    assert next(e for e in entries(wrong) if not e.tape).error == 0.5
