from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adtool.faults import Seen
from adtool.job import CheckOptions
from adtool.report import Finding
from adtool.rules import load_rules
from engine import Fault
from engine.autograd import (
    Cause,
    Corner,
    Entry,
    Made,
    NonFinite,
    TapeResult,
    Unchecked,
    WholeResult,
)
from engine.diagnostics import Span

Make = Callable[..., Any]

RULES = {rule.code: rule for rule in load_rules()}


def findings(code: str, session: Any) -> list[Finding]:
    return list(RULES[code].check(session))


def test_files_are_found_by_name() -> None:
    import adtool.rules

    folder = Path(adtool.rules.__file__).parent
    assert sorted(RULES) == sorted(p.name[:4].upper() for p in folder.glob("g[0-9]*.py"))


def test_names_and_severities_are_those_of_the_contract() -> None:
    assert {c: (r.name, r.severity) for c, r in RULES.items()} == {
        "G001": ("wrong-gradient", "error"), "G002": ("non-finite-gradient", "error"),
        "G003": ("overwritten-array", "error"),
        "G004": ("broken-path", "error"),
        "G005": ("kink", "note"),
        "G006": ("inconclusive", "warning"),
        "G007": ("nondeterministic", "warning"),
        "G008": ("out-of-bounds", "error"),
        "G009": ("data-race", "error"),
        "G010": ("composition", "error"),
        "G011": ("rounding", "warning"),
        "G012": ("unchecked", "note"),
        "G013": ("stale-gradient", "warning"),
        "G014": ("unassigned-read", "warning"),
        "G015": ("accuracy-regression", "error"), "G016": ("accuracy-gate", "error"),
        "G018": ("unlike-as-run", "error"),
    }  # fmt: skip


@pytest.mark.parametrize("code", sorted(RULES))
def test_manual_page(code: str) -> None:
    page = RULES[code].page()
    title = " ".join(page.partition("\n=")[0].split())
    assert title == f"{code} {RULES[code].name} ({RULES[code].severities})"
    for part in ("What it is", "Why it matters", "Example", "What to do"):
        assert f"\n{part}\n" in page
    assert max(map(len, page.splitlines())) <= 88


def test_the_table_of_the_readme_has_the_same_words() -> None:
    text = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in text.splitlines()
            if line.startswith("| G0")]  # fmt: skip
    assert rows == [[r.code, r.name, r.severities] for c, r in sorted(RULES.items())]


@pytest.mark.parametrize("code", sorted(RULES))
def test_rules_of_several_severities_say_when(code: str) -> None:
    source = Path(inspect.getfile(type(RULES[code]))).read_text(encoding="utf-8")
    assert bool(RULES[code].otherwise) == ("severity=" in source)


@pytest.mark.parametrize("code", sorted(RULES))
def test_silent_on_a_clean_session(code: str, session: Make, launch: Make, pair: Make) -> None:
    assert findings(code, session([launch(0, pair()), launch(1, pair())])) == []


@pytest.mark.parametrize(
    ("code", "verdict"),
    [("G001", "fail"), ("G002", "nan"), ("G005", "kink"), ("G006", "inconclusive"),
     ("G007", "nondeterministic"), ("G011", "rounding"), ("G012", "skipped")],
)  # fmt: skip
def test_each_verdict_has_one_rule(
    code: str, verdict: str, session: Make, launch: Make, pair: Make
) -> None:
    checked = session([launch(0, pair()), launch(1, pair(verdict))])
    fired = {c: findings(c, checked) for c in RULES}
    assert {c for c, found in fired.items() if found} == {code}
    assert (fired[code][0].tape, fired[code][0].launch) == (0, 1)


