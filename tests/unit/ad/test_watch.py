"""The pass before a kernel is compiled to be watched."""

from __future__ import annotations

import engine as wp
from engine import ad
from engine.ir import nodes as n
from engine.ir.verify import verify


@wp.func_native("return x[k];")
def element(x: wp.array(dtype=float), k: int) -> float: ...


@wp.kernel
def native(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = element(x, i + 1)


@wp.kernel
def plain(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i]


def natives(fn: n.Function) -> list[n.Native]:
    calls = [s.func for s in n.walk(fn.body) if isinstance(s, n.Call)]
    return [f.native for f in calls if f.native is not None]


def test_the_code_stays_as_it_is() -> None:
    out = ad.watch(plain.ir, "bounds")
    verify(out)
    assert out.watch == "bounds" and plain.ir.watch == ""
    assert out.body == plain.ir.body


def test_native_text_is_kept_inside_of_its_arrays() -> None:
    out = ad.watch(native.ir, "bounds")
    assert [x.guarded for x in natives(out)] == [True]
    assert [x.guarded for x in natives(native.ir)] == [False]
