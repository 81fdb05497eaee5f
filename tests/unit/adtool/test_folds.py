"""Launches that are told as one, and the numbers of a row."""

from __future__ import annotations

import io
import json
import math
import re

import numpy as np
import pytest

from adtool.folds import folds, items_of, kinds, measures, span
from adtool.page.data import PageData, PageRun
from adtool.page.document import render_html
from adtool.page.rows import launch_table
from adtool.page.summary import left_out
from adtool.render import github, junit, markdown
from adtool.render import json as json_format
from adtool.render.formats import Setting
from adtool.render.json import WORST
from adtool.render.rows import legend, tables
from adtool.render.text import make_console, print_report
from adtool.report import Pair, Report, Worst, from_json
from engine.autograd.comparison.judgement import worst_of
from tests.reports import finding, launch, pair, report

MANY = 1000
BAD = 200


def off(error: float) -> Pair:
    """A pair whose worst entry is off by so much, while another one is off by more than that."""
    worst = Worst(0, 0, 1.0 + error, 1.0, "y[0]", "x[0]", error, 1e-5)
    verdict = "fail" if error > 1e-5 else "pass"
    return pair(verdict, worst=worst, max_abs_error=7.0 * error, max_rel_error=3.0 * error)


def looped() -> tuple[object, ...]:
    """A kernel in a loop, wrong in a part of its launches; the worst of these is launch 37."""
    errors = [1e-3 * (1 + (i == 37)) if i < BAD else 1e-9 for i in range(MANY)]
    return tuple(launch(i, off(e), off(1e-9)) for i, e in enumerate(errors))


def test_all_numbers_of_a_row_are_of_one_entry() -> None:
    m = measures(off(0.25))
    assert (m.error, m.relative, m.adjoint, m.reference) == (0.25, 0.25, 1.25, 1.0)
    assert not m.direction
    ((table,), _) = tables(report(launches=(launch(0, off(0.25)),)))
    row = table.rows[0]
    assert (row.error, row.relative, row.ad, row.reference) == ("0.25", "0.25", "1.25", "1")


def wrong_by_a_factor(error: float, noise: float = 0.0) -> Pair:
    """A pair whose derivative has the wrong sign: its error is twice the reference."""
    reference = error / 2.0
    worst = Worst(0, 0, -reference, reference, rel_error=2.0, allowed=1e-5 * error * (1.0 + noise))
    return pair("fail", worst=worst)


def test_of_equal_relative_errors_the_largest_is_shown() -> None:
    """Whatever their order is, and whichever of them rounding puts first."""
    errors = [0.2, 0.99, 1.1, 0.5]
    for shift in range(4):
        for noise in (0.0, 1e-9, 5e-3):
            order = errors[shift:] + errors[:shift]
            pairs = [wrong_by_a_factor(e, noise * (e == 1.1)) for e in order]
            (fold,) = folds(items_of(launch(i, p) for i, p in enumerate(pairs)))
            assert measures(fold.worst.pair or pair()).error == pytest.approx(1.1)
    further = [wrong_by_a_factor(1.1, 0.02), wrong_by_a_factor(0.2)]
    (fold,) = folds(items_of(launch(i, p) for i, p in enumerate(further)))
    assert measures(fold.worst.pair or pair()).error == pytest.approx(0.2)


def test_a_tie_is_the_same_between_launches_as_between_entries() -> None:
    """The rule is written twice, since reports are shown without loading the engine."""
    dice = np.random.default_rng(4)
    for _ in range(200):
        excess = dice.choice([1.0, 1.005, 1.02, 0.0, 2.0, math.inf], size=6) * 1e3
        error = np.round(dice.random(6), 1)
        pairs = [
            pair("fail", worst=Worst(0, 0, e, 0.0, allowed=e / x if x else None))
            for e, x in zip(error.tolist(), excess.tolist(), strict=True)
        ]
        shown = [items_of([launch(i, p)])[0] for i, p in enumerate(pairs)]
        mine = np.array([i.excess for i in shown])
        sizes = np.array([i.size for i in shown])
        worst = folds(shown)[0].worst
        assert shown.index(worst) == worst_of(mine, sizes)[0]


def test_legends_look_like_no_finding() -> None:
    """A search of a log for errors finds errors; a fraction is explained where there is one."""
    along = Worst(-1, -1, 1.5, 1.0, rel_error=0.5, allowed=1.0)
    some = pair(worst=along, directional=3)
    whole = report(launches=tuple(launch(i, some) for i in range(MANY)))
    parts = report(launches=(*whole.launches, launch(MANY, pair("fail"))))
    for given, fraction in ((whole, False), (parts, True)):
        marks = legend(tables(given)[0])
        assert marks.startswith("columns: ") and "\n" not in marks
        assert (f"{MANY}/{MANY + 1} stands for" in marks) == fraction
        for words in (marks, verdict_like(given)):
            assert not re.search(r"(error|warning|note|fail)(\[\w+\])?:", words)
    assert legend(tables(report(launches=(launch(0, pair()),)))[0]) == ""


