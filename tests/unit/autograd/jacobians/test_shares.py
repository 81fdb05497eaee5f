"""Derivatives of Jacobians shared out among processes: the same matrices to the bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import Derivative, Jacobians, Share, recorded_jacobians
from tests.unit.autograd.jacobians.test_compressed import cases


def recorded(name: str) -> Any:
    """The launch of a case, on a tape that is captured."""
    kernel, dim, inputs, outputs = cases()[name]
    with wp.capturing() as capture, wp.Tape():
        wp.launch(kernel, dim, inputs=inputs, outputs=outputs)
    return capture.tapes[0].records[0]


def same(a: Jacobians, b: Jacobians) -> bool:
    """Whether they are, to the bit, and to the number of derivatives that they took."""
    return a.keys() == b.keys() and all(
        x.values.tobytes() == y.values.tobytes() and x.values.dtype == y.values.dtype
        and np.array_equal(x.rows, y.rows) and np.array_equal(x.cols, y.cols)
        and x.colours == y.colours
        for x, y in ((a[k], b[k]) for k in a)
    )  # fmt: skip


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize("name", cases())
def test_shares_make_the_same_matrices(name: str, differences: bool) -> None:
    record = recorded(name)
    alone = Share()
    whole = recorded_jacobians(record, differences=differences, share=alone)
    for count in (2, 5):
        known: list[Derivative] = []
        for number in range(count):
            part = Share(number, count)
            recorded_jacobians(record, differences=differences, share=part)
            assert part.evaluated == len(part.found)
            known += part.found
        last = Share(known=known)
        assert same(whole, recorded_jacobians(record, differences=differences, share=last))
        assert len(known) == alone.evaluated  # each once
        assert last.evaluated == 0


def test_what_is_not_known_is_evaluated() -> None:
    record = recorded("stencil")
    part, alone, last = Share(1, 3), Share(), Share()
    recorded_jacobians(record, share=part)
    whole = recorded_jacobians(record, share=alone)
    last = Share(known=part.found)
    assert same(whole, recorded_jacobians(record, share=last))
    assert last.evaluated == alone.evaluated - len(part.found) > 0


def test_a_wrong_derivative_is_noticed() -> None:
    """A random product shows that the matrix is not the launch's: it is evaluated anew."""
    record = recorded("gather")
    part = Share(0, 2)
    recorded_jacobians(record, share=part)
    first = part.found[0]
    wrong = replace(first, numbers="AAAA" * (len(first.numbers) // 4 - 1) + first.numbers[-4:])
    whole = recorded_jacobians(record)
    found = recorded_jacobians(record, share=Share(known=[wrong]))
    for key, matrix in whole.items():
        assert np.array_equal(matrix.numpy(), found[key].numpy())


@pytest.mark.parametrize(
    "bad",
    [
        Derivative("adjoint", 0, "object", "AAAA"), Derivative("adjoint", 0, "float32", "AAA"),
        Derivative("adjoint", 0, "float32", "AAAA"), Derivative("adjoint", 0, "float64", "\x00"),
    ],
)  # fmt: skip
def test_what_is_no_derivative(bad: Derivative) -> None:
    with pytest.raises(ValueError, match="derivative 0"):
        Share(known=[bad])


@pytest.mark.parametrize(("number", "count"), [(2, 2), (-1, 2), (0, 0)])
def test_what_is_no_share(number: int, count: int) -> None:
    with pytest.raises(ValueError, match="share"):
        Share(number, count)
