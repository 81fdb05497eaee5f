"""The recorded kernel does what the kernel does, and writes the values that are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from engine import ad
from engine.ir import interp
from engine.ir import nodes as n
from tests.property.programs import ARRAYS, SIZE, program
from tests.unit.ad.kernels import ran, statements


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_leave_the_same(seed: int) -> None:
    fn = ad.prepare(program(seed))
    sites = frozenset(s.site for s in statements(fn, n.Load, n.Atomic))
    start = [np.random.default_rng(seed).uniform(-1, 1, SIZE) for _ in ARRAYS]
    journal = interp.Journal()
    got = ran(ad.record(fn, sites), 2, *start, 3, journal=journal)
    for x, y in zip(got, ran(fn, 2, *start, 3), strict=True):
        np.testing.assert_array_equal(x, y)
    assert bool(sites) == bool(journal.slots) or not any(np.any(x != 0) for x in start)


def test_only_the_sites_are_written() -> None:
    fn = ad.prepare(program(3))
    loads = statements(fn, n.Load)
    recorded = ad.record(fn, frozenset({loads[0].site}))
    (write,) = statements(recorded, n.JournalWrite)
    assert write.site == loads[0].site and recorded.name == f"{fn.name}_recorded"
    assert statements(ad.record(fn, frozenset()), n.JournalWrite) == []
