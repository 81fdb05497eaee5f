"""Copies of arrays that are added up: by threads of the pool as by NumPy, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import copies as module
from engine.compile.cpu.copies import Copies, add, view
from engine.compile.threads import Placed
from engine.lang.types import FLOAT32, FLOAT64, ArrayType, VectorType


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("element", [FLOAT32, FLOAT64, VectorType(FLOAT32, 3)], ids=str)
@pytest.mark.parametrize("size", [1, 63, 64, 65, 5000, 70_001])
def test_threads_add_what_numpy_adds(
    threads: int, element: Any, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wp.config, "num_threads", threads)
    rng = np.random.default_rng(size)
    inner = (3,) if isinstance(element, VectorType) else ()
    dtype = np.float64 if element is FLOAT64 else np.float32
    start = rng.normal(size=(size, *inner)).astype(dtype)
    start[::3] = -0.0
    parts = rng.normal(size=(4, *start.shape)).astype(dtype)
    parts[rng.random(parts.shape) < 0.5] = 0.0
    parts[2][::7] = np.nan
    parts[1] = 0.0
    found = []
    for large in (0, 10**9):
        monkeypatch.setattr(module, "_LARGE", large)
        target = start.copy()
        placed = Placed("a", ArrayType(element, 1), 0, target.ctypes.data, (size,),
                        (target.strides[0],))  # fmt: skip
        made = Copies(placed, (0,), len(parts))
        for mine, its in zip(made.parts, parts, strict=True):
            mine[...] = its
        add(view(placed), made, made.parts)
        found.append(target)
    kind = np.uint64 if dtype is np.float64 else np.uint32
    np.testing.assert_array_equal(found[0].view(kind), found[1].view(kind))
    assert size == 1 or np.signbit(found[0][start == 0]).any()
