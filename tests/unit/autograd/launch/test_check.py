"""Verdicts that are easily got wrong: no miss of a wrong gradient, no alarm for a right one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck_tape
from tests.unit.autograd import verdict_kernels as k
from tests.unit.autograd.verdict_kernels import floats, recorded

SEEDS = range(3)


def verdicts(tape: Any, **given: Any) -> list[str]:
    """Verdicts of all pairs, in order."""
    return [p.verdict for launch in check_tape(tape, **given).launches for p in launch.pairs]


@pytest.mark.parametrize("given", [{}, {"eps": 1e-4}, {"rtol": 1e-2}, {"eps": 1e-4, "atol": 1e-3}])
def test_in_place_at_the_values_of_the_launch(given: dict[str, float]) -> None:
    a, b = floats([0.5, 1.0, 2.0]), floats([0.5, 1.0, 2.0])
    for seed in SEEDS:
        result = check_tape(recorded(k.in_place, a, b), seed=seed, **given)
        for pair in result.launches[0].pairs:
            assert pair.verdict == "pass" and pair.max_rel_error < 1e-6


def test_a_kink_in_place() -> None:
    assert verdicts(recorded(k.kink_in_place, floats([0.0, 1.0]))) == ["kink"]


def test_one_array_as_two_arguments_is_checked_as_it_was() -> None:
    x = floats([2.0, 3.0, 4.0])
    assert verdicts(recorded(k.cubes, x, x)) == ["fail"]


def test_displaced_indices_stay_inside() -> None:
    """Indices computed from floats near both ends of an array; a right gradient."""
    x = floats(np.linspace(1e-4, 6.2999, 40))
    grid = wp.zeros(64, dtype=float, requires_grad=True)
    guard = floats(np.full(64, 3.0))
    assert verdicts(recorded(k.scatter, x, grid)) == ["pass"]
    assert np.all(guard.numpy() == 3.0)
    n = 3000
    table = floats(np.random.default_rng(0).normal(size=n))
    x = floats(np.random.default_rng(1).uniform(0.1, n - 1.1, 60))
    y = wp.zeros(60, dtype=float, requires_grad=True)
    tape = recorded(k.lookup, x, table, y)
    assert set(verdicts(tape)) == {"pass"}


@pytest.mark.parametrize("given", [{}, {"max_inputs": 3}])
@pytest.mark.parametrize("n", [20, 5000])
def test_kinks_among_many_elements(n: int, given: dict[str, int]) -> None:
    x = np.random.default_rng(0).normal(size=n)
    x[::10] = 0.0
    y = wp.zeros(n, dtype=float, requires_grad=True)
    assert verdicts(recorded(k.rectify, floats(x), y), **given) == ["kink"]


def test_a_kink_near_by_hides_no_error() -> None:
    y = wp.zeros(3, dtype=float, requires_grad=True)
    assert verdicts(recorded(k.half_magnitude, floats([1e-12, 1.0, 2.0]), y)) == ["fail"]
    y = wp.zeros(1, dtype=float, requires_grad=True)
    assert verdicts(recorded(k.half_magnitude, floats([0.0]), y)) == ["kink"]


@pytest.mark.parametrize("n", [50, 3000])
@pytest.mark.parametrize("eps", [1e-2, 1e-4])
def test_the_step_is_absolute_also_along_directions(n: int, eps: float) -> None:
    y = wp.zeros(n, dtype=float, requires_grad=True)
    tape = recorded(k.waves, floats(np.linspace(90, 110, n)), y)
    assert verdicts(tape, eps=eps) == ["pass"]
    assert verdicts(tape, eps=eps, atol=1e-3, rtol=1e-2) == ["pass"]
    assert verdicts(tape, eps=eps, max_inputs=3) == ["pass"]


@pytest.mark.parametrize("given", [{}, {"rtol": 1e-3}, {"eps": 1e-5}, {"rtol": 0.5}])
def test_one_setting_does_not_loosen_the_others(given: dict[str, float]) -> None:
    y = wp.zeros(3, dtype=float, requires_grad=True)
    assert verdicts(recorded(k.twice, floats([1e-4, 2e-4, 3e-4]), y), **given) == ["fail"]


def test_small_entries_beside_large_ones() -> None:
    y = wp.zeros(3, dtype=float, requires_grad=True)
    assert verdicts(recorded(k.small_wrong, floats([1e6, 1e-3, 3e-3]), y)) == ["fail"]


@pytest.mark.parametrize("n", [1000, 5000])
def test_one_element_in_a_later_launch(n: int) -> None:
    y = wp.zeros(n, dtype=float, requires_grad=True)
    values = np.full(n, 300.0)
    values[17] = 5.05
    with wp.Tape() as tape:
        wp.launch(k.squares, dim=n, inputs=[floats(np.ones(n)), y])
        wp.launch(k.squares, dim=n, inputs=[floats(values), y])
    first, second = (launch.pairs[0] for launch in check_tape(tape).launches)
    assert (first.verdict, second.verdict) == ("pass", "fail")
    assert second.worst is not None and (second.worst.row, second.worst.col) == (17, 17)


def test_nan_that_the_kernel_leaves_alone() -> None:
    x, y = floats([1.0, 2.0, math.nan]), floats([0.0, 0.0, math.nan])
    assert verdicts(recorded(k.some, x, y)) == ["pass"]
    (pair,) = check_tape(recorded(k.waves, x, y)).launches[0].pairs
    assert pair.verdict == "pass" and pair.checked == 4
    nothing = floats([math.nan, math.inf])
    (pair,) = check_tape(recorded(k.waves, nothing, floats([0.0, 0.0]))).launches[0].pairs
    assert pair.verdict == "inconclusive" and "NaN or Inf" in pair.reason


def test_columns_of_one_array_do_not_overlap() -> None:
    a = wp.array(np.arange(1.0, 9.0).reshape(4, 2), dtype=float, requires_grad=True)
    assert verdicts(recorded(k.twice, a[:, 0], a[:, 1])) == ["fail"]
    assert verdicts(recorded(k.waves, a[:, 0], a[:, 1])) == ["pass"]
    flat = floats(np.arange(6.0))
    (launch,) = check_tape(recorded(k.waves, flat[:4], flat[2:], dim=4)).launches
    assert "overlap" in launch.skipped


@pytest.mark.parametrize("mask", [[("y", "x")], [("x", "x")]])
def test_a_mask_that_selects_nothing_is_told(mask: Any) -> None:
    y = wp.zeros(3, dtype=float, requires_grad=True)
    tape = recorded(k.twice, floats([1.0, 2.0, 3.0]), y)
    with pytest.raises(wp.GradcheckError):
        gradcheck_tape(tape, input_output_masks={"twice": mask}, show_summary=False)


def test_a_mask_with_a_negative_index() -> None:
    y = wp.zeros(3, dtype=float, requires_grad=True)
    tape = recorded(k.twice, floats([1.0, 2.0, 3.0]), y)
    with pytest.raises(wp.LaunchError, match="E405"):
        gradcheck_tape(tape, input_output_masks={"twice": [(0, -1)]}, show_summary=False)


@pytest.mark.parametrize("given", [{"eps": 0.0}, {"eps": -1e-3}, {"atol": math.nan}, {"rtol": -1}])
def test_settings_that_mean_nothing(given: dict[str, float]) -> None:
    with pytest.raises(wp.LaunchError, match="E405"):
        check_tape(recorded(k.waves, floats([1.0]), floats([0.0])), **given)


def one(kernel: Any, values: Any, **given: Any) -> Any:
    """The result for the only pair of `kernel(x, y)`."""
    y = wp.zeros(len(values), dtype=float, requires_grad=True)
    (pair,) = check_tape(recorded(kernel, floats(values), y), **given).launches[0].pairs
    return pair


@pytest.mark.parametrize("n", [3, 5000])
@pytest.mark.parametrize("kernel", [k.absorbed, k.half_absorbed])
def test_differences_that_rounding_absorbs_blame_nobody(kernel: Any, n: int) -> None:
    pair = one(kernel, np.linspace(0.3, 1.7, n))
    assert pair.verdict in ("inconclusive", "pass"), pair
    if kernel is k.absorbed:
        assert pair.verdict == "inconclusive" and "absorbs" in pair.reason


@pytest.mark.parametrize("n", [3, 5000])
def test_a_wrong_gradient_is_seen_where_differences_tell_nothing(n: int) -> None:
    assert one(k.absorbed_wrong, np.linspace(0.3, 1.7, n)).verdict == "fail"
    assert one(k.straight_through, np.linspace(0.3, 1.7, n)).verdict == "fail"


def test_noise_is_settled_by_forward_mode() -> None:
    assert one(k.offset, np.linspace(1.0, 5.0, 12)).verdict == "pass"


@pytest.mark.parametrize("n", [3, 5000])
def test_rounding_of_a_right_adjoint(n: int) -> None:
    pair = one(k.lossy, np.linspace(0.3, 1.2, n))
    assert pair.verdict == "rounding" and 4.0 < pair.digits_lost <= 7.0
    assert "digits are lost" in pair.reason
    assert one(k.waves, np.linspace(0.3, 1.2, n)).digits_lost == 0.0


def restless(monkeypatch: pytest.MonkeyPatch, values: Any, spread: Any) -> Any:
    """The pair of y = x**3 of which the second value is another one each time.

    spread: by how much, from the array that holds it.
    """
    from engine.autograd.launch.evaluation import Evaluation

    run, rng = Evaluation.forward_again, np.random.default_rng(0)

    def changed(self: Any) -> None:
        run(self)
        out = self.memory["out"]
        out[1] += spread(out) * rng.standard_normal()

    x, out = floats(values), wp.zeros(len(values), dtype=float, requires_grad=True)
    with monkeypatch.context() as patched:
        patched.setattr(Evaluation, "forward_again", changed)
        (pair,) = check_tape(recorded(k.cubes, out, x)).launches[0].pairs
    return pair


@pytest.mark.parametrize("large", [1.0, 30.0, 300.0])
def test_results_that_differ_each_time(monkeypatch: pytest.MonkeyPatch, large: float) -> None:
    pair = restless(monkeypatch, [large, 0.5, 1.0], lambda out: 0.1 * out[1])
    assert pair.verdict == "nondeterministic" and "its results differ" in pair.reason


def test_sums_in_another_order_beside_large_ones_differ_by_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rounding(out: Any) -> Any:
        return 4.0 * np.finfo(out.dtype).eps * np.abs(out).max()

    pair = restless(monkeypatch, [1e3, 0.1, 1.0], rounding)
    assert pair.verdict != "nondeterministic", pair
