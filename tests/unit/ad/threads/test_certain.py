"""Stores by which threads certainly overwrite each other's value, and those that may not."""

from __future__ import annotations

import pytest

import engine as wp
from engine import ad

Y = frozenset({"y"})


@wp.kernel
def certain(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[0] = 2.0 * x[wp.tid()]


@wp.kernel
def apart(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[wp.tid()] = x[wp.tid()]


@wp.kernel
def alike(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[0] = x[3]


@wp.kernel
def by_some(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if i == 1:
        y[0] = x[i]


@wp.kernel
def replaced_later(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[0] = x[wp.tid()]
    y[0] = 1.0


@wp.kernel
def after_a_return(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 0.0:
        return
    y[0] = x[i]


@wp.kernel
def second_axis(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i, j = wp.tid()
    y[i] = x[j]


def test_a_store_of_every_thread_to_one_element() -> None:
    (store,) = ad.clashes(certain.ir, (5,), Y)
    assert store.array.name == "y"
    assert ad.clashes(certain.ir, (1,), Y) == []
    assert ad.clashes(certain.ir, (5,), frozenset({"x"})) == []


@pytest.mark.parametrize(
    "kernel", [apart, alike, by_some, replaced_later, after_a_return], ids=lambda k: k.key
)
def test_what_is_not_certain_does_not_count(kernel) -> None:
    assert ad.clashes(kernel.ir, (5,), Y) == []


def test_axes_of_the_grid() -> None:
    """Only where the index is the same for all threads is it certain."""
    assert ad.clashes(second_axis.ir, (2, 3), Y) == []
    assert ad.clashes(certain.ir, (1, 3), Y) and not ad.clashes(certain.ir, (1, 1), Y)
