"""Loops that save segments give the gradients that loops which save iterations give."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from engine import ad
from engine.ad import checkpoints
from engine.ir import interp
from engine.ir import nodes as n
from engine.ir.verify import verify
from tests.property.programs import ARRAYS, SIZE, program
from tests.unit.ad.test_reverse import adjoint, product, statements, total

WRT = frozenset(ARRAYS)
TRIPS = 7


@pytest.mark.parametrize("segment", [2, 3])
@pytest.mark.parametrize("seed", range(30))
def test_random_programs_bit_for_bit(seed: int, segment: int, monkeypatch) -> None:
    monkeypatch.setattr(checkpoints, "SEGMENT", segment)
    fn = program(seed)
    rng = np.random.default_rng(seed)
    start = [rng.uniform(-1.5, 1.5, SIZE) for _ in ARRAYS]
    weights = [rng.standard_normal(SIZE) for _ in ARRAYS]
    prepared = ad.prepare(fn)
    journaled = ad.read_params(fn) & ad.written_params(fn)
    usual = ad.reverse(prepared, WRT, journaled)
    spare = ad.reverse(prepared, WRT, journaled, checkpoint=True)
    verify(spare.fn)
    assert spare.sites == usual.sites
    journal = interp.Journal()
    after = [a.copy() for a in start]
    interp.run(ad.record(prepared, usual.sites), [*after, TRIPS], (1,), journal=journal)
    found = []
    for form in (usual, spare):
        grads = [w.copy() for w in weights]
        args = [*(a.copy() for a in after), TRIPS, *grads]
        interp.run(form.fn, args, (1,), journal=copy.deepcopy(journal))
        found.append(grads)
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


def longest_stack(fn: n.Function, args: list) -> int:
    """The most values that were on the stack at once."""
    most = 0

    class Watch(interp._Thread):
        def push(self, s: n.Push) -> None:
            nonlocal most
            super().push(s)
            most = max(most, len(self.stack))

    with pytest.MonkeyPatch.context() as m:
        m.setattr(interp, "_Thread", Watch)
        interp.run(fn, args, (1,))
    return most


def test_stack_of_a_long_loop(monkeypatch) -> None:
    monkeypatch.setattr(checkpoints, "SEGMENT", 10)
    fn = adjoint(product).fn
    spare = ad.reverse(ad.prepare(_kernel(product)), frozenset({"a", "b"}), frozenset(), True).fn
    a = np.full(100, 1.01, np.float32)

    def args() -> list:
        zeros = [np.zeros_like(a), np.ones(1, np.float32)]
        return [a, np.zeros(1, np.float32), 100, *zeros]

    assert longest_stack(fn, args()) == 100
    assert longest_stack(spare, args()) == 10 + 9  # segments, and the last one's iterations


def test_nothing_is_reserved_for_loops_that_save_nothing() -> None:
    assert not statements(adjoint(total).fn, n.Reserve)
    assert not statements(adjoint(product).fn, n.Reserve)  # its forward sweep saves it all


def _kernel(build) -> n.Function:
    from tests.unit.ad.test_reverse import kernel

    return kernel(build)
