"""Sums of all threads of a launch or a row: one order, however threads run, and nothing lost."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import sums
from engine.compile.backend import Entry, Limits
from engine.compile.cpu import CPU
from engine.compile.cpu.loops import loops_of, text
from engine.compile.threads import Threads
from engine.ir import nodes as n
from engine.lang.types import ArrayType, scalar_of, shape_of
from tests.backend.test_loops import F2, FORMS, F, I, V, both_ways, described, functions, memory
from tests.parts import cut

pytestmark = pytest.mark.whole
D, H = wp.array(dtype=wp.float64), wp.array(dtype=wp.int64)
S2 = wp.array(dtype=wp.int16)
SIZES = (1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 4160, 8192 + 65, 20_001)


@wp.kernel
def squares(x: F, out: F):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])


@wp.kernel
def wide(x: D, out: D):
    i = wp.tid()
    wp.atomic_add(out, 1, x[i] * x[i])


@wp.kernel
def guarded(x: F, out: F, few: int):
    i = wp.tid()
    if i < few:
        wp.atomic_add(out, 0, x[i])


@wp.kernel
def left(x: F, out: F, few: int):
    i = wp.tid()
    if i >= few:
        return
    wp.atomic_sub(out, 0, x[i])


@wp.kernel
def some(x: F, count: I, out: F):
    i = wp.tid()
    if x[i] > 0.0:
        wp.atomic_add(out, 0, x[i])
        wp.atomic_add(count, 2, 1)


@wp.kernel
def several(x: F, y: F, a: F, b: D, c: H, d: S2):
    i = wp.tid()
    wp.atomic_add(a, 0, x[i])
    wp.atomic_add(a, 3, x[i] * y[i])
    wp.atomic_add(b, 1, wp.float64(y[i]) * wp.float64(y[i]))
    wp.atomic_add(c, 2, wp.int64(x[i]))
    wp.atomic_add(d, 0, wp.int16(y[i]))


@wp.kernel
def vectors(x: V, out: V, size: F):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * 2.0)
    wp.atomic_add(size, 0, wp.dot(x[i], x[i]))


@wp.kernel
def plane(x: F2, out: F):
    i, j = wp.tid()
    wp.atomic_add(out, 0, x[i, j] * x[i, j])


@wp.kernel
def by_row(x: F2, rows: D, out: F):
    i, j = wp.tid()
    wp.atomic_add(rows, i, wp.float64(x[i, j]) * wp.float64(x[i, j]))
    wp.atomic_add(out, 3, x[i, j])


@wp.kernel
def row_by_row(x: F2, rows: F, out: F):
    """With a loop, and elements of a row and of the launch in one array."""
    i, j = wp.tid()
    value = float(0.0)
    for k in range(2):
        value += x[i, j] * float(k + 1)
    wp.atomic_add(rows, i, value)
    wp.atomic_add(rows, 0, x[i, j])


@wp.kernel
def stored(x: F, y: F, out: F):
    i = wp.tid()
    y[i] = x[i] * 2.0 + y[i]
    wp.atomic_add(out, 0, y[i] * x[i])


@wp.kernel
def turning(x: F, out: F):
    """With a loop, so that whole steps have no form of their own."""
    i = wp.tid()
    value = float(0.0)
    for k in range(3):
        value += x[i] * float(k)
    wp.atomic_add(out, 0, value)


@wp.kernel
def weighted(w: F, x: F, y: F):
    """Whose adjoint adds to a few elements."""
    i = wp.tid()
    y[i] = w[0] * x[i] + w[3]


@wp.kernel
def doubled(x: F, out: F):
    """Of a recorded launch, threads have a journal."""
    i = wp.tid()
    x[i] = x[i] * 2.0
    wp.atomic_add(out, 0, x[i] * x[i])


KERNELS = [squares, wide, guarded, left, some, several, vectors, plane, by_row, row_by_row, stored,
           turning, weighted, doubled]  # fmt: skip
Forms = list[tuple[n.Function, Entry, Entry]]


@functools.cache
def compiled() -> dict[str, Forms]:
    fns = [f for k in KERNELS for f in functions(k)]
    made, count = both_ways(fns), len(FORMS)
    return {k.key: made[i * count : (i + 1) * count] for i, k in enumerate(KERNELS)}


def shape(p: n.Var, dim: tuple[int, ...]) -> tuple[int, ...]:
    """Arrays of results of some elements; of the threads' own, as many as these."""
    assert isinstance(p.type, ArrayType)
    fixed = p.name.removeprefix("adj_").removeprefix("tan_")
    if fixed == "rows":
        return dim[:1]
    return (4,) if fixed in ("out", "a", "b", "c", "d", "count", "size", "w") else dim


