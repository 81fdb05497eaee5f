"""Columns count characters, also where a line holds others than ASCII."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import engine as wp
from engine.autograd import Witness, check_tape

F = wp.array(dtype=float)


@wp.kernel
def rooted(x: F, größe: F):
    i = wp.tid()
    größe[i] = wp.sqrt(x[i]) * 1.0


def test_operands_of_what_is_not_finite() -> None:
    x, y = wp.zeros(2, requires_grad=True), wp.zeros(2, requires_grad=True)
    with wp.capturing(watcher=Witness()) as capture:
        with wp.Tape() as tape:
            wp.launch(rooted, 2, [x], [y])
        tape.backward(grads={y: wp.ones(2)})
    (pair,) = check_tape(capture.tapes[0]).launches[0].pairs
    found = pair.nonfinite
    assert found is not None
    assert (found.expression, found.operands) == ("wp.sqrt(x[i])", (("x[i]", "0"),))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns of calls are kept since 3.11")
def test_calls_and_what_they_are_given() -> None:
    länge = wp.array(np.ones(2, np.float32), requires_grad=True)
    out = wp.zeros(2, requires_grad=True)
    with wp.capturing(traces=10) as capture, wp.Tape():
        "größer als 1 €"
        wp.launch(rooted, 2, [länge], [out])
    (record,) = capture.tapes[0].records
    assert record.site is not None
    text = Path(__file__).read_text(encoding="utf-8").splitlines()[record.site.line - 1]
    assert text[record.site.col - 1 : record.site.end_col - 1] == (
        "wp.launch(rooted, 2, [länge], [out])"
    )
    from engine.autograd import trace

    assert {a.name for a in trace(capture.tapes[0]).listing.arrays} == {"länge", "out"}
