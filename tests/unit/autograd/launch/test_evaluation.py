"""One launch as data and as a function: what it takes from a record, and its products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd.launch.evaluation import Evaluation, evaluations
from engine.autograd.launch.recorded_arguments import (
    NotRepeatable,
    Overlapping,
    RecordedLaunch,
    recorded_launch,
)
from tests.unit.autograd.verdict_kernels import floats

F = wp.array(dtype=float)


@wp.kernel
def mixes(x: F, w: F, y: F):
    i = wp.tid()
    total = float(0.0)
    for k in range(3):
        total += wp.sin(x[(i + k) % 4]) * w[k]
    y[i] = total * y[i]
    print(total)
    wp.expect_eq(i, -1)


@wp.kernel
def adds(x: F, y: F):
    i = wp.tid()
    y[i] = y[i] + x[i] * x[i]


def launched(kernel: Any, *args: Any, dim: int) -> RecordedLaunch:
    wp.config.expect = "print"
    try:
        with wp.Tape() as tape:
            wp.launch(kernel, dim=dim, inputs=list(args))
    finally:
        wp.config.expect = "raise"
    return recorded_launch(tape.records[0])


def mixed() -> tuple[RecordedLaunch, list[Any]]:
    args = [floats([0.1, 0.2, 0.3, 0.4]), floats([1.0, 2.0, 3.0]), floats([1.0, -1.0, 2.0, 0.5])]
    return launched(mixes, *args, dim=4), args


def test_contents_are_those_of_the_launch() -> None:
    launch, args = mixed()
    args[0].fill_(7.0)
    x, w, y = launch.arguments
    np.testing.assert_array_equal(x.value, np.float32([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_array_equal(y.value, [1.0, -1.0, 2.0, 0.5])
    assert (x.name, x.requires_grad, x.alias, launch.dim) == ("x", True, "", (4,))


def test_two_arguments_of_one_memory_are_one() -> None:
    x = floats([1.0, 2.0])
    launch = launched(adds, x, x, dim=2)
    assert [a.alias for a in launch.arguments] == ["", "x"]
    with evaluations(launch) as both:
        assert (both.inputs, both.outputs) == (("x",), ("x",))
        assert both.exact.forward()["x"].tolist() == [2.0, 6.0]


def test_overlapping_arguments_are_refused() -> None:
    x = floats([1.0, 2.0, 3.0])
    with pytest.raises(Overlapping, match="'x' and 'y' overlap"):
        launched(adds, x[:2], x[1:], dim=2)


def test_what_is_not_known_any_more_is_told_with_the_reason(monkeypatch) -> None:
    monkeypatch.setattr(wp.config, "tape_snapshots", "off")
    with pytest.raises(NotRepeatable, match=r"'x' at launch time are lost: .*tape_snapshots"):
        launched(adds, floats([1.0]), floats([0.0]), dim=1)


def test_products_with_the_jacobian_are_transposed(capsys) -> None:
    """<J v, w> = <v, J' w>, in both precisions, for all ways to take J v."""
    launch, args = mixed()
    capsys.readouterr()
    rng = np.random.default_rng(0)
    with evaluations(launch) as both:
        assert both.inputs == ("x", "w", "y") and both.outputs == ("y",)
        for evaluation, rtol in ((both.own, 1e-5), (both.exact, 1e-12)):
            assert evaluation.generated
            w = rng.standard_normal(4)
            v = {a: rng.standard_normal(evaluation.initial[a].shape) for a in both.inputs}
            grads = evaluation.vjp({"y": w})
            right = sum(float(np.sum(grads[a] * v[a])) for a in both.inputs)
            for product in (evaluation.jvp, evaluation.jvp_by_hand):
                assert float(product(v)["y"] @ w) == pytest.approx(right, rel=rtol)
    assert capsys.readouterr().out == ""
    assert [a.grad.numpy().any() for a in args] == [False] * 3


def test_parts_of_the_threads_add_up() -> None:
    launch, _ = mixed()
    own = Evaluation(launch)
    w = {"y": np.ones(4)}
    whole = own.vjp(w)["x"].copy()
    parts = [own.vjp(w, (k, k + 1))["x"].copy() for k in range(4)]
    np.testing.assert_allclose(np.sum(parts, axis=0), whole, rtol=1e-6)
    np.testing.assert_array_equal(own.vjp(w)["x"], whole)
    own.close()


def test_runs_start_from_the_recorded_contents() -> None:
    launch, _ = mixed()
    own = Evaluation(launch)
    first = own.forward()["y"].copy()
    np.testing.assert_array_equal(own.forward()["y"], first)
    assert not np.array_equal(own.initial["y"], first)
    own.forward_again()
    assert not np.array_equal(own.memory["y"], first)
