"""Launches that are equal are checked once; those that differ in anything are not taken for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape
from engine.autograd.launch import check as launch_check
from engine.autograd.results import TapeResult
from engine.autograd.tape import check as tape_check

F = wp.array(dtype=float)


@wp.kernel
def scaled(x: F, a: float, v: wp.vec3, y: F):
    i = wp.tid()
    y[i] = a * wp.sin(x[i]) + v[0]


@wp.func
def doubled(x: float):
    return 2.0 * x


@wp.func_grad(doubled)
def adj_doubled(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * adj_ret


@wp.kernel
def wrong(x: F, y: F):
    i = wp.tid()
    y[i] = doubled(x[i])


@wp.kernel
def added(x: F, y: F):
    i = wp.tid()
    y[i] += x[i]


def floats(n: int = 5, offset: float = 0.0) -> Any:
    return wp.array(np.linspace(0.1, 1.0, n) + offset, dtype=float, requires_grad=True)


def zeros(n: int = 5) -> Any:
    return wp.zeros(n, dtype=float, requires_grad=True)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of launches that are really checked."""
    numbers: list[int] = []

    def counted(index: int, *given: Any) -> Any:
        numbers.append(index)
        return launch_check.check_launch(index, *given)

    monkeypatch.setattr(tape_check, "check_launch", counted)
    return numbers


def found(launches: list[Any]) -> TapeResult:
    with wp.Tape() as tape:
        for kernel, *given in launches:
            wp.launch(kernel, 5, given[:-1], [given[-1]])
    return check_tape(tape)


V = wp.vec3(1.0, 2.0, 3.0)


def test_equal_launches_are_checked_once(checked: list[int]) -> None:
    x = floats()
    result = found([(scaled, x, 2.0, V, zeros()) for _ in range(30)])
    assert checked == [0]
    assert [r.index for r in result.launches] == list(range(30))
    for r in result.launches:
        assert replace(r, index=0, site=None) == replace(result.launches[0], site=None)
        assert [p.verdict for p in r.pairs] == ["pass"]
        assert not any(p.by_whole for p in r.pairs)


def test_arrays_with_the_same_values_are_equal(checked: list[int]) -> None:
    found([(scaled, floats(), 2.0, V, zeros()) for _ in range(5)])
    assert checked == [0]


@pytest.mark.parametrize(
    "other",
    [
        lambda x: (scaled, x, np.nextafter(np.float32(2.0), np.float32(3.0)), V, zeros()),
        lambda x: (scaled, x, 2.0, wp.vec3(1.0, 2.0, 3.5), zeros()),
        lambda x: (scaled, floats(offset=1e-6), 2.0, V, zeros()),
        lambda x: (scaled, wp.clone(x, requires_grad=False), 2.0, V, zeros()),
        lambda x: (scaled, floats(10)[::2], 2.0, V, zeros()),
        lambda x: (scaled, x, -2.0, V, zeros()),
    ],
    ids=["number", "vector", "values", "gradient", "strides", "sign"],
)
def test_what_differs_in_anything_is_checked(checked: list[int], other: Any) -> None:
    x = floats()
    found([(scaled, x, 2.0, V, zeros()), other(x)])
    assert checked == [0, 1]


def test_zeros_of_both_signs_are_not_equal(checked: list[int]) -> None:
    found([(scaled, floats(), a, V, zeros()) for a in (0.0, -0.0)])
    assert checked == [0, 1]


def test_what_was_changed_between_two_launches_is_checked_again(checked: list[int]) -> None:
    x, y = floats(), zeros()
    found([(added, x, y), (added, x, y), (added, x, zeros())])
    assert checked == [0, 1]  # the third one adds to zeros, as the first did


def test_every_launch_of_a_wrong_kernel_is_told(checked: list[int]) -> None:
    x = floats()
    result = found([(wrong, x, zeros()) for _ in range(3)])
    assert checked == [0]
    for r in result.launches:
        assert [p.verdict for p in r.pairs] == ["fail"]
        assert [b.function for b in r.blame] == [b.function for b in result.launches[0].blame]
        assert r.blame
    assert len({r.index for r in result.launches}) == 3


@wp.kernel
def hashed(x: F, grid: wp.uint64, y: F):
    i = wp.tid()
    y[i] = x[i] + float(int(grid))


def test_numbers_that_may_stand_for_objects_are_not_compared(checked: list[int]) -> None:
    x = floats()
    found([(hashed, x, 3, zeros()) for _ in range(3)])
    assert checked == [0, 1, 2]


def test_who_wants_the_entries_of_each_launch_gets_them() -> None:
    x, seen = floats(), []
    with wp.Tape() as tape:
        for _ in range(3):
            wp.launch(scaled, 5, [x, 2.0, V], [zeros()])
    options = tape_check.Options(keep=lambda r, blocks: seen.append(r.index))
    tape_check.check(tape, options)
    assert seen == [0, 1, 2]