def test_a_read_without_a_value(session: Make, launch: Make, pair: Make, source: Path) -> None:
    read = ("s", Span(str(source), 6, 5, 6, 6))
    tapes = [[launch(0, pair()), launch(1, pair(), unassigned=(read,))]] * 3
    (found,) = findings("G014", session(*tapes))
    assert found.message == (
        "kernel `spring_forces` reads `s` before it has a value in 3 launches, first in launch 1 "
        "of tape 0"
    )
    assert (found.severity, found.line, found.column, found.count) == ("warning", 6, 5, 3)


def outside(**given: Any) -> Seen:
    span = Span("springs.py", 6, 5, 6, 12)
    fault = Fault(
        "outside", "spring_forces", span, "forward", "load", "pos", (3,), (4, 0), (4, 2), 2,
    )  # fmt: skip
    return Seen(replace(fault, **given), launch=5, count=3, tape=0, index=1)


def test_an_access_outside(session: Make, launch: Make, pair: Make) -> None:
    adjoint = outside(form="adjoint", access="atomic", name="adj_pos")
    (found,) = findings("G008", session([launch(0, pair())], faults=(outside(), adjoint)))
    assert found.message == (
        "kernel `spring_forces` reads `pos[4, 0]` outside of its shape (4, 2) in thread 3, "
        "launch 1 of tape 0, first of 3 launches"
    )
    assert (found.line, found.column, found.tape, found.launch, found.count) == (6, 5, 0, 1, 3)
    assert found.notes == ("1 more such access in the same launch",)
    (found,) = findings("G008", session([launch(0, pair())], faults=(adjoint,)))
    assert found.message.startswith("the adjoint of kernel `spring_forces` updates `adj_pos[4, 0]`")


def test_races(session: Make, launch: Make, pair: Make) -> None:
    other = Span("springs.py", 9, 5, 9, 9)
    met = {"other": (1, 2), "other_span": other, "other_access": "store", "thread": (0, 2)}
    race = outside(kind="race", index=(1, 0), **met)
    back = outside(kind="race", index=(1, 0), span=other, **(met | {"other_span": race.fault.span}))
    checked = session([launch(0, pair())], faults=(race, back))
    assert findings("G008", checked) == []
    (found,) = findings("G009", checked)
    assert found.message == (
        "threads (1, 2) and (0, 2) of kernel `spring_forces` meet in `pos[1, 0]`: thread (1, 2) "
        "writes it, thread (0, 2) reads it, launch 1 of tape 0, first of 3 launches that were "
        "checked"
    )
    assert found.notes[0] == "thread (1, 2) writes it in line 9, column 5"
    for kind in ("same", "mixed", "unwatched"):
        less = outside(kind=kind, index=(1, 0), **met)
        (found,) = findings("G009", session([launch(0, pair())], faults=(less,)))
        assert (found.code, found.severity) == ("G009", "note")


def test_races_of_an_update_are_to_be_written_as_an_atomic(
    session: Make, launch: Make, pair: Make, tmp_path: Path
) -> None:
    path = tmp_path / "racing.py"
    path.write_text("import engine as wp\n\n@wp.kernel\ndef sums(g, v):\n    g[0] = g[0] + v[1]\n")
    here = Span(str(path), 5, 12, 5, 16)
    race = outside(kind="race", span=here, other=(1,), other_span=here, other_access="store")
    (found,) = findings("G009", session([launch(0, pair())], faults=(race,)))
    assert found.help.startswith("write `wp.atomic_add(g, 0, v[1])`: ")
    path = tmp_path / "other.py"
    path.write_text("def sums(g, v):\n    g[0] = v[1] - g[0]\n")
    here = Span(str(path), 2, 12, 2, 16)
    race = outside(kind="race", span=here, other=(1,), other_span=here, other_access="store")
    (found,) = findings("G009", session([launch(0, pair())], faults=(race,)))
    assert found.help.startswith("read from one array")


