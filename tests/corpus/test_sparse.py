"""Sparse Jacobians of corpus kernels have the entries of dense ones."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import engine as wp
from engine.autograd import jacobian
from engine.compile.pipeline import prefetch
from engine.runtime.device import HOST
from tests.corpus import control, exact, loops, memory, parts, values  # noqa: F401 (they register cases)
from tests.corpus import oracle as o
from tests.corpus.case import CASES

SOME = CASES[::6]


@pytest.fixture(scope="module")
def made():
    """Some cases with their arguments; what records their accesses is compiled together."""
    out = {}
    for case in SOME:
        rng = np.random.default_rng(zlib.crc32(case.name.encode()))
        data = [o.data_of(a, rng) if isinstance(a, o.Arr) else a for a in case.args]
        run = o.Run(case, case.make(wp.float64), True, data)
        out[case.name] = (run.kernel, case.dim, run.arrays(True))
    found = [kernel.variants for kernel, _, _ in out.values()]
    none: frozenset[str] = frozenset()
    prefetch(
        [(HOST.backend, v, "accesses", none, none) for v in found if v.accesses_ir() is not None]
    )
    return out


@pytest.mark.parametrize("name", [c.name for c in SOME])
def test_entries(made, name) -> None:
    kernel, dim, args = made[name]
    dense = jacobian(kernel, dim=dim, inputs=args)
    sparse = jacobian(kernel, dim=dim, inputs=args, sparse=True)
    assert list(dense) == list(sparse)
    for key, matrix in sparse.items():
        whole = dense[key].numpy().reshape(matrix.shape)
        np.testing.assert_allclose(matrix.toarray(), whole, rtol=1e-9, atol=1e-12)
