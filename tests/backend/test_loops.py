"""The loop for arrays that share no memory gives what the one for any arrays gives, bit for bit.

Values are small integers, of which every sum is exact: the order of sums does not show.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import cpp
from engine.codegen.facts import facts_of
from engine.compile.backend import Entry, Limits
from engine.compile.cpu import CPU
from engine.compile.cpu.loops import loops_of
from engine.compile.forms import Form
from engine.compile.pipeline import Variants
from engine.compile.threads import Threads
from engine.frontend import lower_kernel
from engine.ir.nodes import Function
from engine.lang.types import ArrayType, scalar_of, shape_of
from tests.parts import cut

pytestmark = pytest.mark.whole
F, I, V = wp.array(dtype=float), wp.array(dtype=int), wp.array(dtype=wp.vec3)
F2 = wp.array2d(dtype=float)
FORMS: tuple[Form, ...] = ("forward", "recorded", "adjoint", "tangent")
SIZES = (0, 1, 2, 15, 16, 17, 100, 1000)


@wp.kernel
def saxpy(a: float, x: F, y: F, z: F):
    i = wp.tid()
    z[i] = a * x[i] + y[i]


@wp.kernel
def neighbours(u: F2, out: F2):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] * (around - 4.0 * u[i, j])


@wp.kernel
def crossed(a: V, b: V, c: V):
    i = wp.tid()
    c[i] = wp.cross(a[i], b[i]) * 2.0 + a[i]


@wp.kernel
def in_place(x: F, y: F):
    i = wp.tid()
    x[i] = x[i] * 2.0 + y[i]
    if x[i] > 3.0:
        y[i] = x[i] - y[i]


@wp.kernel
def gathered(at: I, x: F, y: F):
    i = wp.tid()
    if at[i] >= 0 and at[i] < x.shape[0]:
        y[i] = x[at[i]] * x[i]


@wp.kernel
def looped(x: F, y: F, z: F):
    i = wp.tid()
    total = float(0.0)
    for j in range(3):
        if x[i] > float(j):
            total += x[i] * y[i]
    z[i] = total
    wp.atomic_add(y, i, 1.0)


@wp.kernel
def shifting(x: F, y: F):
    i = wp.tid()
    if i + 1 < x.shape[0]:
        x[i + 1] = x[i] + 1.0
        y[i] = x[i] + y[i + 1]


@wp.kernel
def total(x: F, out: F):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])
    if i % 3 == 0:
        wp.atomic_sub(out, 0, x[i])


@wp.kernel
def totals(u: F2, v: V, rows: F, sum: V, count: I):
    i, j = wp.tid()
    wp.atomic_add(rows, i, u[i, j])
    wp.atomic_add(sum, 0, v[j] * u[i, j])
    if u[i, j] > 0.0:
        wp.atomic_add(count, 0, 2)


@wp.func
def put(out: F2, i: int, j: int, value: float):
    wp.atomic_add(out, i, j, value)


@wp.kernel
def pushed(u: F2, out: F2):
    i, j = wp.tid()
    if i > 0 and i < out.shape[0] - 1 and j > 0 and j < out.shape[1] - 1:
        wp.atomic_add(out, i - 1, j, u[i, j])
        put(out, i, j, u[i, j] * 2.0)
        wp.atomic_add(out, i, j + 1, u[i, j])
        wp.atomic_sub(out, i, j - 1, u[i, j])
        wp.atomic_add(out, 0, 0, 1.0)


@wp.kernel
def broadcast(weight: F, x: F, y: F):
    i = wp.tid()
    y[i] = weight[0] * x[i] + weight[0]


@wp.kernel
def saved(x: F, out: F):
    i = wp.tid()
    value = float(1.0)
    for _ in range(i % 4):
        value = value * x[i]
        if value > 10.0:
            break
    x[i] = value
    wp.atomic_add(out, 0, value)


KERNELS = [saxpy, neighbours, crossed, in_place, gathered, looped, shifting, total, totals, pushed,
           broadcast, saved]  # fmt: skip


def functions(kernel: Any) -> list[Function]:
    v = Variants(lower_kernel(kernel.func))
    return [v.function(form, v.differentiable, v.journaled()) for form in FORMS]


@contextmanager
def only(apart: bool) -> Iterator[None]:
    """Whether what is compiled has a loop for arrays that share no memory."""
    before = cpp.APART
    cpp.APART = apart
    try:
        yield
    finally:
        cpp.APART = before


def both_ways(fns: list[Function]) -> list[tuple[Function, Entry, Entry]]:
    """Functions with their entry points: the one to be tested, and a plain one."""
    with only(True):
        fast = CPU.compile(fns)
    with only(False):
        plain = CPU.compile(fns)
    return [
        (fn, *(replace(e, threads=Threads(fn)) for e in pair))  # type: ignore[misc]
        for fn, *pair in zip(fns, fast, plain, strict=True)
    ]


def all_forms(kernels: list[Any]) -> dict[str, list[tuple[Function, Entry, Entry]]]:
    """The same by kernel, for each form."""
    made, n = both_ways([f for k in kernels for f in functions(k)]), len(FORMS)
    return {k.key: made[i * n : (i + 1) * n] for i, k in enumerate(kernels)}


@functools.cache
def compiled() -> dict[str, list[tuple[Function, Entry, Entry]]]:
    return all_forms(KERNELS)


# How the arrays of a launch lie in memory: gives them, for their shapes and inner shapes.
Layout = Callable[[list[tuple[tuple[int, ...], tuple[int, ...], Any]]], list[Any]]


def memory(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def packed(arrays: Any) -> list[Any]:
    return [memory((*s, *inner), t, k) for k, (s, inner, t) in enumerate(arrays)]


def strided(arrays: Any) -> list[Any]:
    out = []
    for k, (s, inner, t) in enumerate(arrays):
        big = memory((*s[:-1], 2 * s[-1] + 1, *inner), t, k)
        out.append(big[(*[slice(None)] * (len(s) - 1), slice(1, None, 2))])
    return out


def one_strided(arrays: Any) -> list[Any]:
    return [*strided(arrays[:1]), *packed(arrays[1:])]


def backwards(arrays: Any) -> list[Any]:
    return [a[(*[slice(None)] * (len(s) - 1), slice(None, None, -1))]
            for a, (s, _, _) in zip(packed(arrays), arrays, strict=True)]  # fmt: skip


def columns(arrays: Any) -> list[Any]:
    """With the last axis first in memory."""
    out = []
    for k, (s, inner, t) in enumerate(arrays):
        a = memory((*s[::-1], *inner), t, k)
        out.append(a.transpose(*range(len(s))[::-1], *range(len(s), a.ndim)))
    return out


def shifted(arrays: Any) -> list[Any]:
    """Views of one memory that overlap."""
    biggest = max(int(np.prod(s) * np.prod(i)) for s, i, _ in arrays)
    base = memory((biggest + 3 * len(arrays),), np.float32)
    out = []
    for k, (s, inner, t) in enumerate(arrays):
        count = int(np.prod(s) * np.prod(inner))
        out.append(base[3 * k : 3 * k + count].view(t).reshape(*s, *inner))
    return out


def the_same(arrays: Any) -> list[Any]:
    """All of one shape are one array."""
    found: dict[Any, Any] = {}
    return [found.setdefault(k, memory((*k[0], *k[1]), k[2])) for k in arrays]


def fields(arrays: Any) -> list[Any]:
    """Fields of an array of structs, of those of one shape each."""
    sizes: dict[Any, int] = {}
    for shape, inner, _ in arrays:
        sizes[shape] = sizes.get(shape, 0) + int(np.prod(inner))
    bases = {shape: memory((*shape, size), np.float32) for shape, size in sizes.items()}
    at, out = dict.fromkeys(sizes, 0), []
    for shape, inner, t in arrays:
        width = int(np.prod(inner))
        field = bases[shape][..., at[shape] : at[shape] + width].view(t)
        out.append(field if inner else field[..., 0])
        at[shape] += width
    return out


LAYOUTS: list[Layout] = [
    packed,
    strided,
    one_strided,
    backwards,
    columns,
    shifted,
    the_same,
    fields,
]


def described(a: Any, ndim: int) -> bytes:
    """An array as kernels read it."""
    return np.array((a.ctypes.data, *a.shape[:ndim], *a.strides[:ndim]), np.int64).tobytes()


def arguments(
    fn: Function, n: int, layout: Layout, numbers: Sequence[int] = ()
) -> tuple[bytes, list[Any]]:
    """The arguments of a launch, and its arrays. numbers: the scalars; else they are 2."""
    wanted = []
    for p in fn.params:
        if isinstance(p.type, ArrayType):
            shape = box(p.type.ndim, n, min(n, 1))
            wanted.append((shape, shape_of(p.type.element), scalar_of(p.type).numpy))
    arrays, out, k = layout(wanted), b"", 0
    scalars = iter(numbers)
    for p in fn.params:
        if isinstance(p.type, ArrayType):
            out += described(arrays[k], p.type.ndim)
            k += 1
        else:
            number = np.asarray(next(scalars, 2), scalar_of(p.type).numpy)
            out += number.tobytes().ljust(8, b"\0")
    return out, arrays


def box(axes: int, n: int, few: int) -> tuple[int, ...]:
    """A shape of 1 to 3 axes with `few` elements along an axis, or more."""
    return {1: (n,), 2: (max(n // 7, few), n), 3: (min(n, 4), 5, max(n // 4, few))}[axes]


def grid(fn: Function, n: int) -> tuple[int, ...]:
    return box(facts_of(fn)[id(fn)].axes or 2, n, 1)


def ran(forms: Any, which: int, n: int, layout: Layout) -> list[bytes]:
    """What is in the arrays after each form, of entry points of one kind."""
    journal, out = None, []
    for (fn, *entries), form in zip(forms, FORMS, strict=True):
        args, arrays = arguments(fn, n, layout)
        given = journal if form == "adjoint" else None
        made = CPU.run(entries[which], grid(fn, n), args, Limits(0, 0), journal=given)
        out.append(b"%d" % made.error)  # of an adjoint that reads what it changes itself
        if made.error:
            continue
        journal = made.journal if form == "recorded" else journal
        # Which NaN it is, compilers decide.
        out += [np.where(a == a, a, np.nan).astype(a.dtype).tobytes() for a in arrays]
    return out


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_both_loops_give_the_same(kernel: Any, layout: Layout) -> None:
    forms = compiled()[kernel.key]
    for n in SIZES:
        if n:
            assert ran(forms, 0, n, layout) == ran(forms, 1, n, layout), n


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_so_they_do_in_parts(kernel: Any, threads: int) -> None:
    forms = compiled()[kernel.key]
    for layout in (packed, one_strided):
        whole = ran(forms, 1, 100, layout)
        with cut(threads):
            assert ran(forms, 0, 100, layout) == whole


def test_threads_in_any_order() -> None:
    """What is said of the order of threads."""
    found = {k.key: [loops_of(f).any_order for f in functions(k)] for k in KERNELS}
    assert found["saxpy"] == found["crossed"] == [True] * 4
    assert not any(found["shifting"])
    assert found["neighbours"] == found["total"] == [True] * 4
    assert found["gathered"][2]


def test_lanes_are_for_what_is_added_to() -> None:
    """Sums of several threads; elements that are one thread's alone need none."""
    found = {k.key: [dict(loops_of(f).sums) for f in functions(k)] for k in KERNELS}
    assert found["total"][:2] == [{"out": (((-1, 0),),)}] * 2 and not found["total"][2]
    assert set(found["totals"][0]) == {"rows", "sum", "count"}
    assert len(found["pushed"][0]["out"]) == len(found["pushed"][1]["out"]) == 5
    assert found["broadcast"][2] == {"adj_weight": (((-1, 0),),)}
    assert not any(map(any, (found[k] for k in ("saxpy", "crossed", "gathered", "shifting"))))


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 100_000])
def test_sums_are_exact_to_what_a_tree_loses(n: int) -> None:
    """A sum of a million float32 one after the other would be wrong by far more."""
    x = np.random.default_rng(n).random(n).astype(np.float32)
    out = wp.zeros(1, dtype=float)
    wp.launch(total, n, [wp.array(x, dtype=float)], [out])
    right = (x.astype(np.float64) ** 2).sum() - x[::3].astype(np.float64).sum()
    scale = (x.astype(np.float64) ** 2).sum() + x[::3].astype(np.float64).sum()
    assert abs(out.numpy()[0] - right) <= 2e-6 * scale