class TestWrongGradient:
    def test_says_what_and_where(self, session: Make, launch: Make, pair: Make) -> None:
        (found,) = findings("G001", session([launch(0, pair("fail"))]))
        assert found.message == (
            "wrong gradient of kernel `spring_forces` in launch 0 of tape 0: "
            "`d force[3] / d pos[2]`: adjoint -1.5, reference -2"
        )
        assert (found.file.rsplit("/", 1)[-1], found.line, found.column) == ("springs.py", 5, 1)
        assert (found.kernel, found.count) == ("spring_forces", 1)

    def test_a_direction(self, session: Make, launch: Make, pair: Make) -> None:
        failed = pair("fail", worst=Entry(-1, -1, 1.0, 2.0))
        (found,) = findings("G001", session([launch(0, failed)]))
        assert "`d force / d pos` along a random direction: adjoint 1," in found.message

    def test_many_launches_are_one_finding(self, session: Make, launch: Make, pair: Make) -> None:
        tapes = [[launch(i, pair("fail" if i >= 3 else "pass")) for i in range(8)]] * 4
        (found,) = findings("G001", session(*tapes))
        assert found.count == 20
        assert (found.tape, found.launch) == (0, 3)
        assert "in 20 launches, first in launch 3 of tape 0" in found.message

    def test_names_the_worst_pair_and_the_others(
        self, session: Make, launch: Make, pair: Make
    ) -> None:
        pairs = (pair("fail", max_rel_error=0.1), pair("fail", input="k", max_rel_error=0.9))
        (found,) = findings("G001", session([launch(0, *pairs)]))
        assert "`d force[3] / d k[2]`" in found.message
        assert found.notes == ("also in `d force / d pos`",)

    def test_points_at_the_derivative_written_by_hand(
        self, session: Make, launch: Make, pair: Make
    ) -> None:
        here, there = Span("grads.py", 7, 5, 7, 20), Span("grads.py", 17, 5, 17, 20)
        culprits = (("adj_stiffness", here), ("adj_damping", there))
        (found,) = findings("G001", session([launch(0, pair("fail"), culprits=culprits)]))
        assert (found.file, found.line, found.column) == ("grads.py", 7, 5)
        assert "`adj_stiffness`" in found.help
        assert "`adj_damping` (grads.py:17:5)" in found.notes[-1]

    def test_kernels_are_apart(self, session: Make, launch: Make, pair: Make) -> None:
        other = Span("other.py", 1, 1, 1, 9)
        failing = [launch(0, pair("fail")), launch(1, pair("fail"), kernel="other", span=other)]
        assert [f.kernel for f in findings("G001", session(failing))] == ["spring_forces", "other"]


class TestNonFiniteGradient:
    def test_says_where_it_comes_from(
        self, session: Make, launch: Make, pair: Make, source: Path
    ) -> None:
        line = Span(str(source), 7, 23, 7, 42)
        at = NonFinite("pos", (3, 0), math.inf, line, "sqrt", (("pos[i]", "0.0"),))
        (found,) = findings("G002", session([launch(2, pair("nan", nonfinite=at))]))
        assert found.message == (
            "inf in the gradient of `pos[3, 0]`, kernel `spring_forces` in launch 2 of tape 0: "
            "`sqrt` with pos[i] = 0.0"
        )
        assert (found.line, found.column) == (7, 23)

    def test_launches_without_an_origin_join_the_one_that_has_it(
        self, session: Make, launch: Make, pair: Make, source: Path
    ) -> None:
        line = Span(str(source), 7, 23, 7, 42)
        at = NonFinite("pos", (3,), math.nan, line, "sqrt", (("t_4", "0.0"),))
        lost = pair("nan", nonfinite=NonFinite("pos", (0,), math.nan))
        tape = [launch(0, lost), launch(1, pair("nan", nonfinite=at)), launch(2, lost)]
        (found,) = findings("G002", session(tape))
        assert (found.count, found.launch, found.line) == (3, 0, 7)
        assert found.message == (
            "NaN in the gradient of `pos[0]`, kernel `spring_forces` in 3 launches, "
            "first in launch 0 of tape 0: `sqrt` with 0.0 in launch 1 of tape 0"
        )

    @pytest.mark.parametrize(("overflow", "says"), [(True, "too large"), (False, "guard it")])
    def test_what_to_do(
        self, session: Make, launch: Make, pair: Make, overflow: bool, says: str
    ) -> None:
        at = NonFinite("pos", (0,), math.inf, None, "mul", overflow=overflow)
        (found,) = findings("G002", session([launch(0, pair("nan", nonfinite=at))]))
        assert says in found.help

    def test_an_unknown_origin(self, session: Make, launch: Make, pair: Make) -> None:
        (found,) = findings("G002", session([launch(0, pair("nan", worst=None))]))
        assert found.message.startswith("NaN in the gradient of kernel `spring_forces`")
        assert found.line == 5

    def test_many_launches_are_one_finding(self, session: Make, launch: Make, pair: Make) -> None:
        at = NonFinite("pos", (0,), math.nan)
        bad = [launch(i, pair("nan", nonfinite=at)) for i in range(500)]
        (found,) = findings("G002", session(bad))
        assert found.count == 500
        assert "first in launch 0" in found.message