@pytest.mark.parametrize(("relative", "larger"), [(0.5, False), (0.01, True), (None, False)])
def test_a_relative_error_of_another_size_is_explained(
    relative: float | None, larger: bool
) -> None:
    shown = pair(worst=Worst(0, 0, 1.5, 1.0, rel_error=relative, allowed=1.0))
    marks = legend(tables(report(launches=(launch(0, shown),)))[0])
    assert ("relative to them" in marks) == larger


def verdict_like(given: Report) -> str:
    """All that `adtool check` prints of a report without findings."""
    out = io.StringIO()
    print_report(given, make_console(out, True, width=100))
    return out.getvalue()


def test_equal_calls_of_a_framework_are_a_row_and_wrong_ones_come_first() -> None:
    """However few there are: their numbers say nothing to the program's author."""
    bad = [launch(i, pair("fail"), framework="JAX", kernel="f") for i in range(1, 9)]
    good = [launch(i, pair(), framework="JAX", kernel="g") for i in (0, 9, 10)]
    mixed = sorted((*bad, *good), key=lambda x: x.index)
    ((table,), _) = tables(report(launches=tuple(mixed)))
    assert [(r.launch, r.kernel, r.verdict) for r in table.rows] == [
        ("x8", "f", "fail"), ("x3", "g", "pass"),
    ]  # fmt: skip
    page = launch_table(PageRun("s.py", report(launches=tuple(mixed))))
    assert [f[1] for f in page["folds"]] == ["x8", "x3"]
    ((every,), _) = tables(report(launches=tuple(mixed)), verbose=True)
    assert [r.launch for r in every.rows] == [str(i) for i in range(11)]


def test_a_direction_says_so() -> None:
    along = Worst(-1, -1, 1.5, 1.0, rel_error=0.5, allowed=1.0)
    ((table,), _) = tables(report(launches=(launch(0, pair(worst=along)),)))
    assert table.rows[0].error == "0.5 d"


def test_no_error_is_relative_to_what_may_be_zero() -> None:
    zero = Worst(0, 0, 0.0, -9.25e-12, rel_error=None, allowed=1e-8)
    given = report(launches=(launch(0, pair(worst=zero, max_rel_error=1.0)),))
    ((table,), _) = tables(given)
    row = table.rows[0]
    assert (row.error, row.relative, row.reference, row.verdict) == (
        "9.3e-12", "-", "-9.25e-12", "pass",
    )  # fmt: skip
    (cells,) = launch_table(PageRun("s.py", given))["rows"]
    assert cells[7:11] == [9.25e-12, None, 0, -9.25e-12]


def test_what_is_not_finite_in_another_precision_has_no_entry() -> None:
    seen = pair("nan", max_abs_error=math.nan, max_rel_error=math.nan)
    m = measures(seen)
    assert m.adjoint is m.reference is None and math.isnan(m.error or 0.0)


def test_a_loop_is_a_row_for_each_verdict_with_the_worst() -> None:
    given = report(launches=looped())
    ((table,), left_out) = tables(given)
    bad, good = table.rows
    assert left_out == 0 and table.folded
    assert (bad.launch, bad.error, bad.verdict) == (f"{BAD}/{2 * MANY}", "0.002", "fail")
    assert (good.launch, good.verdict) == (f"{2 * MANY - BAD}/{2 * MANY}", "pass")
    ((whole,), _) = tables(given, verbose=True)
    assert len(whole.rows) == 2 * MANY and not whole.folded


def test_all_launches_of_a_kernel_are_told_without_a_part() -> None:
    launches = tuple(launch(i, off(1e-3)) for i in range(MANY))
    (fold,) = folds(items_of(launches))
    assert fold.share == f"x{MANY}" and fold.total == MANY


def test_kernels_of_one_name_are_two() -> None:
    launches = (launch(0, pair()), launch(1, pair(), file="/w/other.py"))
    assert [len(k) for k in kinds(items_of(launches))] == [1, 1]


@pytest.mark.parametrize(
    ("tapes", "words"),
    [([3], "tape 3"), ([0, 1, 2], "tapes 0 to 2"), ([0, 2, 7], "3 tapes from 0 to 7")],
)
def test_spans(tapes: list[int], words: str) -> None:
    assert span(tapes) == words


def test_every_format_folds_a_loop() -> None:
    given = report(launches=looped(), findings=(finding(count=BAD),))
    setting = Setting("/w", "/w")
    assert len(github.render([given], setting).splitlines()) == 1
    xml = junit.render([given], setting)
    assert xml.count("<testcase") == 2  # the pair, and the tape as a whole
    assert xml.count("<failure") == 1
    assert f"fail in {BAD} of {2 * MANY:,} launches; the worst is launch 0:37" in xml
    assert sum(line.startswith("|") for line in markdown.render([given], setting).split("\n")) == 7
    table = launch_table(PageRun("s.py", given))
    assert [f[:2] for f in table["folds"]] == [
        [2 * 37, f"{BAD}/{2 * MANY}"], [1, f"{2 * MANY - BAD}/{2 * MANY}"],
    ]  # fmt: skip
    assert len(table["rows"]) == 2 * MANY