def test_what_is_not_a_number_survives_sums_and_minus_zero_stays() -> None:
    x = np.zeros(1000, np.float32)
    for bad in (np.nan, np.inf):
        x[700] = bad
        out = wp.zeros(1, dtype=float)
        wp.launch(total, 1000, [wp.array(x, dtype=float)], [out])
        assert str(out.numpy()[0]) == str(np.float32(bad))
    none = wp.array(np.full((4, 9), -0.0, np.float32), dtype=float)
    wp.launch(pushed, (1, 9), [none], [none])
    assert np.signbit(none.numpy()).all()


@wp.kernel
def placed(out: wp.array4d(dtype=wp.vec4)):
    i, j, k, m = wp.tid()
    out[i, j, k, m] += wp.vec4(float(i), float(j), float(k), float(m))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_rows_follow_each_other(threads: int) -> None:
    """Wherever parts begin, however short rows are, also of more axes than a kernel asks for."""
    for dim in ((3, 2, 5, 4), (2, 1, 1, 3), (1, 1, 1, 1), (5, 3, 2, 1), (1, 70, 1, 2)):
        out = wp.zeros(dim, dtype=wp.vec4)
        counts = wp.zeros(dim[0], dtype=int)
        with cut(threads):
            wp.launch(placed, dim, [out])
            wp.launch(counted, dim, [counts])
        assert (out.numpy() == np.moveaxis(np.indices(dim), 0, -1)).all()
        assert (counts.numpy() == np.prod(dim[1:])).all()


@wp.kernel
def counted(out: I):
    i = wp.tid()
    wp.atomic_add(out, i, 1)
