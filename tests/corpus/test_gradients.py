"""The gradient of every corpus kernel, in both precisions, against float64 differences."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.corpus import control, memory, values  # noqa: F401 (they register cases)
from tests.corpus import oracle as o
from tests.corpus.case import CASES

IDS = [c.name for c in CASES]


@pytest.fixture(scope="module")
def gradients() -> dict[tuple[str, bool], Any]:
    """Every case recorded on one tape for each precision, so that adjoints compile together."""
    out: dict[tuple[str, bool], Any] = {}
    for double in (False, True):
        tape = wp.Tape()
        seeds, made = {}, []
        with tape:
            for case in CASES:
                rng = np.random.default_rng(zlib.crc32(case.name.encode()))
                data = [o.data_of(a, rng) if isinstance(a, o.Arr) else a for a in case.args]
                weights = o.cotangents(case, rng)
                run = o.Run(case, case.make(wp.float64 if double else wp.float32), double, data)
                args = run.arrays(True)
                run.launch(args)
                for i, w in weights.items():
                    seeds[args[i]] = wp.array(w, dtype=args[i].dtype)
                made.append((run, args, weights))
        tape.backward(grads=seeds)
        for run, args, weights in made:
            grads = {i: args[i].grad.numpy().astype(np.float64) for i in o.inputs(run.case)}
            out[run.case.name, double] = (run, grads, weights)
    return out


@pytest.mark.parametrize("name", IDS)
def test_float64_gradient_matches_differences(name: str, gradients: Any) -> None:
    run, grads, weights = gradients[name, True]
    for i, expected in o.differences(run, weights).items():
        np.testing.assert_allclose(grads[i], expected, rtol=1e-6, atol=1e-7 * scale(expected))


@pytest.mark.parametrize("name", IDS)
def test_float32_gradient_matches_float64(name: str, gradients: Any) -> None:
    _, single, _ = gradients[name, False]
    _, double, _ = gradients[name, True]
    for i, expected in double.items():
        np.testing.assert_allclose(single[i], expected, rtol=2e-4, atol=2e-5 * scale(expected))


def scale(x: np.ndarray) -> float:
    return float(np.abs(x).max(initial=0.0)) + 1e-3
