"""Launches whose arrays are partly strided give what the plain loop gives, bit for bit.

Threads get copies of what they touch of these arrays, however little that may save here.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import late as written
from engine.codegen import loans
from engine.compile.backend import Entry, Limits
from engine.compile.cpu import CPU
from engine.compile.cpu import lender as lenders
from engine.compile.cpu.loops import loops_of
from engine.ir.nodes import Function
from tests.backend import test_loops as loops
from tests.backend.test_loops import Layout, all_forms, functions, memory, packed, ran
from tests.parts import cut

pytestmark = pytest.mark.whole
F, I, V = loops.F, loops.I, loops.V
F2, F3 = wp.array2d(dtype=float), wp.array3d(dtype=float)


@wp.kernel
def around(u: F, out: F):
    i = wp.tid()
    if i > 0 and i < u.shape[0] - 1:
        out[i] = u[i - 1] * u[i + 1] - u[i]


@wp.kernel
def turned(a: F2, b: F2, c: F2):
    i, j = wp.tid()
    if i < a.shape[1] and j < a.shape[0]:
        c[i, j] = a[j, i] * b[i, j] + c[i, j]


@wp.kernel
def scattered(at: I, x: F, y: F):
    i = wp.tid()
    k = at[i]
    if k >= 0 and k < y.shape[0]:
        wp.atomic_add(y, k, x[i] * 2.0)


@wp.kernel
def rows(u: F2, v: F, each: F, sum: F):
    i, j = wp.tid()
    wp.atomic_add(each, i, u[i, j] * v[j])
    if u[i, j] > 1.0:
        wp.atomic_add(sum, 0, v[j])


@wp.kernel
def pulled(x: F, w: F, m: int, y: F):
    """In blocks of threads."""
    i = wp.tid()
    total = float(0.0)
    for j in range(8 * m):
        total += (x[i] - w[j % w.shape[0]]) * w[i]
    if x[i] < 2.0:
        y[i] = total


@wp.kernel
def won(x: F, out: F):
    i = wp.tid()
    wp.atomic_max(out, 0, x[i] * x[i])


@wp.kernel
def parts_of(a: V, b: F, c: V):
    i = wp.tid()
    if b[i] > 0.0:
        c[i][1] = a[i][0] * b[i]
    c[i][2] += a[i][2]


@wp.kernel
def late(x: F, y: F, z: F):
    """Reads what it may have written by another name."""
    i = wp.tid()
    y[i] = 2.0 * x[i]
    if z[i] > 0.0:
        y[i] += z[i]


@wp.kernel
def again(x: F, y: F):
    """The same in a loop."""
    i = wp.tid()
    for _k in range(3):
        y[i] = 0.5 * x[i] + 1.0


@wp.kernel
def doubled(x: F, y: F, z: F):
    """One element of what is read, two of what is written."""
    i = wp.tid()
    v = wp.sin(x[i])
    y[i] = v
    z[i] = v * v


@wp.kernel
def across(a: F2, b: F2):
    i, j = wp.tid()
    b[i, j] = a[i, j] * 2.0 - 1.0


@wp.kernel
def mirrored(a: F2, b: F2):
    i, j = wp.tid()
    if i < a.shape[1] and j < a.shape[0]:
        b[i, j] = a[j, i]


@wp.kernel
def next_to(x: F, y: F):
    i = wp.tid()
    if i + 1 < x.shape[0]:
        y[i] = x[i + 1]


IN_PLACE = [late, again, doubled, across, mirrored, next_to]
KERNELS = [*loops.KERNELS, around, turned, scattered, rows, pulled, won, parts_of, *IN_PLACE]


@contextmanager
def asked(function: Callable[..., bool]) -> Iterator[None]:
    """Has launches ask a function for memory."""
    made = lenders.FORM(function)
    lending = lenders.lender.lending
    before, lending.lend = lending.lend, ctypes.cast(made, ctypes.c_void_p).value
    try:
        yield
    finally:
        lending.lend = before


@contextmanager
def counted() -> Iterator[list[bool]]:
    """Notes of each launch that asks whether it was lent memory."""
    said: list[bool] = []
    real: Any = lenders.lender.make()
    with asked(lambda *given: said.append(bool(real(*given))) or said[-1]):
        yield said


def unlent() -> Any:
    """No launch is lent memory."""
    return asked(lambda *given: False)


@contextmanager
def always() -> Iterator[None]:
    """What is compiled lends to small launches too, however little that may save."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(written, "FEW", 1)
        patch.setattr(written, "WORD", 1e-9)
        yield


