"""Launches in parts, with their adjoints, give what one thread after another gives.

Random kernels on tapes, with values of which every sum is exact. `ENGINE_PROGRAMS` sets how many
kernels run (default 100).
"""

from __future__ import annotations

import collections
import os
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.parts import cut
from tests.property.indices import EXTENT, Bounded
from tests.property.test_threads import BATCH, load
from tests.sweeps import reduced

pytestmark = pytest.mark.whole
COUNT = int(os.environ.get("ENGINE_PROGRAMS", "100"))
EXACT = 2**22  # integers below this are exact, and the sums of a few
N = 4


def gradients(kernel: Any, dim: tuple[int, ...], seed: int) -> list[np.ndarray[Any, Any]]:
    """What a launch leaves, and its gradients for random cotangents."""
    rng = np.random.default_rng(seed)
    shapes = {"x": EXTENT, "y": EXTENT, "z": (EXTENT, EXTENT)}
    arrays = {
        k: wp.array(rng.integers(-4, 9, s).astype(np.float32), dtype=float, requires_grad=True)
        for k, s in shapes.items()
    }
    with wp.Tape() as tape:
        wp.launch(kernel, dim, [*arrays.values(), N])
    out = [a.numpy().copy() for a in arrays.values()]
    cotangents = {
        a: wp.array(rng.integers(-3, 4, a.shape).astype(np.float32), dtype=float)
        for a in arrays.values()
    }
    tape.backward(grads=cotangents)
    return out + [a.grad.numpy().copy() for a in arrays.values()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "first", reduced(range(1000, 1000 + COUNT, BATCH), lambda first: first < 1000 + 2 * BATCH)
)
def test_parts_give_what_the_whole_gives(first: int, tmp_path: Any) -> None:
    kernels, writers = load(tmp_path, first, Bounded)
    forms: collections.Counter[str] = collections.Counter()
    for kernel, w in zip(kernels, writers, strict=True):
        whole = gradients(kernel, w.dim, w.seed)
        with cut(2) as seen:
            parts = gradients(kernel, w.dim, w.seed)
        if any(np.abs(a).max() > EXACT for a in whole):
            continue
        for a, b in zip(parts, whole, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=w.kernel("kernel"))
        forms.update(name.rpartition("_")[2] for name, count in seen if count > 1)
    assert forms["adjoint"] > 2, forms
