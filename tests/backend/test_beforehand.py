"""Functions evaluated in advance for a block of threads have the bits of single evaluations."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import beforehand
from engine.codegen.cpp import CPP
from engine.codegen.cstyle import Emitter
from engine.codegen.guards import guards_of
from engine.compile.backend import Limits
from engine.compile.cpu import CPU
from engine.compile.threads import Threads
from engine.ir.nodes import Function
from tests.backend.test_loops import FORMS, F, arguments, functions, grid
from tests.parts import cut

pytestmark = pytest.mark.whole
F2, D = wp.array2d(dtype=float), wp.array(dtype=wp.float64)


@wp.kernel
def elementwise(x: F, y: F):
    i = wp.tid()
    v = x[i]
    y[i] = wp.sin(v) * wp.exp(-v * v) + wp.sqrt(v * v + 1.0)


@wp.kernel
def doubles(x: D, y: D):
    i = wp.tid()
    y[i] = wp.cos(x[i]) * wp.log(x[i]) + wp.sin(x[i] * wp.float64(2.0))


@wp.kernel
def highest(x: F, out: F):
    i = wp.tid()
    wp.atomic_max(out, 0, wp.sin(x[i]) * wp.exp(x[i]) + wp.sqrt(x[i] + 2.0))


@wp.kernel
def in_place(x: F, y: F):
    i = wp.tid()
    y[i] = y[i] * wp.cos(x[i]) / (x[i] + 0.5)
    y[i] = y[i] * y[i] + wp.sin(x[i])


@wp.kernel
def own(x: F, y: F):
    """Its own value is read: nothing of it may come before."""
    i = wp.tid()
    y[i] = wp.sin(y[i]) + x[i]


@wp.kernel
def after(x: F, y: F):
    """What is read was written by this very thread."""
    i = wp.tid()
    y[i] = x[i]
    y[i] = wp.sin(y[i]) * wp.cos(x[i])


@wp.kernel
def guarded(x: F, n: int, y: F):
    i = wp.tid()
    s = wp.sin(x[i])
    if i >= n:
        return
    y[i] = wp.cos(x[i]) * s


@wp.kernel
def within(x: F, n: int, y: F):
    i = wp.tid()
    s = wp.sin(x[i])
    if i > n:
        y[i] = wp.cos(x[i]) * s


@wp.kernel
def branches(x: F, y: F):
    i = wp.tid()
    a = wp.sin(x[i])
    if a > 0.25:
        y[i] = a * wp.exp(x[i])
    else:
        y[i] = wp.pow(a, 2.0) + y[i]
    y[i] = y[i] * wp.cos(a)


@wp.kernel
def looping(x: F, y: F):
    i = wp.tid()
    s = wp.sin(x[i])
    for _ in range(i % 3):
        s = s * s + wp.cos(x[i])
    y[i] = s * wp.cos(x[i])


@wp.kernel
def scattered(x: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, (i * 7) % y.shape[0], wp.sin(x[i]))


@wp.kernel
def lowest_of_rows(x: F2, rows: F):
    i, j = wp.tid()
    wp.atomic_min(rows, i % rows.shape[0], wp.atan2(x[i, j], wp.tanh(x[i, j])))


@wp.kernel
def table(u: F2, out: F2):
    i, j = wp.tid()
    out[i, j] = wp.sin(u[i, j] * float(i)) * wp.cos(u[i, (j + 1) % u.shape[1]])


@wp.kernel
def early(x: F, n: int, y: F):
    i = wp.tid()
    if i >= n:
        return
    s = wp.sin(x[i])
    y[i] = wp.cos(x[i]) * s


@wp.kernel
def looked_up(x: D, table: D, y: D):
    """An index that comes of a sine: what the fast way makes of a far argument is none."""
    i = wp.tid()
    k = int((wp.cos(x[i]) + wp.float64(1.0)) * wp.float64(0.5) * wp.float64(table.shape[0] - 1))
    y[i] = wp.cos(table[k]) * wp.exp(y[i])


@wp.kernel
def chosen(x: F, y: F):
    """The same of a component."""
    i = wp.tid()
    v = wp.vec3(x[i], 1.0, 2.0)
    s, c = wp.sin(x[i]), wp.cos(x[i])
    k = int(wp.abs(s * s + c * c - 1.0) * 2.0e7)
    if k < 3:
        y[i] = wp.sin(v[k])


@wp.func
def helper(v: float):
    return wp.sin(v) * 2.0


@wp.kernel
def called(x: F, y: F):
    i = wp.tid()
    s = wp.cos(x[i])
    y[i] = helper(x[i]) + s


APPLIED = [elementwise, doubles, highest, in_place, after, within, branches, lowest_of_rows, table,
           early, looked_up, chosen]  # fmt: skip
KERNELS = [*APPLIED, own, guarded, looping, scattered, called]
SIZES = (1, 3, 4, 5, 63, 64, 65, 129, 200)
SPECIAL = (0.0, -0.0, 47999.5, 48001.0, -1e6, 1e30, np.inf, -np.inf, np.nan, 1e-42, 3.0, -1.5)


@contextmanager
def setting(applied: bool, block: int) -> Iterator[None]:
    before = beforehand.APPLIED, beforehand.BLOCK
    beforehand.APPLIED, beforehand.BLOCK = applied, block
    try:
        yield
    finally:
        beforehand.APPLIED, beforehand.BLOCK = before


@functools.cache
def compiled() -> dict[str, list[list[Any]]]:
    """By kernel, for each form: the function, and its entry points by 64, by 4, and by threads."""
    fns = [f for k in KERNELS for f in functions(k)]
    made = []
    for how in ((True, 64), (True, 4), (False, 64)):
        with setting(*how):
            made.append(CPU.compile(fns))
    rows = [[fn, *(replace(e, threads=Threads(fn)) for e in es)]
            for fn, *es in zip(fns, *made, strict=True)]  # fmt: skip
    n = len(FORMS)
    return {k.key: rows[i * n : (i + 1) * n] for i, k in enumerate(KERNELS)}


def reals(special: bool) -> Any:
    def layout(wanted: Any) -> list[Any]:
        out = []
        for k, (shape, inner, dtype) in enumerate(wanted):
            a = np.random.default_rng(k).uniform(-2, 2, (*shape, *inner)).astype(dtype)
            if special and k == 0:
                flat = a.reshape(-1)
                for at, v in enumerate(SPECIAL):
                    flat[(at * 17 + 5) % flat.size] = v
            out.append(a)
        return out

    return layout


def ran(rows: Any, which: int, n: int, special: bool, number: int) -> list[Any]:
    journal, out = None, []
    for (fn, *entries), form in zip(rows, FORMS, strict=True):
        args, arrays = arguments(fn, n, reals(special), (number,))
        made = CPU.run(entries[which], grid(fn, n), args, Limits(0, 0),
                       journal=journal if form == "adjoint" else None)  # fmt: skip
        out.append(made.error)
        if made.error:
            continue
        journal = made.journal if form == "recorded" else journal
        out += [np.where(a == a, a, np.nan).astype(a.dtype).tobytes() for a in arrays]
    return out


def found(fn: Function) -> beforehand.Beforehand | None:
    e = Emitter(fn, CPP, False)
    e.guards = guards_of(fn, e.facts)
    return beforehand.beforehand(e, e.guards is not None and not fn.adjoints)


def test_which_kernels_do_so() -> None:
    for k in APPLIED:
        assert any(found(fn) is not None for fn in functions(k)), k.key
    # What threads change is not read before; nor what they may not come to.
    assert found(functions(own)[0]) is None
    fn, *_ = functions(guarded)
    for known, ops in ((True, ["sin", "cos"]), (False, ["sin"])):
        e = Emitter(fn, CPP, False)
        e.guards = guards_of(fn, e.facts)
        first = beforehand.beforehand(e, known)
        assert first is not None and [s.op for s in first.held] == ops
    (first, *_) = (found(fn) for fn in functions(after))
    assert first is not None and [s.op for s in first.held] == ["cos"]
    (first, *_) = (found(fn) for fn in functions(called))
    assert first is not None and [s.op for s in first.held] == ["cos"]
    (first, *_) = (found(fn) for fn in functions(early))
    assert first is not None and [s.op for s in first.held] == ["sin", "cos"]
    for k in (looked_up, chosen):  # nothing is read at an index that may be a guess
        (first, *_) = (found(fn) for fn in functions(k))
        assert first is not None and sum(s.op in ("sin", "cos") for s in first.held) < 3
        loads = [s for s in first.needed if type(s).__name__ == "Load"]
        assert {s.array.name for s in loads} == {"x"}, k.key
    kept = found(functions(highest)[1])
    assert kept is not None and [s.op for s in kept.held] == ["sin", "exp", "sqrt"]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_the_same_bits(kernel: Any) -> None:
    rows = compiled()[kernel.key]
    for n in SIZES:
        for special in (False, True):
            for number in (0, n // 2, n):
                plain = ran(rows, 2, n, special, number)
                assert ran(rows, 0, n, special, number) == plain, (n, special, number)
                assert ran(rows, 1, n, special, number) == plain, (n, special, number)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_the_same_bits_in_parts(kernel: Any, threads: int) -> None:
    rows = compiled()[kernel.key]
    with cut(1):
        plain = ran(rows, 2, 150, True, 70)
    with cut(threads):
        assert ran(rows, 0, 150, True, 70) == plain
        assert ran(rows, 1, 150, True, 70) == plain


def test_precise_math(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library's functions then, of every argument."""
    monkeypatch.setattr(wp.config, "precise_math", True)

    @wp.kernel
    def both(x: F, y: F):
        i = wp.tid()
        y[i] = wp.sin(x[i]) + wp.cos(x[i])

    x = np.random.default_rng(1).uniform(-1e5, 1e5, 1000).astype(np.float32)
    y = wp.zeros(1000, dtype=float)
    wp.launch(both, 1000, [wp.array(x, dtype=float)], [y])
    right = np.sin(x.astype(np.float64)).astype(np.float32) + np.cos(x.astype(np.float64))
    assert np.abs(y.numpy() - right).max() < 3e-7
