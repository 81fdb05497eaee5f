"""A fault is said once: what follows from it points to it."""

from __future__ import annotations

from typing import Any

from adtool.assemble import build_report
from adtool.job import CheckOptions
from adtool.rules import load_rules
from engine.autograd import Cause, NonFinite, TapeResult, Unchecked, WholeResult
from engine.diagnostics import Span

FED = "argument 'pos' holds NaN or Inf at launch"
PLACE = Span("springs.py", 7, 23, 7, 42)


def findings(code: str, session: Any) -> list[Any]:
    (rule,) = [r for r in load_rules() if r.code == code]
    return list(rule.check(session))


def test_nan_that_flows_on_points_to_where_it_came_from(session: Any, launch: Any, pair: Any
                                                        ) -> None:  # fmt: skip
    first = [launch(0, pair("nan", nonfinite=NonFinite("pos", (3,), float("nan"), PLACE, "sqrt")))]
    later = [launch(i, pair("inconclusive", reason=FED)) for i in range(2)]
    made = session(first, later)
    (found,) = findings("G002", made)
    assert "2 later launches were given NaN or Inf" in found.notes[-1]
    assert "in launch 0 of tape 1" in found.notes[-1]
    assert findings("G006", made) == []


def test_nan_from_outside_is_said_once_for_all_kernels(session: Any, launch: Any, pair: Any
                                                       ) -> None:  # fmt: skip
    fed = [launch(i, pair("inconclusive", reason=FED), kernel=f"k{i}") for i in range(3)]
    late = [launch(0, pair("nan"))]
    (found,) = findings("G006", session(fed, late))
    assert found.count == 3 and "--eps" not in found.help


def test_an_operation_is_named_as_the_source_has_it(session: Any, launch: Any, pair: Any) -> None:
    at = NonFinite("pos", (3,), float("inf"), PLACE, "log", (("pos[i]", "0."),), "wp.log(pos[i])")
    (found,) = findings("G002", session([launch(0, pair("nan", nonfinite=at))]))
    assert found.message.endswith("`wp.log(pos[i])` with pos[i] = 0.")
    assert "`if`" in found.help and "`where`" not in found.help
    at = NonFinite("pos", (3,), float("inf"), PLACE, "log", (), "wp.log(pos[i])", True)
    (found,) = findings("G002", session([launch(0, pair("nan", nonfinite=at))]))
    assert "`where` computes both sides" in found.help and "branch of an `if`" in found.help


def test_a_part_leaves_the_whole_unchecked(session: Any, launch: Any, pair: Any) -> None:
    whole = WholeResult("skipped", reason="only some of its launches were selected")
    tape = TapeResult(0, (launch(0, pair()),), (), whole)
    made = session(tape, options=CheckOptions(kernels=("spring*",)))
    (found,) = findings("G012", made)
    assert found.severity == "warning" and "--kernel" in found.message
    report = build_report(made, "error")
    assert report.exit_code == 0 and report.end_to_end[0].verdict == "skipped"


def test_the_whole_is_a_warning_and_a_launch_a_note(session: Any, launch: Any, pair: Any) -> None:
    gap = Unchecked(4, "a recorded function", "its forward code is unknown")
    whole = WholeResult("skipped", reason="what `f`, given to Tape.record_func, computes")
    found = findings("G012", session(TapeResult(0, (launch(0, pair()),), (gap,), whole)))
    assert [f.severity for f in found] == ["warning", "note"]


def test_a_launch_without_backward_is_no_note_beside_its_error(session: Any, launch: Any) -> None:
    stopped = launch(0, skipped="gradients stop at it: its enable_backward is False")
    cause = Cause("no backward", 0, "spring_forces")
    whole = WholeResult("fail", 1, 0.0, 2.0, 1.0, cause=cause)
    made = session(TapeResult(0, (stopped,), (), whole))
    assert findings("G012", made) == [] and len(findings("G004", made)) == 1
    assert len(findings("G012", session(TapeResult(0, (stopped,))))) == 1