@functools.cache
def compiled() -> dict[str, list[tuple[Function, Entry, Entry]]]:
    """By kernel, each form with its entry points: one that always lends, and a plain one."""
    with always():
        return all_forms(KERNELS)


def last_strided(arrays: Any) -> list[Any]:
    return [*packed(arrays[:-1]), *loops.strided(arrays[-1:])]


def interleaved(arrays: Any) -> list[Any]:
    """Each second, third ... element of one memory, of those of one shape and type."""
    out, seen = [], dict[Any, Any]()
    for s, inner, t in arrays:
        kind = s, inner, t
        count = sum(a == kind for a in arrays)
        base, k = seen.get(kind, (memory((*s[:-1], count * s[-1], *inner), t), 0))
        seen[kind] = base, k + 1
        out.append(base[(*[slice(None)] * (len(s) - 1), slice(k, None, count))])
    return out


def spread(arrays: Any) -> list[Any]:
    """One element for all indices, but of the last array."""
    return [*(np.broadcast_to(memory((*[1] * len(s), *inner), t), (*s, *inner))
              for s, inner, t in arrays[:-1]), *packed(arrays[-1:])]  # fmt: skip


def upside_down(arrays: Any) -> list[Any]:
    """Columns of what is reversed along each axis."""
    found = loops.columns(arrays)
    return [a[tuple([slice(None, None, -1)] * len(s))]
            for a, (s, _, _) in zip(found, arrays, strict=True)]  # fmt: skip


def overlapping(arrays: Any) -> list[Any]:
    """Strided views of one memory, one element after the other, that share some."""
    biggest = max(int(np.prod(s) * np.prod(i)) for s, i, _ in arrays)
    base = memory((2 * biggest + 8 * len(arrays),), np.float32)
    out = []
    for k, (s, inner, t) in enumerate(arrays):
        width = int(np.prod(inner))
        count = int(np.prod(s))
        view = base[2 * k : 2 * k + 2 * count * width].view(t).reshape(2 * count, *inner)[::2]
        strides = view.strides[0] * np.array([s[1], 1] if len(s) == 2 else [1])
        out.append(
            np.lib.stride_tricks.as_strided(view, (*s, *inner), (*strides, *view.strides[1:]))
        )
    return out


def first_and_last(arrays: Any) -> list[Any]:
    """One array by two names, where the types are one; the others apart."""
    found = packed(arrays)
    return [*found[:-1], found[0] if arrays[0] == arrays[-1] else found[-1]]


def first_two(arrays: Any) -> list[Any]:
    found = packed(arrays)
    return [found[0], *(found[:1] if arrays[:1] == arrays[1:2] else found[1:2]), *found[2:]]


def behind(arrays: Any) -> list[Any]:
    """Contiguous arrays that begin one element after the other, of those of one shape and type."""
    bases, seen, out = dict[Any, Any](), dict[Any, int](), []
    for s, inner, t in arrays:
        kind = s, inner, t
        count = int(np.prod(s))
        base = bases.setdefault(kind, memory((count + len(arrays), *inner), t))
        k = seen[kind] = seen.get(kind, -1) + 1
        out.append(base[k : k + count].reshape(*s, *inner))
    return out


