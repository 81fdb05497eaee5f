"""Launches that are told as one, and the numbers of a row."""

from __future__ import annotations

import json
import math
import re

import pytest

from adtool.folds import folds, items_of, kinds, measures, span
from adtool.page.data import PageRun
from adtool.page.rows import launch_table
from adtool.render import github, junit, markdown
from adtool.render import json as json_format
from adtool.render.formats import Setting
from adtool.render.json import WORST
from adtool.render.rows import tables
from adtool.report import Pair, Worst, from_json
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