def briefly() -> Report:
    """Pairs by themselves, some of a sum over inputs, and some that a whole tape answers for."""
    joint = pair(joint=True, checked=0, directional=1, worst=None, max_abs_error=0.0625)
    whole = pair(by_whole=True, checked=0, worst=None, max_abs_error=None, max_rel_error=None)
    return report(
        launches=(launch(0, off(1e-9)), launch(1, joint), launch(2, joint), launch(3, whole))
    )


def test_no_format_shows_numbers_of_a_sum_as_those_of_a_pair() -> None:
    given, setting = briefly(), Setting("/w", "/w")
    ((table,), _) = tables(given, True)
    rows = [(r.checked, r.error, r.relative, r.ad, r.reference, r.verdict) for r in table.rows]
    assert rows[1:] == [
        ("joint", *4 * "-", "pass"), ("joint", *4 * "-", "pass"), ("whole", *4 * "-", "pass"),
    ]  # fmt: skip
    assert "-" not in rows[0]
    assert "0.0625" not in markdown.render([given], setting)
    assert "| joint | - | - | - | - | pass |" in markdown.render([given], setting)
    page = launch_table(PageRun("s.py", given))
    assert [r[5] for r in page["rows"]] == [9, "joint", "joint", "whole"]
    assert [r[7:11] for r in page["rows"][1:]] == 3 * [4 * [None]]
    pairs = [p for x in from_json(json_format.render([given], setting)).launches for p in x.pairs]
    assert [(p.joint, p.by_whole, p.worst is None) for p in pairs[1:]] == [
        (True, False, True), (True, False, True), (False, True, True)
    ]  # fmt: skip


def test_a_row_for_launches_that_were_looked_at_briefly_says_so() -> None:
    joint, whole = (x.pairs[0] for x in briefly().launches[2:])
    for pairs, word in [((joint, joint), "joint"), ((whole, whole), "whole"),
                        ((whole, joint), "joint"), ((off(1e-9), joint), "9+1d")]:  # fmt: skip
        looped = tuple(launch(i, *pairs) for i in range(13))
        ((table,), _) = tables(report(launches=looped))
        assert [r.checked for r in table.rows] == ["117+13d" if word == "9+1d" else word], pairs


def test_every_format_says_what_was_looked_at_briefly() -> None:
    lines = [
        "2 launches were checked only along one random direction through several inputs at once, "
        "because similar launches were checked in full",
        "1 launch was checked only as parts of whole tapes, because many "
        "similar launches were checked in full",
    ]
    given = briefly()
    for verbose in (False, True):
        out = io.StringIO()
        print_report(given, make_console(out, True, width=400), verbose)
        assert all(line in out.getvalue().split("\n") for line in lines)
    assert all(f"- {line}\n" in markdown.render([given], Setting("/w", "/w")) for line in lines)
    assert [x.why for x in left_out(PageRun("s.py", given))] == lines
    assert left_out(PageRun("s.py", report())) == ()
    text = render_html(PageData((PageRun("s.py", given),), "", "adtool", ()))
    assert all(line in text for line in lines)
    assert "Everything that was recorded was checked" not in text


def test_json_has_each_launch_in_a_line_and_the_worst_entries_alone() -> None:
    given = report(launches=looped())
    text = json_format.render([given], Setting())
    rows = [x for x in text.split("\n") if x.lstrip().startswith('{"tape":')]
    assert len(rows) == MANY
    assert len(text) < 850 * MANY  # of two pairs each
    found = from_json(text)
    assert len(found.launches) == MANY
    pairs = [p for x in found.launches for p in x.pairs]
    assert [p.verdict for p in pairs] == [p.verdict for x in given.launches for p in x.pairs]
    assert found.launches[37].pairs[0].worst == given.launches[37].pairs[0].worst
    for verdict in ("fail", "pass"):
        kept = [p for p in pairs if p.verdict == verdict and p.worst is not None]
        assert len(kept) == WORST
    assert json.loads(text)["launches"][0]["pairs"][0]["max_abs_error"] == 7e-3


def test_json_of_few_launches_leaves_nothing_out() -> None:
    given = report(launches=tuple(launch(i, off(1e-3)) for i in range(WORST)))
    assert from_json(json_format.render([given], Setting())).launches == given.launches
    several = json_format.render([given, given], Setting(count=2))
    assert len(re.findall(r'^ +\{"tape": 0', several, re.MULTILINE)) == 2 * WORST