def same_columns(arrays: Any) -> list[Any]:
    """All of one shape are one array, which is not contiguous."""
    found: dict[Any, Any] = {}
    return [found.setdefault(a, c) for a, c in zip(arrays, loops.columns(arrays), strict=True)]


LAYOUTS: list[Layout] = [
    loops.the_same,
    first_and_last,
    first_two,
    behind,
    same_columns,
    loops.strided,
    loops.one_strided,
    last_strided,
    loops.backwards,
    loops.columns,
    upside_down,
    loops.fields,
    interleaved,
    spread,
    overlapping,
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_lent_memory_changes_nothing(kernel: Any, layout: Layout) -> None:
    forms = compiled()[kernel.key]
    for n in (1, 2, 100, 700):
        with counted():
            assert ran(forms, 0, n, layout) == ran(forms, 1, n, layout), n


@pytest.mark.parametrize("layout", [loops.strided, loops.columns, interleaved, first_and_last])
@pytest.mark.parametrize("kernel", [loops.saxpy, loops.crossed, loops.saved, around, scattered,
                                    pulled, parts_of, late, again, doubled, next_to],
                         ids=lambda k: k.key)  # fmt: skip
def test_nor_do_many_blocks_of_threads(kernel: Any, layout: Layout) -> None:
    forms = compiled()[kernel.key]
    assert ran(forms, 0, 20_011, layout) == ran(forms, 1, 20_011, layout)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("kernel", [k for k in KERNELS if k is not won], ids=lambda k: k.key)
def test_nor_do_parts(kernel: Any, threads: int) -> None:
    forms = compiled()[kernel.key]
    for layout in (loops.strided, last_strided, loops.fields, loops.columns, loops.the_same,
                   first_and_last):  # fmt: skip
        whole = ran(forms, 1, 1001, layout)
        with cut(threads):
            assert ran(forms, 0, 1001, layout) == whole, layout.__name__


def test_where_memory_is_lent() -> None:
    """What the others compare is lent where it can be, and only there."""
    lent = {
        layout: {k.key.rpartition(".")[2] for k in KERNELS if _lends(k, layout)}
        for layout in LAYOUTS
    }
    every = lent[loops.one_strided]
    assert every >= {"saxpy", "neighbours", "total", "totals", "scattered", "rows", "pulled", "won"}
    for layout in (loops.strided, loops.fields, interleaved, loops.backwards, last_strided):
        assert lent[layout] >= {"saxpy", "crossed", "looped", "parts_of"}, layout
    for layout in (loops.columns, upside_down):
        assert lent[layout] >= {"turned", "neighbours"}
    assert "saxpy" in lent[spread] and "saxpy" not in lent[overlapping]
    assert "shifting" not in lent[loops.strided]
    for layout in (first_and_last, same_columns):
        assert lent[layout] >= {"saxpy", "across"}, layout
    assert "saxpy" in lent[loops.the_same] and "doubled" in lent[first_two]
    for layout in (loops.the_same, first_and_last, same_columns):
        assert not lent[layout] & {"late", "again", "mirrored", "next_to", "doubled"} - {"doubled"}
    assert not lent[behind] & {k.key.rpartition(".")[2] for k in IN_PLACE}


def _lends(kernel: Any, layout: Layout) -> bool:
    (fn, entry, _) = compiled()[kernel.key][0]
    args, _arrays = loops.arguments(fn, 99, layout)
    with counted() as said:
        CPU.run(entry, loops.grid(fn, 99), args, Limits(0, 0))
    return any(said)


def test_elements_of_a_thread() -> None:
    """What is said of the elements near a thread's coordinates."""
    found = {k.key: dict(loops_of(functions(k)[0]).loans) for k in KERNELS}
    assert found["saxpy"] == dict.fromkeys("xyz", ((0, 0, 0),))
    assert found["around"] == {"u": ((0, -1, 1),), "out": ((0, 0, 0),)}
    assert found["turned"]["a"] == ((1, 0, 0), (0, 0, 0))
    assert found["neighbours"]["u"] == ((0, -1, 1), (1, -1, 1))
    assert set(found["scattered"]) == {"at", "x"} and set(found["pulled"]) == {"x", "y"}
    assert "x" not in found["shifting"]


@wp.kernel
def climbs(x: F, w: F, y: F):
    i = wp.tid()
    v = x[i]
    for k in range(i % 40):
        v = v * w[k % 3] + wp.sin(v)
    y[i] = v


@pytest.mark.parametrize("limit", [0, 600, 400])
@pytest.mark.parametrize("step", [-1, 3])
def test_adjoints_that_save_too_much(limit: int, step: int, monkeypatch: Any) -> None:
    """Threads are abandoned on the way, and go on in a form that saves less."""
    if limit:
        monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
    n, found = 1000, []
    values = np.random.default_rng(1).random(3 * n).astype(np.float32)
    for strided in (False, True):
        whole = wp.array(values, dtype=float, requires_grad=True)
        x = whole[::step][:n]
        if not strided:
            x = wp.array(x.numpy().copy(), dtype=float, requires_grad=True)
        w = wp.array(np.float32([0.5, 0.25, -0.5]), dtype=float, requires_grad=True)
        y = wp.zeros(n, dtype=float, requires_grad=True)
        with counted() as said:
            with wp.Tape() as tape:
                wp.launch(climbs, n, [x, w], [y])
            tape.backward(grads={y: wp.ones_like(y)})
        assert any(said) == (strided and y.device.is_cpu)  # who lends memory
        found.append([a.numpy().copy() for a in (y, x.grad)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@wp.kernel
def every_other(which: int, x: F, y: F):
    i = wp.tid()
    if i % 2 == which:
        y[i] = wp.sin(x[i]) * wp.exp(x[i]) + 1.0


@pytest.mark.host("the CPU lends memory to launches")
def test_what_a_thread_leaves_alone_is_not_written() -> None:
    """Another launch may write it at the same time."""
    n = 1000
    x = wp.zeros(n, dtype=float)
    y = wp.zeros(2 * n, dtype=float)[::2]

    def many(which: int) -> None:
        for _ in range(300):
            wp.launch(every_other, n, [which, x], [y])

    with counted() as said:
        wp.launch(every_other, n, [0, x], [y])
    assert said == [True]
    y.zero_()
    other = threading.Thread(target=many, args=(0,))
    other.start()
    many(1)
    other.join()
    assert (y.numpy() == 1.0).all()


@pytest.mark.host("the CPU lends memory to launches")
def test_what_cannot_be_made_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is raised meanwhile: the launch runs once, by the plain loop."""
    lender, x, wanted = lenders._Lender(), wp.zeros(2000, dtype=float), wp.zeros(1000, dtype=float)
    x.fill_(2.0)
    wp.launch(every_other, 1000, [0, x[::2]], [wanted])
    monkeypatch.setattr(lender, "_load", lambda: 1 // 0)
    lending, real = lenders.lender.lending, lenders.lender.make()
    y = wp.zeros(2000, dtype=float)
    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="takes? longer"):
        patch.setattr(lending, "make", lender.lending.make)
        patch.setattr(lending, "lend", None)
        wp.launch(every_other, 1000, [0, x[::2]], [y[::2]])
    np.testing.assert_array_equal(y.numpy()[::2], wanted.numpy())
    assert lending.lend == ctypes.cast(real, ctypes.c_void_p).value


def test_what_a_thread_writes_for_sure() -> None:
    found = {}
    for kernel in (loops.saxpy, every_other, parts_of, loops.in_place):
        fn = functions(kernel)[0]
        found[kernel] = {p.name for p in fn.params if loans._is_sure(fn, p)}
    assert list(found.values()) == [{"z"}, set(), set(), {"x"}]
