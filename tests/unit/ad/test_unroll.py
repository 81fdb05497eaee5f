"""Loops that are unrolled, loops that stay, and their components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.diagnostics import EngineError
from engine.ir import nodes as n
from engine.ir.sites import computed, indices
from tests.unit.ad.kernels import prepared, ran, statements

V4 = wp.types.vector(4, float)
V70 = wp.types.vector(70, float)
M33 = wp.types.matrix((3, 3), float)


@wp.kernel
def triangle(a: wp.array(dtype=M33), out: wp.array(dtype=float)):  # type: ignore[valid-type]
    m = a[wp.tid()]
    for i in range(3):
        for j in range(i + 1):
            m[i, j] += m[2 - j, i] * 0.5
    out[wp.tid()] = m[2, 1]


@wp.kernel
def swaps(a: wp.array(dtype=V4), out: wp.array(dtype=V4)):  # type: ignore[valid-type]
    v = a[wp.tid()]
    for i in range(3):
        for j in range(3 - i):
            if v[j] > v[j + 1]:
                held = v[j]
                v[j] = v[j + 1]
                v[j + 1] = held
    out[wp.tid()] = v


@wp.kernel
def counted(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    v = V4()
    k = 0
    for i in range(4):
        v[k] = a[i]
        k += 1
    for i in range(4):
        out[0] += v[-1 - i]


@wp.kernel
def outside(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    v = V4()
    for i in range(6):
        if i < 4:
            v[i] = a[i]
    out[0] = v[3]


@wp.kernel
def guarded(a: wp.array(dtype=float), limit: int, out: wp.array(dtype=float)):
    v = V4()
    for i in range(6):
        if i < limit:
            v[i] = a[i]
    out[0] = v[3]


@wp.kernel
def dynamic(a: wp.array(dtype=float), many: int, out: wp.array(dtype=float)):
    v = V4()
    for i in range(many):
        v[i] = a[i]
    for i in range(4):
        out[0] += v[i] * v[i]


@wp.kernel
def long(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    v = V70()
    for i in range(70):
        v[i] = a[i]
    for i in range(70):
        out[0] += v[i] * v[i]


@wp.kernel
def wordy(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    v = V4()
    for i in range(4):
        v[i] = a[i]
        print(v[i])
    out[0] = v[1]


@wp.kernel
def leaving(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    v = V4()
    for i in range(4):
        if a[i] > 2.0:
            break
        v[i] = a[i]
    out[0] = v[1]


@wp.kernel
def numbers(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    s = float(0.0)
    for i in range(4):
        s += wp.sin(a[i])
    out[0] = s


@wp.kernel
def steps(a: wp.array(dtype=float), many: int, out: wp.array(dtype=float)):
    v = V4(a[0])
    for _step in range(many):
        for i in range(4):
            v[i] = v[i] * 0.5 + wp.sin(v[3 - i])
    out[0] = v[0] + v[3]


def loops(fn: n.Function) -> int:
    return len(statements(fn, n.For, n.While))


def by_number(fn: n.Function) -> int:
    return sum(computed(indices(s)) for s in statements(fn, n.Let))


@pytest.mark.parametrize("kernel", [triangle, swaps, counted, outside])
def test_nests_of_known_turns_are_written_out(kernel: Any) -> None:
    for out in (ad.unroll(prepared(kernel)), ad.write_out(kernel.ir)):
        assert loops(out) == by_number(out) == 0
    adjoint = ad.reverse(out, frozenset(("a", "out")), frozenset(("out",))).fn
    assert not statements(adjoint, n.For, n.While, n.Push)


@pytest.mark.parametrize("kernel", [guarded, dynamic, long, wordy, leaving, numbers])
def test_other_loops_stay(kernel: Any) -> None:
    """Places that may lie outside, turns that are many or not known, messages, an early end, no
    components: as they were, loops through the same values as well."""
    assert ad.write_out(kernel.ir) is kernel.ir
    form = prepared(kernel)
    assert ad.unroll(form) is form


def test_what_is_too_much_stays() -> None:
    assert ad.write_out(triangle.ir, most=20) is triangle.ir
    assert loops(ad.write_out(triangle.ir, most=200)) == 0


def test_an_outer_loop_of_unknown_turns_carries_numbers() -> None:
    """The reverse sweep saves components, not the whole for each of them."""
    form = prepared(steps)
    out = ad.unroll(form)
    assert loops(out) == 1 and loops(form) == 2
    pushed = [s.value.type for s in statements(adjoint_of(out), n.Push)]
    assert pushed and {t.size for t in pushed} == {4}
    assert {s.value.type.size for s in statements(adjoint_of(form), n.Push)} == {16}


def adjoint_of(fn: n.Function) -> n.Function:
    return ad.reverse(fn, frozenset(("a", "out")), frozenset(("out",))).fn


@pytest.mark.parametrize("kernel", [triangle, swaps, counted, outside])
def test_the_meaning_stays(kernel: Any) -> None:
    rng = np.random.default_rng(3)
    shape = {triangle: (2, 3, 3), swaps: (2, 4)}.get(kernel, (4,))
    into = {swaps: (2, 4)}.get(kernel, (2,))
    args = [rng.normal(size=shape).astype(np.float32), np.ones(into, np.float32)]
    for out in (ad.unroll(prepared(kernel)), ad.write_out(kernel.ir)):
        for x, y in zip(ran(kernel.ir, 2, *args), ran(out, 2, *args), strict=True):
            np.testing.assert_array_equal(x, y)


def test_watched_kernels_are_as_written() -> None:
    """An access outside is told of at its line, by the counter's value."""
    kernel = wp.Kernel(guarded.func, module=wp.get_module("unroll_debug"))
    kernel.module.options["mode"] = "debug"
    a, out = wp.ones(6, dtype=float), wp.zeros(1, dtype=float)
    with pytest.raises(EngineError, match=r"component \[4\] of `v`"):
        wp.launch(kernel, dim=1, inputs=[a, 6], outputs=[out])
        wp.synchronize()


@wp.func
def at(v: V4, k: wp.uint32):  # type: ignore[valid-type]
    return v[k]


@wp.kernel
def nowhere(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    v = V4(a[0], a[1], a[2], a[3])
    w = V4()
    for i in range(4):
        w[i] = a[i] * a[i]
        if a[i] > 1.0e9:
            out[1] = at(w, wp.uint32(4)) + at(v, wp.uint32(4))
    out[0] = w[1] + v[2]


def test_a_constant_place_outside_that_is_never_named() -> None:
    x = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(nowhere, dim=1, inputs=[x], outputs=[out])
    tape.backward(grads={out: wp.array([1.0, 0.0], dtype=float)})
    assert out.numpy().tolist() == [7.0, 0.0]
    assert x.grad.numpy().tolist() == [0.0, 4.0, 1.0, 0.0]
