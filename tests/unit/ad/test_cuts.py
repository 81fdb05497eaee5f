"""The dependencies between arrays of a kernel, and the places where a derivative ends."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

import engine as wp
from engine import ad
from tests.unit.ad.kernels import prepared

F = wp.array(dtype=float)
I = wp.array(dtype=int)


@wp.func_native("return v * v;", adj_snippet="adj_v += 2.0f * v * adj_ret;")
def native(v: float) -> float: ...


@wp.kernel
def smooth(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * 2.0


@wp.kernel
def floored(x: F, y: F):
    i = wp.tid()
    y[i] = wp.floor(x[i]) + 1.0


@wp.kernel
def both_ways(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] - wp.floor(x[i])


@wp.kernel
def counted(x: F, y: F):
    i = wp.tid()
    n = int(x[i] * 3.0)
    y[i] = float(n)


@wp.kernel
def decided(x: F, w: F, y: F):
    i = wp.tid()
    if x[i] > 1.0:
        y[i] = w[i]
    y[i] += wp.where(x[i] > 2.0, 1.0, 2.0)


@wp.kernel
def rounded_then_signed(x: F, y: F):
    i = wp.tid()
    a = wp.round(x[i])
    y[i] = wp.sign(a)


@wp.kernel
def two_cuts(x: F, y: F):
    i = wp.tid()
    a = wp.sign(x[i])
    y[i] = a + wp.ceil(x[i])


@wp.kernel
def in_a_loop(x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(3):
        s = wp.trunc(s + x[i])
    y[i] = s


@wp.kernel
def chosen(x: F, at: I, y: F):
    i = wp.tid()
    y[i] = x[at[i]]


@wp.kernel
def numbered(x: F, at: I):
    i = wp.tid()
    at[i] = int(x[i])


@wp.kernel
def summed(x: F, y: F):
    wp.atomic_add(y, 0, wp.floor(x[wp.tid()]))


@wp.kernel
def called(x: F, y: F):
    i = wp.tid()
    y[i] = native(x[i])


@wp.kernel
def apart(x: F, w: F, y: F, z: F):
    i = wp.tid()
    y[i] = x[i]
    z[i] = w[i]


@wp.kernel
def by_way_of_an_array(x: F, y: F, z: F):
    i = wp.tid()
    y[i] = wp.floor(x[i])
    z[i] = y[i]


def flows(kernel: Any) -> dict[tuple[str, str], Any]:
    return ad.flows(prepared(kernel))


@pytest.mark.parametrize("kernel", [smooth, both_ways, called])
def test_ways_that_a_derivative_takes(kernel: Any) -> None:
    found = flows(kernel)["x", "y"]
    assert found.smooth and found.cuts == ()


@pytest.mark.parametrize(
    ("kernel", "operations", "text"),
    [(floored, ["floor"], "wp.floor(x[i]) + 1.0"), (counted, ["cast"], "n = int(x[i] * 3.0)"),
     (summed, ["floor"], "wp.atomic_add(y, 0, wp.floor"),
     (rounded_then_signed, ["round"], "a = wp.round(x[i])"),
     (two_cuts, ["sign", "ceil"], "a = wp.sign(x[i])"),
     (in_a_loop, ["trunc"], "s = wp.trunc(s + x[i])")],
)  # fmt: skip
def test_where_a_derivative_ends(kernel: Any, operations: list[str], text: str) -> None:
    found = flows(kernel)["x", "y"]
    assert not found.smooth and [c.operation for c in found.cuts] == operations
    span = found.cuts[0].span
    assert text in linecache.getline(span.file, span.line)


def test_what_is_decided_is_no_way() -> None:
    found = flows(decided)
    assert ("x", "y") not in found
    assert found["w", "y"].smooth


def test_indices_and_integers() -> None:
    found = flows(chosen)
    assert found["x", "y"].smooth
    assert not found["at", "y"].smooth and found["at", "y"].cuts == ()
    found = flows(numbered)
    assert [c.operation for c in found["x", "at"].cuts] == ["cast"]


def test_arrays_that_have_nothing_to_do_with_each_other() -> None:
    assert set(flows(apart)) == {("x", "y"), ("w", "z")}


def test_through_an_array_of_the_kernel() -> None:
    found = flows(by_way_of_an_array)
    assert not found["x", "z"].smooth and found["y", "z"].smooth
    assert [c.operation for c in found["x", "z"].cuts] == ["floor"]