class TestInconclusive:
    def test_gives_the_reason(self, session: Make, launch: Make, pair: Make) -> None:
        unsure = pair("inconclusive", reason="noise of 0.6 above the tolerance of 0.02")
        (found,) = findings("G006", session([launch(0, unsure)]))
        assert found.message.endswith("(noise of 0.6 above the tolerance of 0.02)")


def test_a_kink_is_at_the_operation_that_has_it(
    session: Make, launch: Make, pair: Make, source: Path
) -> None:
    plain = pair("kink")
    known = pair("kink", corner=Corner(Span(str(source), 7, 16, 7, 41), "abs(pos[i])"))
    (found,) = findings("G005", session([launch(0, plain), launch(1, known)]))
    assert (found.line, found.column, found.launch) == (7, 16, 0)
    assert ": `abs(pos[i])`, `d force[3] / d pos[2]`: adjoint" in found.message
    (found,) = findings("G005", session([launch(0, plain)]))
    assert (found.line, found.column) == (5, 1)  # where it is not known, at the kernel


class TestRounding:
    def test_names_the_launch_that_loses_most(
        self, session: Make, launch: Make, pair: Make
    ) -> None:
        little = pair("rounding", reason="2.0 of 7.2 digits are lost", digits_lost=2.0)
        much = pair("rounding", reason="5.0 of 7.2 digits are lost", digits_lost=5.0)
        (found,) = findings("G011", session([launch(0, little), launch(3, much)]))
        assert found.message == (
            "rounding in the adjoint of kernel `spring_forces` in 2 launches, first in launch 0 "
            "of tape 0: `d force / d pos`: 5.0 of 7.2 digits are lost in launch 3 of tape 0"
        )

    def test_digits_of_what_is_next_to_nothing_beside_other_launches_do_not_count(
        self, session: Make, launch: Make, pair: Make
    ) -> None:
        """At the end of a fit; not of another line, and not where it is off by much."""
        before = launch(0, pair(scale=2.0, off=1e-7))
        for off, site, count in [(0.01, None, 0), (0.03, None, 1), (0.01, self.OTHER, 1)]:
            late = launch(1, pair("rounding", scale=0.05, off=off, digits_lost=4.0), site=site)
            assert len(findings("G011", session([before, late]))) == count

    def test_what_does_not_count_is_said(self, session: Make, launch: Make, pair: Make) -> None:
        """The table shows as many rows as the finding has launches, and leaves out."""
        large, small = (
            pair("rounding", scale=2.0, off=off, digits_lost=4.0) for off in (0.5, 0.01)
        )
        made = [launch(0, small), launch(1, large), launch(2, small, large), launch(3, pair())]
        (found,) = findings("G011", session(made))
        assert (found.launch, found.count) == (1, 2)
        assert found.notes == (
            "1 more launch with the verdict `rounding` is left out: its error is less than a "
            "hundredth of the derivatives of other launches at that line",
        )
        (found,) = findings("G011", session([*made, launch(4, small)]))
        assert found.notes[0].startswith("2 more launches with the verdict `rounding` are left out")
        (found,) = findings("G011", session(made[1:3]))
        assert found.notes == ()

    OTHER = Span("train.py", 70, 1, 70, 30)

    def test_tape_and_launch_are_of_one_place(
        self, session: Make, launch: Make, pair: Make
    ) -> None:
        little, much = (pair("rounding", reason="lost", digits_lost=d) for d in (2.0, 5.0))
        tapes = [[launch(0, pair()), launch(1, little)], [launch(0, much), launch(1, pair())]]
        (found,) = findings("G011", session(*tapes))
        assert (found.tape, found.launch, found.count) == (0, 1, 2)
        assert found.message.endswith("first in launch 1 of tape 0: `d force / d pos`: lost in "
                                      "launch 0 of tape 1")  # fmt: skip


