"""Threads that a loop leaves out would have done nothing: the same bits with and without guards."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen.facts import facts_of
from engine.codegen.guards import guards_of
from engine.compile.backend import Entry, Limits
from engine.compile.cpu import CPU
from engine.compile.pipeline import Variants
from engine.ir import interp
from engine.ir.nodes import Function
from tests.backend.test_loops import (
    FORMS,
    F,
    all_forms,
    arguments,
    both_ways,
    described,
    functions,
    grid,
    memory,
    packed,
)  # fmt: skip
from tests.parts import cut
from tests.property.guarded import ENDS as RANDOM_ENDS
from tests.property.guarded import THREADS, guarded

pytestmark = pytest.mark.whole
F2 = wp.array2d(dtype=float)


@wp.kernel
def early(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i >= hi:
        return
    y[i] = x[i] * x[i]


@wp.kernel
def twice(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i < lo:
        return
    if hi <= i:
        return
    y[i] = x[i] * x[i]


@wp.kernel
def window(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if lo <= i < hi:
        y[i] = x[i] * x[i]


@wp.kernel
def neither(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if not (i <= lo or i > hi):
        y[i] = x[i] * 2.0


@wp.kernel
def equal(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i == hi:
        y[i] = x[i] * 2.0
        y[lo % y.shape[0]] = 7.0


@wp.kernel
def unequal(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i != hi and lo < i:
        y[i] = x[i] * 2.0


@wp.kernel
def nested(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i > lo:
        v = x[i]
        if hi > i:
            y[i] = v * v
        else:
            v = 3.0


@wp.kernel
def positive(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i < hi and x[i] > 0.0 and i > lo:
        y[i] = x[i] * x[i]


@wp.kernel
def flagged(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    ok = i < hi
    if x[i] > 1.0:
        ok = ok and i > lo
    if ok:
        y[i] = x[i] * x[i]


@wp.kernel
def changed(x: F, lo: int, hi: int, y: F):
    """The flag is not what it was."""
    i = wp.tid()
    ok = i < hi
    for k in range(3):
        if x[i] > float(k):
            ok = True
    if ok:
        y[i] = x[i] * x[i]


@wp.kernel
def otherwise(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i < hi:
        y[i] = x[i]
    else:
        y[i] = -x[i]


@wp.kernel
def before(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    y[i] = x[i]
    if i > hi:
        return
    y[i] = y[i] * x[i]


@wp.kernel
def computed(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i < wp.min(hi - 3, y.shape[0]) and i >= lo * 2:
        y[i] = x[i] * x[i]


@wp.kernel
def beside(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i + 2 < hi and lo <= i - 3 and 1 + (i - 1) < y.shape[0]:
        y[i] = x[i] * x[i]


@wp.kernel
def far_beside(x: F, lo: int, hi: int, y: F):
    """What is added may wrap."""
    i = wp.tid()
    if i + 2147483000 < hi:
        y[i] = x[i] * x[i]


@wp.kernel
def near_beside(x: F, lo: int, hi: int, y: F):
    """As far as may be, and a step beyond that."""
    i = wp.tid()
    if i + 32768 < hi or i - 32769 >= hi or (i + 32767) + 2 < lo:
        y[i] = x[i] * x[i]


@wp.kernel
def near_enough(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if (i - 32767) - 1 < lo and i + 32768 > hi:
        y[i] = x[i] * x[i]


@wp.kernel
def taken_away(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if hi > 3 - i:
        y[i] = x[i] * x[i]


@wp.kernel
def doubled(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if 2 * i < hi:
        y[i] = x[i] * x[i]


@wp.kernel
def by_value(x: F, lo: int, hi: int, y: F):
    """The bound is not the same for a row."""
    i = wp.tid()
    if i < int(x[i]) + 3:
        y[i] = x[i] * x[i]


@wp.kernel
def looped(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    for k in range(3):
        if i < hi:
            y[i] = y[i] + x[i] * float(k)
        if x[i] > 1.0:
            break


@wp.kernel
def stops(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    for k in range(4):
        if i + k >= hi:
            return
        y[i] = y[i] + x[i]


@wp.kernel
def total(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i >= lo and i < hi:
        wp.atomic_add(y, 0, x[i])
        wp.atomic_add(y, 1 % y.shape[0], 2.0)


@wp.func
def put(x: F, i: int, y: F):
    y[i] = x[i] * 2.0


@wp.func
def read(x: F, i: int):
    return x[i] * 2.0


@wp.kernel
def called(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    v = read(x, i)
    if i < hi:
        put(x, i, y)
        y[i] = y[i] + v


@wp.kernel
def called_before(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    put(x, i, y)
    if i < hi:
        y[i] = x[i]


@wp.kernel
def summed(x: F, lo: int, hi: int, y: F):
    """Blocks of threads run it, which have no guards."""
    i = wp.tid()
    if i >= hi:
        return
    s = float(0.0)
    for k in range(x.shape[0]):
        s += x[k] * x[i]
    y[i] = s


@wp.kernel
def unassigned(x: F, lo: int, hi: int, y: F):
    """What was never assigned is false."""
    i = wp.tid()
    if i < hi:
        skip = bool(i == lo)
    if not skip:
        y[i] = x[i] * x[i]


@wp.func_native("return 3.0f;")
def three() -> float: ...


@wp.func
def of_native(v: float):
    return three() * v


@wp.kernel
def by_native(x: F, lo: int, hi: int, y: F):
    """Native text may change anything, wherever it is called."""
    i = wp.tid()
    v = of_native(x[i])
    if i < hi:
        y[i] = v


@wp.kernel
def wide(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if wp.int64(i) < wp.int64(hi) * wp.int64(4294967296) and wp.int64(i) >= wp.int64(lo):
        y[i] = x[i] * x[i]


@wp.kernel
def wide_beside(x: F, lo: int, hi: int, y: F):
    """A bound that may be an end of int64."""
    i = wp.tid()
    below = wp.int64(hi) * wp.int64(4294967296)
    if wp.int64(i) + wp.int64(1) < below or wp.int64(i) - wp.int64(2) >= below + wp.int64(
        4294967295
    ):
        y[i] = x[i] * x[i]


@wp.kernel
def wide_early(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if wp.int64(i) - wp.int64(1) >= wp.int64(hi) * wp.int64(4294967296) + wp.int64(4294967295):
        return
    y[i] = x[i] * x[i]


@wp.kernel
def wide_late(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if wp.int64(i) + wp.int64(1) < wp.int64(hi) * wp.int64(4294967296):
        y[i] = x[i] * x[i]


@wp.kernel
def contrary(x: F, lo: int, hi: int, y: F):
    i = wp.tid()
    if i < hi:
        if i >= hi:
            y[i] = x[i]


@wp.kernel
def inner(u: F2, lo: int, hi: int, out: F2):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1 and j < hi:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] * (around - 4.0 * u[i, j])


@wp.kernel
def triangle(u: F2, lo: int, hi: int, out: F2):
    i, j = wp.tid()
    if j > i:
        return
    if j == lo:
        return
    out[i, j] = u[i, j] * u[i, j]


GUARDED = [early, twice, window, neither, equal, unequal, nested, positive, flagged, computed,
           beside, near_enough, total, called, summed, wide, contrary, inner, triangle]  # fmt: skip
PLAIN = [
    changed,
    looped,
    otherwise,
    before,
    doubled,
    far_beside,
    taken_away,
    near_beside,
    wide_beside,
    wide_early,
    wide_late,
    by_value,
    stops,
    unassigned,
    by_native,
    called_before,
]
KERNELS = GUARDED + PLAIN
ENDS = (-(2**31), -1, 0, 1, 2, 5, 16, 99, 100, 2**31 - 1)


@functools.cache
def compiled() -> dict[str, list[tuple[Function, Entry, Entry]]]:
    return all_forms(KERNELS)


def ran(forms: Any, which: int, n: int, lo: int, hi: int) -> list[Any]:
    journal, out = None, []
    for (fn, *entries), form in zip(forms, FORMS, strict=True):
        args, arrays = arguments(fn, n, packed, (lo, hi))
        made = CPU.run(entries[which], grid(fn, n), args, Limits(0, 0),
                       journal=journal if form == "adjoint" else None)  # fmt: skip
        assert not made.error
        journal = made.journal if form == "recorded" else journal
        out += [a.tobytes() for a in arrays]
    return out


def test_which_kernels_have_guards() -> None:
    def has(k: Any, form: int) -> bool:
        fn = functions(k)[form]
        return guards_of(fn, facts_of(fn)) is not None

    for k in GUARDED:
        assert has(k, 0), k.key
    for k in PLAIN:
        assert not has(k, 0), k.key
    # Adjoints that need no journal have them too.
    assert all(has(k, 2) for k in (early, twice, window, nested, positive, inner, triangle, total))
    found = guards_of(fn := functions(inner)[0], facts_of(fn))
    assert found is not None
    assert sorted(t.op for t in found.tests) == ["gt", "lt", "lt"] and len(found.rows) == 2


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_the_same_bits(kernel: Any) -> None:
    forms = compiled()[kernel.key]
    for n in (1, 17, 100):
        for lo in ENDS[1:-1]:
            for hi in ENDS:
                assert ran(forms, 0, n, lo, hi) == ran(forms, 1, n, lo, hi), (n, lo, hi)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_the_same_bits_in_parts(kernel: Any, threads: int) -> None:
    forms = compiled()[kernel.key]
    for lo, hi in ((0, 50), (33, 34), (7, 93), (50, 3)):
        plain = ran(forms, 1, 100, lo, hi)
        with cut(threads):
            assert ran(forms, 0, 100, lo, hi) == plain, (lo, hi)


def test_threads_of_fewer_axes_than_the_grid() -> None:
    """Rows are single threads then."""
    for kernel in (window, total):
        x = wp.array(np.arange(12.0), dtype=float)
        y = wp.zeros(12, dtype=float)
        wp.launch(kernel, dim=(12, 3), inputs=[x, 2, 7], outputs=[y])
        got = y.numpy()
        if kernel is window:
            assert got.tolist() == [0, 0, *(float(i * i) for i in range(2, 7)), *[0] * 5]
        else:
            assert got[0] == 3 * sum(range(2, 7)) and got[1] == 30.0


COUNT = int(os.environ.get("ENGINE_GUARDED_PROGRAMS", "40"))


@functools.cache
def programs() -> list[tuple[Function, Entry, Entry]]:
    made = (Variants(guarded(seed)) for seed in range(COUNT))
    return both_ways([v.function("forward", frozenset(), frozenset()) for v in made])


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_guards(seed: int) -> None:
    """With guards, without, and what the interpreter says, for one thread and for several."""
    fn, fast, plain = programs()[seed]
    for end in RANDOM_ENDS:
        start = [memory((THREADS,), np.float32, k) for k in range(3)]
        expected = [a.copy() for a in start]
        interp.run(fn, [*expected, end], THREADS)
        for entry in (fast, plain):
            for threads in (1, 2, 7):
                arrays = [a.copy() for a in start]
                args = b"".join(described(a, 1) for a in arrays)
                with cut(threads):
                    made = CPU.run(entry, (THREADS,), args + np.int64(end).tobytes(), Limits(0, 0))
                assert not made.error
                assert [a.tolist() for a in arrays] == [a.tolist() for a in expected], end


def test_random_programs_have_guards() -> None:
    found = [guards_of(fn, facts_of(fn)) for fn, *_ in programs()]
    assert sum(g is not None for g in found) > COUNT / 4
