"""`--gate accuracy=...` and the rules of sessions: where they fire, and where they are silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adtool.accuracy.entries import Expected
from adtool.accuracy.judging import measured_session
from adtool.assemble import build_report
from adtool.gates import Gate, gate_of
from adtool.report import gate_words
from adtool.suppressions import Choice
from engine.autograd import TapeResult, WholeResult

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("words", "gate"),
    [
        (None, Gate()),
        ("note", Gate("note")),
        ("accuracy=1e-6", Gate("error", 1e-6)),
        ("warning, accuracy=0.5", Gate("warning", 0.5)),
        (["note", "accuracy=1", "warning"], Gate("warning", 1.0)),
    ],
)
def test_gates(words: Any, gate: Gate) -> None:
    assert gate_of(words) == gate


WRONG = (
    "", "fatal", "accuracy", "accuracy=", "accuracy=x", "accuracy=0", "accuracy=-1",
    "accuracy=nan", "accuracy=inf", "note,,note",
)  # fmt: skip


@pytest.mark.parametrize("words", WRONG)
def test_what_is_no_gate(words: str) -> None:
    with pytest.raises(ValueError, match="accuracy"):
        gate_of(words)


@pytest.fixture
def reported(session: Make, launch: Make, pair: Make) -> Make:
    """The report of one launch with pairs made of keywords."""

    def make(*pairs: Any, gate: Any = "error", whole: Any = None, **given: Any) -> Any:
        tape = TapeResult(0, (launch(0, *pairs),), whole=whole)
        return build_report(session(tape, **given), gate, Choice())

    return make


def test_g016(reported: Make, pair: Make) -> None:
    good = pair(max_abs_error=1e-7, scale=1.0, off=9e-7)
    for wrong, why in (
        (pair(max_abs_error=2e-6, max_rel_error=2e-6, scale=1.0), "its error is 2e-06"),
        (pair(scale=1.0, off=2e-6), "rounding causes an error of 2e-06"),
        (pair(max_abs_error=2e-6, max_rel_error=2e-6), "its error is 2e-06"),
    ):
        assert reported(good, wrong).findings == ()
        assert reported(good, accuracy=1e-6).findings == ()
        found = reported(good, wrong, accuracy=1e-6)
        (f,) = found.findings
        assert (f.code, f.severity, f.kernel, f.line) == ("G016", "error", "spring_forces", 5)
        assert why in f.message and not found.ok and found.exit_code == 1
        assert (found.gate, found.gate_accuracy) == ("error", 1e-6)
        assert gate_words(found) == "error, accuracy=1e-06"


def test_g016_has_no_say_where_others_have(reported: Make, pair: Make) -> None:
    right = pair(max_abs_error=0.0)
    nothing = pair(max_abs_error=1e-30, max_rel_error=0.0)  # no reference is large enough
    for p in (nothing, pair("kink"), pair("fail", max_abs_error=1.0), pair("nan")):
        found = reported(right, p, accuracy=1e-6).findings
        assert "G016" not in [f.code for f in found]


@pytest.mark.parametrize("verdict", ["inconclusive", "nondeterministic", "skipped"])
def test_an_accuracy_that_is_not_known_is_a_warning(
    reported: Make, pair: Make, verdict: str
) -> None:
    found = reported(pair(), pair(verdict, input="mass", reason="it is dark"), accuracy=1e-6)
    (f,) = (f for f in found.findings if f.code == "G016")
    assert f.severity == "warning" and "is not known" in f.message and "it is dark" in f.message
    assert found.ok
    assert not reported(pair(), pair(verdict), accuracy=1e-6, gate="warning").ok


def test_g016_of_a_tape_as_a_whole(reported: Make, pair: Make) -> None:
    whole = WholeResult("pass", 2, 1.0, 1.0, 1e-4)
    (f,) = reported(pair(), whole=whole, accuracy=1e-6).findings
    assert f.code == "G016" and "the tape of `spring_forces`" in f.message and f.launch == -1
    assert reported(pair(), whole=whole, accuracy=1e-3).findings == ()


def test_g015_of_a_session(reported: Make, session: Make, launch: Make, pair: Make,
                           source: Path) -> None:  # fmt: skip
    before = session([launch(0, pair(scale=1.0, off=1e-7))])
    found = measured_session(before, str(source.parent), "springs.py")
    expected = Expected("springs.py", str(source.parent), tuple(m.entry for m in found))
    same = reported(pair(scale=1.0, off=2e-6), expected=expected)
    assert (same.findings, same.notes, same.ok) == ((), (), True)
    worse = reported(pair(scale=1.0, off=1e-4), expected=expected)
    (f,) = worse.findings
    assert (f.code, f.line, f.end_column) == ("G015", 5, 18)
    assert "rounding 0.0001, was <1e-06, 2.0 digits lost" in f.message and not worse.ok
    # A comment on its line suppresses it as others.
    text = source.read_text().replace("float)):", "float)):  # adtool: ignore[G015]")
    source.write_text(text)
    calm = reported(pair(scale=1.0, off=1e-4), expected=expected)
    assert calm.ok and [f.suppressed_by for f in calm.findings] == ["comment"]
