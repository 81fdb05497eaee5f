"""Functions that differences cannot follow: right gradients are not accused, wrong ones are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape

F = wp.array(dtype=float)


@wp.func
def bent(x: float):
    return 3.9 * x * (1.0 - x)


@wp.func_grad(bent)
def adj_bent(x: float, adj_ret: float):
    wp.adjoint[x] += 3.9 * (1.0 - 1.9 * x) * adj_ret


@wp.kernel
def logistic(x: F, steps: int, y: F):
    i = wp.tid()
    s = x[i]
    for _ in range(steps):
        s = 3.9 * s * (1.0 - s)
    y[i] = s


@wp.kernel
def logistic_by_hand(x: F, steps: int, y: F):
    i = wp.tid()
    s = x[i]
    for _ in range(steps):
        s = bent(s)
    y[i] = s


@wp.kernel
def guarded(x: F, y: F):
    i = wp.tid()
    y[i] = wp.where(x[i] > 0.0, wp.log(x[i]), 0.0)


@wp.kernel
def angle(x: F, y: F):
    i = wp.tid()
    y[i] = wp.acos(x[i])


@wp.kernel
def rooted(x: F, y: F):
    i = wp.tid()
    y[i] = 2.0 * wp.pow(wp.abs(x[i]), 0.5)


def checked(kernel: Any, *more: Any, values: Any = (0.31, 0.62)) -> Any:
    x = wp.array(np.array(values), dtype=float, requires_grad=True)
    y = wp.zeros(len(values), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, len(values), [x, *more], [y])
    tape.backward(grads={y: np.ones(len(values), np.float32)})
    return check_tape(tape)


@pytest.mark.parametrize("steps", [20, 40, 80, 160])
def test_a_chaotic_map_is_never_accused(steps: int) -> None:
    found = checked(logistic, steps)
    (pair,) = found.launches[0].pairs
    assert pair.verdict in ("pass", "rounding", "inconclusive"), pair
    if pair.verdict == "inconclusive":
        assert "forward mode" in pair.reason
    else:  # a distance from differences that say nothing is no error
        assert pair.max_rel_error < 1e-3
    assert found.whole is not None and found.whole.verdict == "pass"


@pytest.mark.parametrize("steps", [1, 20, 80])
def test_a_wrong_gradient_by_hand_of_the_same_map_is(steps: int) -> None:
    """Both modes use what the user wrote where tapes run; the check of a launch does not."""
    found = checked(logistic_by_hand, steps)
    assert [p.verdict for p in found.launches[0].pairs] == ["fail"]
    assert found.whole is not None and found.whole.cause is None
    assert [b.derivative for b in found.launches[0].blame] == ["adj_bent"]


def test_a_failure_of_the_whole_has_an_error() -> None:
    found = checked(logistic_by_hand, 80).whole
    assert found is not None and found.verdict == "fail" and found.rel_error > 0


def test_the_operation_as_the_user_wrote_it() -> None:
    found = checked(guarded, values=(0.0, 2.0))
    (pair,) = found.launches[0].pairs
    assert pair.verdict == "nan" and pair.nonfinite is not None
    assert pair.nonfinite.expression == "wp.log(x[i])" and pair.nonfinite.selected
    assert ("x[i]", "0") in pair.nonfinite.operands


@pytest.mark.parametrize(
    ("kernel", "value", "expression", "operand"),
    [
        (angle, 1.0, "wp.acos(x[i])", ("x[i]", "1")),
        (rooted, 0.0, "wp.pow(wp.abs(x[i]), 0.5)", ("wp.abs(x[i])", "0")),
    ],
)
def test_operands_are_those_of_the_user_and_no_literals(
    kernel: Any, value: float, expression: str, operand: tuple[str, str]
) -> None:
    (pair,) = checked(kernel, values=(value, 0.5)).launches[0].pairs
    assert pair.verdict == "nan" and pair.nonfinite is not None
    assert (pair.nonfinite.expression, pair.nonfinite.operands) == (expression, (operand,))