class TestComposition:
    SITE = Span("train.py", 9, 1, 9, 30)

    def whole(self, *given: Any, verdict: str = "fail") -> TapeResult:
        cause = Cause(*given) if given else None
        return TapeResult(1, (), (), WholeResult(verdict, 1, 1.5, 2.0, 0.25, "", cause))

    def test_an_overwritten_array_is_another_finding(self, session: Make) -> None:
        other = Span("train.py", 11, 1, 11, 30)
        tape = self.whole("overwrite", 3, "move", "force", self.SITE, None, 4, "forces", other, "f")
        assert findings("G010", session(tape)) == []
        (found,) = findings("G003", session(tape))
        assert found.message == (
            "`f` (argument `force` of kernel `move`) in launch 3 of tape 1 was overwritten by "
            "kernel `forces` in launch 4 before the backward pass: its values are lost; the "
            "gradient is wrong because of it"
        )
        assert (found.file, found.line, found.kernel, found.launch) == ("train.py", 11, "move", 3)
        assert found.notes == ("it was read by kernel `move` at train.py:9:1",)

    @pytest.mark.parametrize(
        ("code", "kind", "words"),
        [("G004", "no gradient", "it has no requires_grad"),
         ("G004", "outside", "no operation on the tape wrote"),
         ("G004", "no backward", "enable_backward=False"), ("G010", "aliasing", "shares memory"),
         ("G010", "unknown", "the gradient changes across"),
         ("G003", "overwrite", "that the engine did not see")],
    )  # fmt: skip
    def test_each_cause_has_words(self, code: str, kind: str, words: str, session: Make) -> None:
        tapes = session(self.whole(kind, 3, "move", "x", self.SITE))
        (found,) = findings(code, tapes)
        assert words in found.message and found.help
        assert sum(len(findings(c, tapes)) for c in RULES) == 1

    def test_where_an_array_without_a_gradient_was_made(self, session: Make) -> None:
        tape = self.whole("no gradient", 3, "move", "x", self.SITE)
        made = Made("x", self.SITE, Span("train.py", 4, 9, 4, 30))
        (found,) = findings("G004", session(replace(tape, facts=(made,))))
        assert found.message == (
            "no gradient flows to `x` of kernel `move` in launch 3 of tape 1: `x` (made at "
            "train.py:4:9) depends on the inputs of the tape, but it has no requires_grad"
        )
        for other in (replace(made, argument="y"), replace(made, site=made.at)):
            (found,) = findings("G004", session(replace(tape, facts=(other,))))
            assert found.message.endswith("tape 1: `x` depends on the inputs of the tape, but it "
                                          "has no requires_grad")  # fmt: skip

    def test_tapes_with_one_cause_are_one_finding(self, session: Make) -> None:
        tape = self.whole("aliasing", 3, "move", "x", self.SITE)
        (found,) = findings("G010", session(tape, tape, tape))
        assert found.count == 3 and found.message.startswith(
            "the gradients of 3 tapes as wholes are wrong, first that of tape 1: "
        )

    def test_silent_where_launches_are_to_blame_or_nothing_is(self, session: Make) -> None:
        assert findings("G010", session(self.whole(), self.whole(verdict="pass"))) == []

    def test_a_whole_that_is_not_finite(self, session: Make) -> None:
        tape = self.whole("aliasing", 3, "move", "force", self.SITE, verdict="nan")
        assert [f.code for f in findings("G010", session(tape))] == ["G010"]
        assert findings("G002", session(tape)) == []
        whole = WholeResult(
            "nan", 1, float("nan"), reason="the gradient of the whole is not finite"
        )
        (found,) = findings("G002", session(TapeResult(2, (), (), whole)))
        assert found.tape == 2 and "tape 2 as a whole is not finite" in found.message


