"""Tapes of real Warp: what it has right passes, what it has wrong is found, and said to be Warp's.

The oracle of both lists is independent of the engine: differences of Warp's own launches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.foreign import watching

pytest.importorskip("warp", reason="warp-lang is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")

import warp as wp  # noqa: E402

from tests.foreign import warp_corpus as corpus  # noqa: E402

NOTHING = {"kinks"}  # differences are off at a kink


def record(case: tuple[Any, Any, Any], seed: int = 3) -> list[Any]:
    kernel, dim, make = case
    given = make(np.random.default_rng(seed))
    with wp.Tape():
        wp.launch(kernel, dim=dim, inputs=given, device="cpu")
    return given


def check(case: tuple[Any, Any, Any]) -> Any:
    with watching() as watched:
        record(case)
    (found,) = watched.results()
    (launch,) = found.launches
    return launch


@pytest.mark.parametrize("name", corpus.RIGHT)
def test_what_warp_has_right_passes(name: str) -> None:
    launch = check(corpus.RIGHT[name])
    assert not launch.skipped and launch.pairs
    assert {p.verdict for p in launch.pairs} == {"pass"}, launch.pairs
    assert launch.peer.name == "Warp" and not launch.peer.wrong


@pytest.mark.parametrize("name", corpus.WRONG)
def test_what_warp_has_wrong_is_found(name: str) -> None:
    launch = check(corpus.WRONG[name])
    wrong = [p for p in launch.pairs if p.verdict == "fail"]
    assert wrong and launch.peer.wrong
    reasons = [r.kind for r in launch.peer.reasons]
    assert reasons and reasons[0] == corpus.REASONS.get(name, "loop")
    for p in wrong:  # the entry that is named is wrong in Warp, and the reference right
        assert p.worst.row >= 0
        got, exact = entry(corpus.WRONG[name], p.input, p.output, p.worst.col, p.worst.row)
        assert p.worst.ad == pytest.approx(got, rel=1e-4, abs=1e-6)
        assert p.worst.oracle == pytest.approx(exact, rel=2e-2, abs=2e-3)
        assert abs(got - exact) > 0.02 * abs(exact)


@pytest.mark.parametrize("name", corpus.RIGHT)
def test_the_list_of_right_ones_is_right(name: str) -> None:
    kernel, dim, make = case = corpus.RIGHT[name]
    arrays = arrays_of(kernel, make(np.random.default_rng(3)))
    out = [*arrays][-1]
    for a in [*arrays][:-1] or [out]:
        got, exact = entry(case, a, out, 0, 0)
        assert got == pytest.approx(exact, rel=2e-2, abs=2e-3)


def arrays_of(kernel: Any, given: list[Any]) -> dict[str, Any]:
    found = {}
    for spec, value in zip(kernel.adj.args, given, strict=True):
        if isinstance(value, wp.array):
            found[spec.label] = value
        elif hasattr(value, "stiffness"):
            found["m.stiffness"] = value.stiffness
    return found


def entry(case: Any, a: str, b: str, col: int, row: int) -> tuple[float, float]:
    """d b[row] / d a[col]: by Warp's adjoint, and by extrapolated differences of its launches."""
    kernel, dim, make = case

    def value(by: float) -> float:
        given = make(np.random.default_rng(3))
        arrays = arrays_of(kernel, given)
        moved = arrays[a].numpy().copy()
        moved.reshape(-1)[col] += by
        arrays[a].assign(moved)
        wp.launch(kernel, dim=dim, inputs=given, device="cpu")
        return float(arrays[b].numpy().reshape(-1)[row])

    def slope(h: float) -> float:
        return (value(h) - value(-h)) / (2.0 * h)

    given = make(np.random.default_rng(3))
    arrays = arrays_of(kernel, given)
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=dim, inputs=given, device="cpu")
    seed = np.zeros_like(arrays[b].numpy())
    seed.reshape(-1)[row] = 1.0
    arrays[b].grad.assign(seed)
    tape.backward()
    got = float(arrays[a].grad.numpy().reshape(-1)[col])
    return got, (4.0 * slope(0.01) - slope(0.02)) / 3.0