def grid(fn: n.Function, size: int, row: int = 7) -> tuple[int, ...]:
    axes = max(p.type.ndim for p in fn.params if isinstance(p.type, ArrayType))
    return (max(size // row, 1), row) if axes == 2 else (size,)


def given(fn: n.Function, dim: tuple[int, ...], few: int, real: bool) -> tuple[bytes, list[Any]]:
    """Arguments, and arrays: of small integers, of which sums are exact, or of random numbers."""
    out, arrays = b"", []
    for k, p in enumerate(fn.params):
        if isinstance(p.type, ArrayType):
            dtype = scalar_of(p.type).numpy
            a = memory((*shape(p, dim), *shape_of(p.type.element)), dtype, k)
            if real and dtype.kind == "f":
                a = np.random.default_rng(k).standard_normal(a.shape).astype(dtype)
            arrays.append(a)
            out += described(a, p.type.ndim)
        else:
            out += np.int32(few).tobytes().ljust(8, b"\0")
    return out, arrays


def ran(forms: Forms, which: int, size: int, real: bool = False, row: int = 7) -> list[bytes]:
    """What is in the arrays after each form."""
    journal, out = None, []
    for (fn, *entries), form in zip(forms, FORMS, strict=True):
        dim = grid(fn, size, row)
        args, arrays = given(fn, dim, size - size // 5, real)
        used = journal if form == "adjoint" else None
        made = CPU.run(entries[which], dim, args, Limits(0, 0), journal=used)
        assert not made.error
        journal = made.journal if form == "recorded" else journal
        out += [a.tobytes() for a in arrays]
    return out


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_sums_that_are_exact_are_those_of_threads_one_by_one(kernel: Any) -> None:
    forms = compiled()[kernel.key]
    for size in SIZES:
        assert ran(forms, 0, size) == ran(forms, 1, size), size


@pytest.mark.parametrize("row", [1, 3, 63, 64, 65, 200, 4096, 4097, 5000])
@pytest.mark.parametrize("kernel", [plane, by_row, row_by_row], ids=lambda k: k.key)
def test_so_they_are_of_rows_of_any_length(kernel: Any, row: int) -> None:
    forms = compiled()[kernel.key]
    for size in (1, 6 * row, 15_000):
        assert ran(forms, 0, size, row=row) == ran(forms, 1, size, row=row), size


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_any_number_of_threads_gives_the_same_bits(kernel: Any) -> None:
    forms = compiled()[kernel.key]
    for size in (65, 4097, 20_001):
        found = []
        for threads in (1, 2, 7):
            with cut(threads) as seen:
                found.append(ran(forms, 0, size, real=True))
            assert seen
        assert found[0] == found[1] == found[2]


def in_order(terms: np.ndarray[Any, Any]) -> Any:
    """The sum as it is to be, of a row of threads."""
    lanes, held = terms[:0], 0
    lanes = np.full(sums.STEP, -0.0, terms.dtype)
    few = lanes.copy()
    for at in range(0, len(terms), sums.STEP):
        step = terms[at : at + sums.STEP]
        few[: len(step)] += step
        held += 1
        if held == sums.STEPS:
            lanes, few, held = lanes + few, np.full_like(few, -0.0), 0
    lanes = (lanes + few)[: len(terms)]
    while len(lanes) > 1:
        half = (len(lanes) + 1) // 2
        lanes[: len(lanes) - half] += lanes[half:]
        lanes = lanes[:half]
    return lanes[0]


@pytest.mark.parametrize("kernel", [squares, wide], ids=lambda k: k.key)
def test_the_order_is_what_is_said(kernel: Any) -> None:
    (fn, entry, _), *_ = compiled()[kernel.key]
    for size in SIZES:
        args, (x, out) = given(fn, (size,), 0, real=True)
        at = int(kernel is wide)
        before = out.copy()
        CPU.run(entry, (size,), args, Limits(0, 0))
        before[at] += in_order(x * x)
        assert out.tobytes() == before.tobytes(), size


def test_the_order_of_a_row_is_the_same() -> None:
    (fn, entry, _), *_ = compiled()["by_row"]
    for width in SIZES[:-1]:  # launches of more would be cut
        args, (x, rows, _) = given(fn, (3, width), 0, real=True)
        right = rows + [in_order(r.astype(np.float64) ** 2) for r in x]
        CPU.run(entry, (3, width), args, Limits(0, 0))
        assert rows.tobytes() == right.tobytes(), width


@contextmanager
def little(most: int) -> Iterator[None]:
    """Which threads are there twice, for whole steps and for others."""
    before = sums.LITTLE
    sums.LITTLE = most
    try:
        yield
    finally:
        sums.LITTLE = before


def test_whole_steps_with_a_form_of_their_own_add_in_the_same_order() -> None:
    light = [k for k in KERNELS if k not in (turning, row_by_row)]
    fns = [functions(k)[0] for k in light]
    with little(-1):
        once = [replace(e, threads=Threads(f))  # type: ignore[type-var]
                for e, f in zip(CPU.compile(fns), fns, strict=True)]  # fmt: skip
    for k, fn, entry in zip(light, fns, once, strict=True):
        (_, twice, _), *_ = compiled()[k.key]
        for size in (65, 4097, 20_001):
            found = []
            for e in (entry, twice):
                dim = grid(fn, size)
                args, arrays = given(fn, dim, size // 2, real=True)
                CPU.run(e, dim, args, Limits(0, 0))
                found.append([a.tobytes() for a in arrays])
            assert found[0] == found[1], k.key


def test_a_recorded_launch_adds_in_the_same_order() -> None:
    forms = compiled()["doubled"]
    for size in (65, 4097, 20_001):
        found = []
        for fn, entry, _ in forms[:2]:
            args, arrays = given(fn, (size,), 0, real=True)
            made = CPU.run(entry, (size,), args, Limits(0, 0))
            found.append([a.tobytes() for a in arrays])
        assert made.journal is not None and found[0] == found[1]


def test_which_kernels_have_a_form_for_whole_steps() -> None:
    def of(kernel: Any, form: int = 0) -> str:
        return text(functions(kernel)[form], "k")

    whole = f"till - from >= {sums.STEP}"
    assert all(whole in of(k) for k in (squares, wide, guarded, left, some, several, plane, stored))
    assert whole in of(by_row) and whole not in of(row_by_row)
    assert whole not in of(turning) and whole in of(weighted, 2)
    assert whole in of(doubled) and whole not in of(doubled, 1)
    asks = {k.key for k in KERNELS if "ask_on" in of(k)}
    assert asks == {"squares", "wide", "guarded", "left", "some", "vectors", "plane", "by_row"}
    assert loops_of(functions(squares)[0]).lanes == sums.STEP


@pytest.mark.parametrize("size", [1, 64, 700, 5000])
def test_what_is_not_a_number_survives_wherever_it_is(size: int) -> None:
    for kernel, dtype in ((squares, wp.float32), (wide, wp.float64)):
        for at in {0, size // 2, size - 1}:
            for bad in (np.nan, np.inf):
                x = np.zeros(size)
                x[at] = bad
                out = wp.zeros(2, dtype=dtype)
                wp.launch(kernel, size, [wp.array(x, dtype=dtype)], [out])
                assert {str(v) for v in out.numpy()} == {"0.0", str(bad)}


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 5000])
def test_minus_zero_stays(size: int) -> None:
    x = wp.array(np.full(size, -0.0, np.float32), dtype=float)
    out = wp.array(np.full(4, -0.0, np.float32), dtype=float)
    wp.launch(guarded, size, [x, out, size])
    wp.launch(guarded, size, [x, out, 0])
    assert np.signbit(out.numpy()).all()


def test_small_numbers_are_not_lost_in_large_sums() -> None:
    """As many as one after the other would not change a float32 any more."""
    size = 20_000_000
    out = wp.zeros(1, dtype=float)
    wp.launch(squares, size, [wp.full(size, 1.0 + 2.0**-12, dtype=float)], [out])
    right = size * (1.0 + 2.0**-12) ** 2
    assert abs(out.numpy()[0] - right) <= 1e-6 * right
