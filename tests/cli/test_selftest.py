"""`adtool selftest` in its reduced form, and its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from adtool.selftest.run import Outcome, corpus
from adtool.selftest.score import lines, score
from engine.autograd import MUTATIONS, Mutation, Trial
from engine.autograd.mutation.trial import NONE
from tests.unit.autograd import verdict_kernels as k
from tests.unit.autograd.verdict_kernels import floats, recorded


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


def test_mutations_do_what_they_say() -> None:
    x = np.array([0.3, 0.6, 0.9])
    tape = recorded(k.waves, floats(x), wp.zeros(3, dtype=float, requires_grad=True))
    right = np.cos(x.astype(np.float32))
    record = tape.records[0]

    def gradient(mutation: Mutation) -> Any:
        variants = record.plan.variants
        grad = record.values[0].grad
        trial.spoiled.mutate(mutation)
        tape.zero()
        tape.backward(grads={record.values[1]: np.ones(3, np.float32)})
        trial.spoiled.mutate(NONE)
        assert record.plan.variants is variants
        return grad.numpy().copy()

    with Trial(tape) as trial:
        assert np.allclose(gradient(NONE), right, rtol=1e-6)
        assert np.allclose(gradient(Mutation("", 1.5)), 1.5 * right, rtol=1e-6)
        assert np.allclose(gradient(Mutation("", 3.0, thread=1)), right * [1, 3, 1], rtol=1e-6)
        assert np.allclose(gradient(Mutation("", shift=1)), np.roll(right, 1), rtol=1e-6)
        assert trial.changes(Mutation("", 1.0001)) and not trial.changes(Mutation("", 1.0))
        assert {p.verdict for p in trial.check().pairs} == {"pass"}
        assert {p.verdict for p in trial.check(Mutation("", 1.0001)).pairs} == {"fail"}
    assert np.allclose(gradient(NONE), right, rtol=1e-6)


@pytest.mark.parametrize("launches", [0, 2])
def test_a_trial_has_one_launch(launches: int) -> None:
    x, y = floats([1.0]), floats([0.0])
    with wp.Tape() as tape:
        for _ in range(launches):
            wp.launch(k.waves, dim=1, inputs=[x, y])
    with pytest.raises(ValueError, match="one launch"):
        Trial(tape)


def test_the_table_says_what_went_wrong() -> None:
    outcomes = [
        Outcome("a", "steep", "", ("fail",)),
        Outcome("a", "steep", "sign", ("fail", "pass")),
        Outcome("b", "tiny", "", ("inconclusive",), ("noise",)),
        Outcome("b", "tiny", "zero", ("pass",)),
    ]
    text = "\n".join(lines(outcomes, 1.0))
    assert "false alarm: a (fail)" in text and "undecided: b (noise)" in text
    assert "missed: b, zero (pass)" in text
    assert "caught 1 of 2 wrong gradients, 1 false alarms on 2 right ones" in text
    assert not score("", outcomes).perfect and score("", outcomes[1:2]).perfect
