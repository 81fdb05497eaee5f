"""Arrays that go out of the processor by whole lines hold what they would hold otherwise."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import streams as streams_module
from engine.codegen.cpp import CPP, emit
from engine.codegen.cstyle import Emitter
from engine.codegen.streams import streams
from engine.compile.backend import Entry, Limits
from engine.compile.cpu import CPU
from engine.compile.cpu.loops import loops_of
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names
from engine.ir.rewrite import names_in, rewrite
from engine.lang.types import ArrayType, scalar_of
from tests.backend import test_loops as loops
from tests.backend import test_strided as strided
from tests.backend.test_loops import F2, F, I, V, both_ways, functions, memory, packed
from tests.parts import cut

pytestmark = pytest.mark.whole
D = wp.array(dtype=wp.float64)


@wp.kernel
def halves(x: F, y: V, z: D, k: I):
    """Elements of several sizes."""
    i = wp.tid()
    y[i] = wp.vec3(x[i], 1.0, -x[i])
    k[i] = i + 1
    z[i] = wp.float64(x[i]) * 0.5


@wp.kernel
def shifted(x: F2, y: F2):
    i, j = wp.tid()
    y[i, j] = x[i, j] + 1.0


@wp.kernel
def copied(x: F, y: F):
    i = wp.tid()
    y[i] = x[i]


@wp.kernel
def sometimes(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.0:
        y[i] = x[i]


@wp.kernel
def twice(x: F, y: F):
    i = wp.tid()
    y[i] = x[i]
    y[i] = y[i] + 1.0


@wp.kernel
def component(x: F, y: V):
    i = wp.tid()
    y[i][1] = x[i]


KERNELS = [loops.saxpy, halves, shifted, copied]


def far(kernel: Any, form: int = 0) -> bool:
    fn = functions(kernel)[form]
    return streams(Emitter(fn, CPP), loops_of(fn))


def test_what_goes_out_by_lines() -> None:
    """What every thread writes, and nobody reads."""
    assert far(loops.saxpy) and far(loops.saxpy, 1) and far(halves)
    assert far(shifted) and far(copied)
    for kernel in (sometimes, twice, component, loops.in_place, loops.gathered, loops.looped):
        assert not far(kernel), kernel.key
    assert not far(loops.saxpy, 2)
    text = emit(functions(sometimes)[0], "k", known=loops_of(functions(sometimes)[0]))
    assert "lend_vast" not in text and "lend" in text


def numbered(fn: n.Function) -> n.Function:
    """Threads add their linear numbers to what scalars they write: no kernel says that itself."""
    names = Names(names_in(fn))

    def step(s: n.Stmt) -> list[n.Stmt]:
        if not isinstance(s, n.Store) or not isinstance(s.array.type, ArrayType):
            return [s]
        element = s.array.type.element
        if element != scalar_of(element):
            return [s]
        b = Builder(names, s.span)
        number = b.op("cast", b.op("thread"), result=element)
        b.add(replace(s, value=b.op("add", s.value, number)))
        return b.stmts

    return replace(fn, name=f"{fn.name}_numbered", body=rewrite(fn.body, step))


@functools.cache
def compiled() -> dict[str, tuple[n.Function, Entry, Entry]]:
    """By kernel, an entry point for which no array is too small, and a plain one."""
    every = [f for k in KERNELS for f in (functions(k)[0], numbered(functions(k)[0]))]
    with pytest.MonkeyPatch.context() as patch, strided.always():
        patch.setattr(streams_module, "VAST", 0)
        return {fn.name: (fn, *pair) for fn, *pair in both_ways(every)}  # type: ignore[misc]


def uneven(arrays: Any) -> list[Any]:
    """Contiguous arrays that begin anywhere in a line, with elements around them."""
    out = []
    for k, (s, inner, t) in enumerate(arrays):
        count = int(np.prod(s) * np.prod(inner))
        base = memory((count + 40,), t, k)
        out.append(base[3 * k + 1 :][:count].reshape(*s, *inner))
    return out


def wide(arrays: Any) -> list[Any]:
    """Rows that are parts of longer rows."""
    out = []
    for k, (s, inner, t) in enumerate(arrays):
        more = 5 if len(s) == 2 else 0
        whole = memory((*s[:-1], s[-1] + more, *inner), t, k)
        out.append(whole[:, : s[-1]] if more else whole)
    return out


def around(arrays: list[Any]) -> list[bytes]:
    """All of the memory that arrays are in."""
    return [(a if a.base is None else a.base).tobytes() for a in arrays]


@pytest.mark.parametrize("number", [False, True], ids=["as it is", "numbered"])
@pytest.mark.parametrize("layout", [packed, uneven, wide, loops.the_same])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_lines_change_nothing(kernel: Any, layout: Any, number: bool) -> None:
    name = functions(kernel)[0].name + "_numbered" * number
    fn, *entries = compiled()[name]
    for count in (1, 2, 15, 16, 17, 127, 128, 129, 1000, 5003):
        for threads in (1, 2, 7):
            seen = []
            for entry in entries:
                args, arrays = loops.arguments(fn, count, layout)
                with cut(threads):
                    made = CPU.run(entry, loops.grid(fn, count), args, Limits(0, 0))
                assert not made.error
                seen.append(around(arrays))
            assert seen[0] == seen[1], (count, threads)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_lines_are_asked_for(kernel: Any) -> None:
    """What is compared above does go out so, but for arrays that are one."""
    fn, entry, _ = compiled()[functions(kernel)[0].name]
    for layout in (packed, uneven, wide):
        args, _arrays = loops.arguments(fn, 1000, layout)
        with strided.counted() as said:
            CPU.run(entry, loops.grid(fn, 1000), args, Limits(0, 0))
        assert said and all(said)


def test_large_arrays_go_out_by_lines() -> None:
    """As programs launch it: more than caches hold, by all threads."""
    n = 9_000_001
    x, y = (np.random.default_rng(k).random(n).astype(np.float32) for k in range(2))
    x[77], y[-1] = np.nan, np.inf
    z = wp.zeros(n, dtype=float)
    wp.launch(loops.saxpy, n, [2.5, wp.array(x, dtype=float), wp.array(y, dtype=float)], [z])
    np.testing.assert_array_equal(z.numpy(), np.float32(2.5) * x + y)
