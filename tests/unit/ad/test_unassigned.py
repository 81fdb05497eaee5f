"""The watched kernel does what the kernel does, and notes what it reads without a value."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.ir import interp
from engine.ir.verify import verify

F = wp.array(dtype=float)


@wp.func
def chosen(v: float):
    if v > 0.5:
        r = v
    return r + 1.0


@wp.kernel
def reads_two(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.0:
        s = x[i]
    y[i] = chosen(x[i])
    y[i] += s


@wp.kernel
def assigns(x: F, y: F):
    i = wp.tid()
    y[i] = x[i]


def test_a_kernel_that_assigns_everything_is_not_watched() -> None:
    assert ad.watched(assigns.plan.variants.ir) is None


@pytest.mark.filterwarnings("ignore:.*before it has a value")
def test_each_read_has_a_number_of_its_own() -> None:
    ir = reads_two.plan.variants.ir
    found = ad.watched(ir)
    assert found is not None
    fn, reads = found
    verify(fn)
    assert sorted(r.name for r in reads) == ["r", "s"]
    for value, expected in ((0.7, set()), (0.3, {"r"}), (-1.0, {"r", "s"})):
        x, plain, watched = np.float32([value]), np.zeros(1, np.float32), np.zeros(1, np.float32)
        interp.run(ir, [x, plain], (1,))
        journal = interp.run(fn, [x, watched], (1,))
        assert {reads[-1 - int(w)].name for w in journal.slots} == expected
        assert plain == watched
