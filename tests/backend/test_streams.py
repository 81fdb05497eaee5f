"""Arrays that go out of the processor by whole lines hold what they would hold otherwise."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import streams as streams_module
from engine.codegen.cpp import emit
from engine.codegen.streams import Streams
from engine.compile.backend import Entry, Limits
from engine.compile.cpu import CPU
from engine.compile.cpu.loops import loops_of
from engine.compile.cpu.toolchain import cpu_features
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
vec3b = wp.types.vector(3, wp.int8)
vec100 = wp.types.vector(100, wp.float32)
# Elsewhere processors are not told to, and all is written at once.
LINES = pytest.mark.skipif("avx" not in cpu_features(), reason="no lines go out by themselves")


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


@wp.kernel
def stencil(u: F2, z: F2):
    """Rows shorter than they are in memory, and what is asked for ahead."""
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < z.shape[1] - 1:
        z[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@wp.kernel
def behind(x: F, y: F):
    i = wp.tid()
    if i + 3 >= y.shape[0]:
        return
    y[i + 3] = x[i] + x[i + 2]


@wp.kernel
def one(x: F, y: F):
    """Rows of one thread, or none."""
    i = wp.tid()
    if i == 20:
        y[i] = x[i] * 3.0


@wp.kernel
def solid(u: wp.array3d(dtype=float), z: wp.array3d(dtype=wp.float64)):
    i, j, k = wp.tid()
    if i < 1 or j < 1 or i > u.shape[0] - 2 or j > u.shape[1] - 2 or k > u.shape[2] - 3:
        return
    z[i, j, k] = wp.float64(u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k + 1] + u[i - 1, j, k])


@wp.kernel
def large(x: F, y: wp.array(dtype=wp.mat44), z: wp.array(dtype=wp.float16)):
    """Elements of which few are near."""
    i = wp.tid()
    z[i] = wp.float16(x[i])
    y[i] = wp.diag(wp.vec4(x[i], 2.0, x[i], 1.0))


@wp.kernel
def small_first(x: F, y: wp.array(dtype=wp.int8), z: wp.array(dtype=wp.mat44)):
    """Elements of which many make a line, and others of which few are near."""
    i = wp.tid()
    if i < 1:
        return
    y[i] = wp.int8(x[i])
    z[i] = wp.diag(wp.vec4(x[i], 2.0, x[i], 1.0))


@wp.kernel
def halves_first(x: F, y: wp.array(dtype=wp.float16), z: wp.array(dtype=wp.mat44d)):
    i = wp.tid()
    if i > 2:
        y[i] = wp.float16(x[i])
        z[i] = wp.diag(
            wp.vec4d(wp.float64(x[i]), wp.float64(2.0), wp.float64(3.0), wp.float64(1.0))
        )


@wp.kernel
def odd(x: F, y: wp.array(dtype=vec3b), z: wp.array(dtype=wp.mat33)):
    """Elements that fill a line with others alone."""
    i = wp.tid()
    y[i] = vec3b(wp.int8(x[i]))
    z[i] = wp.diag(wp.vec3(x[i]))


@wp.kernel
def halved(x: wp.array(dtype=wp.float16), y: wp.array(dtype=wp.float16)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def vast_elements(x: F, y: wp.array(dtype=vec100)):
    """Of which sixteen are too much for a stack."""
    i = wp.tid()
    y[i] = vec100(x[i])


@wp.kernel
def divides(x: I, y: I):
    """Integers take time, too."""
    i = wp.tid()
    a = x[i] % 7 + x[i] // 3 % 5 + x[i] // 11 % 13 + x[i] // 17 % 19 + x[i] // 23
    y[i] = a // 3 + a % 5 + (a // 9) % 7 + (a // 4) % 3 + (a // 12) % 11 + (a % 29) // 2


@wp.kernel
def tiny(x: F, y: wp.array(dtype=wp.int8), z: wp.array(dtype=wp.bool)):
    i = wp.tid()
    y[i] = wp.int8(x[i])
    z[i] = x[i] > 0.0


@wp.kernel
def beside(x: F, y: F):
    """Branches of something else."""
    i = wp.tid()
    a = x[i]
    if a < 0.0:
        a = 1.0 - a
    y[i] = a


@wp.kernel
def maybe(x: F, y: F):
    """Not every thread that passes the guard writes."""
    i = wp.tid()
    if i < y.shape[0] - 1:
        if x[i] > 0.0:
            y[i] = x[i]


@wp.kernel
def leaves(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.0:
        return
    y[i] = x[i]


@wp.kernel
def unlike(x: F, y: F, z: F):
    """Guards that do not hold of both."""
    i = wp.tid()
    if i > 0:
        y[i] = x[i]
    if i < 40:
        z[i] = x[i]


@wp.kernel
def turned(x: F2, y: F2):
    i, j = wp.tid()
    y[j, i] = x[i, j]


KERNELS = [
    loops.saxpy, halves, shifted, copied, stencil, behind, one, solid, large, small_first,
    halves_first, odd, halved, tiny, beside,
]  # fmt: skip
NOT = [
    sometimes, twice, component, maybe, leaves, unlike, turned, vast_elements, divides,
    loops.in_place, loops.gathered, loops.looped,
]  # fmt: skip


def far(kernel: Any, form: int = 0) -> bool:
    fn = functions(kernel)[form]
    return "eng::stream_row" in emit(fn, "k", known=loops_of(fn))


def test_what_goes_out_by_lines() -> None:
    """What every thread writes, and nobody reads."""
    assert {k.key for k in (*KERNELS, *NOT) if far(k)} == {k.key for k in KERNELS}
    assert far(loops.saxpy, 1) and not far(loops.saxpy, 2)


def numbered(fn: n.Function) -> n.Function:
    """Threads add their linear numbers to what scalars they write: no kernel says that itself."""
    names = Names(names_in(fn))

    def step(s: n.Stmt) -> list[n.Stmt]:
        if not isinstance(s, n.Store) or not isinstance(s.array.type, ArrayType):
            return [s]
        element = s.array.type.element
        if element != scalar_of(element) or str(element) == "bool":
            return [s]
        b = Builder(names, s.span)
        number = b.op("cast", b.op("thread"), result=element)
        b.add(replace(s, value=b.op("add", s.value, number)))
        return b.stmts

    return replace(fn, name=f"{fn.name}_numbered", body=rewrite(fn.body, step))


def emitted(
    fns: list[n.Function], vast: int, lost: bool, long: int = 0
) -> dict[str, tuple[Any, Entry, Entry]]:
    """By function, an entry point and a plain one.

    vast: bytes from which arrays go out by lines. lost: what blocks of threads wrote does not.
    long: threads of a row from which it does.
    """
    row = Streams.row

    def nowhere(self: Streams, call: str) -> list[str]:
        return [re.sub(r"eng::stream_row.*", ";", line) for line in row(self, call)]

    with pytest.MonkeyPatch.context() as patch, strided.always():
        patch.setattr(streams_module, "VAST", vast)
        patch.setattr(streams_module, "ROW", long)
        if lost:
            patch.setattr(Streams, "row", nowhere)
        return {fn.name: (fn, *pair) for fn, *pair in both_ways(fns)}  # type: ignore[misc]


@functools.cache
def compiled(lost: bool = False) -> dict[str, tuple[n.Function, Entry, Entry]]:
    """The same of all kernels, where no array is too small."""
    return emitted(
        [f for k in KERNELS for f in (functions(k)[0], numbered(functions(k)[0]))], 0, lost
    )


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


@LINES
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_blocks_write_near(kernel: Any) -> None:
    """What is compared above does go out so: without that, arrays stay as they were."""
    fn, entry, plain = compiled(lost=True)[functions(kernel)[0].name]
    for layout in (packed, uneven, wide):
        seen = []
        for e in (entry, plain):
            args, arrays = loops.arguments(fn, 1000, layout)
            before = around(arrays)
            CPU.run(e, loops.grid(fn, 1000), args, Limits(0, 0))
            seen.append(around(arrays) == before)
        assert seen == [True, False]


@LINES
def test_only_large_arrays_go_out_by_lines() -> None:
    """From 64 MB on, of launches that write a good part of it."""
    fn, entry, _ = emitted([functions(loops.saxpy)[0]], streams_module.VAST, True)[loops.saxpy.key]
    most = (64 << 20) // 12
    for count, threads, gone in ((most + 1, most + 1, True), (most, most, False),
                                 (most + 1, most // 2, True), (most + 1, 1000, False)):  # fmt: skip
        x, z = np.ones(count, np.float32), np.zeros(count, np.float32)
        args, _ = loops.arguments(fn, count, lambda _, x=x, z=z: [x, x, z])  # type: ignore[misc]
        CPU.run(entry, (threads,), args, Limits(0, 0))
        assert z.any() != gone, (count, threads)


@LINES
def test_short_rows_go_out_by_lines_where_they_are_whole_lines() -> None:
    long = streams_module.ROW
    fn, entry, _ = emitted([functions(shifted)[0]], 0, True, long)[shifted.key]
    for width, gone in ((3, False), (16, False), (32, True), (40, False), (64, True),
                        (long - 1, False), (long, True), (long + 1, True)):  # fmt: skip
        x, y = np.ones((40, width), np.float32), np.zeros((40, width), np.float32)
        args, _ = loops.arguments(fn, 1, lambda _, x=x, y=y: [x, y])  # type: ignore[misc]
        CPU.run(entry, (40, width), args, Limits(0, 0))
        assert y.any() != gone, width


def test_large_arrays_go_out_by_lines() -> None:
    """As programs launch it: more than caches hold, by all threads."""
    n = 9_000_001
    x, y = (np.random.default_rng(k).random(n).astype(np.float32) for k in range(2))
    x[77], y[-1] = np.nan, np.inf
    z = wp.zeros(n, dtype=float)
    wp.launch(loops.saxpy, n, [2.5, wp.array(x, dtype=float), wp.array(y, dtype=float)], [z])
    np.testing.assert_array_equal(z.numpy(), np.float32(2.5) * x + y)
