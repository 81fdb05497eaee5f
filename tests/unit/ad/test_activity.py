"""Variables that can carry a derivative: from a differentiated array, and to one."""

from __future__ import annotations

import engine as wp
from engine.ad.activity import active
from tests.unit.ad.kernels import prepared


@wp.kernel
def kernel(x: wp.array(dtype=float), z: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    used = wp.sin(x[i])
    lost = wp.sin(x[i] * 2.0)
    other = wp.cos(z[i])
    cut = wp.cos(wp.floor(x[i]))
    z[i] = lost
    y[i] = used + other + cut


def names(wrt: set[str]) -> set[str]:
    return {v.name for v in active(prepared(kernel), frozenset(wrt))} & {
        "used", "lost", "other", "cut"
    }  # fmt: skip


def test_what_comes_from_and_goes_to_differentiated_arrays() -> None:
    assert names({"x", "y"}) == {"used"}
    assert names({"x", "y", "z"}) == {"used", "lost", "other"}
    assert names({"x", "z"}) == {"lost"}


def test_one_end_is_not_enough() -> None:
    assert names({"x"}) == names({"y"}) == names(set()) == set()


def test_inputs_and_results_stand_for_elements() -> None:
    fn = prepared(kernel)
    (used,) = [v for v in active(fn, frozenset({"x", "y"})) if v.name == "used"]
    assert used in active(fn, frozenset({"x"}), results=[used])
    assert used in active(fn, frozenset({"y"}), inputs=[used])
