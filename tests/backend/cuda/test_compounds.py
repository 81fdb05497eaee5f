"""Structs, arrays of structs and indexed arrays on a GPU, real or emulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.backend.cuda.emulated import PLACES, place
from tests.backend.cuda.test_corpus import CLOSE
from tests.corpus import arrays, choices, structs  # noqa: F401 (they register cases)
from tests.corpus import compound as c

# Gradients that depend on the order of the threads.
REFUSED = {
    "chosen_by_expressions", "chosen_results", "indexed", "returned_views", "slices",
    "struct_from_function_with_array",
}  # fmt: skip
FEW = 12  # each of so many runs emulated


def cases() -> list[Any]:
    out = []
    for where in PLACES:
        name, marks = (where, []) if isinstance(where, str) else ("cuda", [pytest.mark.gpu])
        for k, case in enumerate(c.CASES):
            more = [pytest.mark.sweep] if name == "emulated" and k % FEW else []
            out.append(pytest.param(name, case, id=f"{case.name}-{name}", marks=[*marks, *more]))
    return out


def found(case: c.Compound, double: bool, device: Any) -> list[Any]:
    """Gradients and values."""
    with wp.ScopedDevice(device):
        kernel, dim, args = case.make(wp.float64 if double else wp.float32)
        slopes = c.gradients(kernel, dim, args, c.weights_of(args))
        values = [v for a in c.differentiable(args).values() for v in c.float_views(a)]
    return [*(part for parts in slopes.values() for part in parts), *values]


@pytest.mark.parametrize(("where", "case"), cases())
def test_compounds(where: str, case: c.Compound) -> None:
    with place(where) as device:
        for double in (False, True) if where == "cuda" else (True,):
            try:
                there = found(case, double, device)
            except wp.LaunchError as e:
                assert e.diagnostics[0].code == "E407" and case.name in REFUSED, e
                continue
            assert case.name not in REFUSED
            for got, expected in zip(there, found(case, double, "cpu"), strict=True):
                np.testing.assert_allclose(got, expected, **CLOSE[double])
