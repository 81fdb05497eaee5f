"""`adtool selftest` in its reduced form, and its parts."""

from __future__ import annotations

from typing import Any

from adtool.selftest.run import Outcome, corpus
from adtool.selftest.score import report_lines, score
from engine.autograd import MUTATIONS


def test_the_corpus_is_large_and_varied() -> None:
    cases = corpus()
    assert len(cases) >= 60
    assert len({c.kernel.key for c in cases}) == len(cases)
    assert {c.kind for c in cases} == {
        "steep", "tiny", "huge", "oscillating", "near singular", "reduction", "chaotic", "matrix",
        "memory", "control flow", "smooth",
    }  # fmt: skip
    assert {m.kind for m in MUTATIONS} == {
        "factor 1.0001", "factor 1.001", "factor 1.01", "factor 1.5", "sign", "zero",
        "one component", "one thread", "one iteration", "swapped index",
    }  # fmt: skip


def test_all_are_caught_and_none_is_an_alarm(adtool: Any) -> None:
    done = adtool("selftest", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "missed" not in done.stdout and "false alarm:" not in done.stdout
    assert "one component" in done.stdout and "swapped index" in done.stdout


def test_an_unknown_kernel(adtool: Any) -> None:
    done = adtool("selftest", "--kernel", "nope")
    assert done.returncode == 2 and "'nope'" in done.stderr


def test_the_table_says_what_went_wrong() -> None:
    outcomes = [
        Outcome("a", "steep", "", ("fail",)),
        Outcome("a", "steep", "sign", ("fail", "pass")),
        Outcome("b", "tiny", "", ("inconclusive",), ("noise",)),
        Outcome("b", "tiny", "zero", ("pass",)),
    ]
    text = "\n".join(report_lines(outcomes, 1.0))
    assert "false alarm: a (fail)" in text and "undecided: b (noise)" in text
    assert "missed: b, zero (pass)" in text
    assert "caught 1 of 2 wrong gradients, 1 false alarms on 2 correct ones" in text
    assert not score("", outcomes).perfect and score("", outcomes[1:2]).perfect