class TestUnchecked:
    def test_a_whole_tape(self, session: Make) -> None:
        whole = WholeResult("skipped", reason="some memory is read as two types")
        (found,) = findings("G012", session(TapeResult(2, (), (), whole)))
        assert found.message == (
            "the tape as a whole was not checked in tape 2: some memory is read as two types"
        )
        whole = WholeResult("skipped", reason="no array that it reads requires a gradient")
        assert findings("G012", session(TapeResult(2, (), (), whole))) == []

    def test_a_whole_tape_is_placed_at_the_call_to_blame(self, session: Make) -> None:
        whole = WholeResult("skipped", reason="not known", site=Span("train.py", 7, 5, 7, 30))
        (found,) = findings("G012", session(TapeResult(0, (), (), whole)))
        assert (found.severity, found.file, found.line) == ("warning", "train.py", 7)

    def test_a_whole_tape_with_a_launch_that_cannot_be_repeated(
        self, session: Make, launch: Make, pair: Make
    ) -> None:
        """That launch is G007, which says why; any other tape is left out as ever."""
        whole = WholeResult("skipped", reason="one of its launches gives other results")
        restless = launch(0, pair("nondeterministic"))
        made = session(TapeResult(0, (restless,), (), whole))
        assert findings("G012", made) == [] and len(findings("G007", made)) == 1
        assert len(findings("G012", session(TapeResult(0, (launch(0, pair()),), (), whole)))) == 1

    def test_a_recorded_function(self, session: Make) -> None:
        site = Span("train.py", 9, 1, 9, 30)
        gap = Unchecked(4, "a recorded function", "its forward code is unknown", site)
        (found,) = findings("G012", session(TapeResult(0, (), (gap,))))
        assert found.message == (
            "a recorded function was not checked in record 4 of tape 0: its forward code is unknown"
        )
        assert (found.file, found.line, found.launch) == ("train.py", 9, -1)
        tapes = [TapeResult(i, (), (gap, gap)) for i in range(2)]
        (found,) = findings("G012", session(*tapes))
        assert "in 2 records, first in record 4 of tape 0" in found.message

    def test_a_skipped_launch_is_said_once(self, session: Make, launch: Make) -> None:
        skipped = [launch(i, skipped="no gradients") for i in range(3)]
        said = tuple(Unchecked(i, "launch of kernel k", "no gradients") for i in range(3))
        (found,) = findings("G012", session(TapeResult(0, tuple(skipped), said)))
        assert found.count == 3
        assert "kernel `spring_forces` was not checked in 3 launches" in found.message

    def test_what_the_user_left_out_is_no_finding(self, session: Make, launch: Make) -> None:
        options = CheckOptions(skip_kernels=("spring*",))
        assert findings("G012", session([launch(0, skipped="left out")], options=options)) == []
