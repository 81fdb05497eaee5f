"""A prepared kernel: no calls, no jumps, numbered reads, the same meaning; and who touches what."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.ir import nodes as n
from tests.property.programs import ARRAYS, SIZE, program
from tests.unit.ad.kernels import prepared, ran, statements


@wp.func
def put(a: wp.array(dtype=float), i: int, v: float):
    if v < 0.0:
        return
    a[i] = v


@wp.func
def twice(a: wp.array(dtype=float), i: int):
    return 2.0 * a[i]


@wp.kernel
def calls(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    for k in range(2):
        put(y, i, twice(x, i))
    wp.atomic_max(z, 0, x[i])


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_mean_the_same(seed: int) -> None:
    fn = program(seed)
    out = ad.prepare(fn)
    assert statements(out, n.Break, n.Continue, n.Return) == []
    start = [np.random.default_rng(seed).uniform(-1, 1, SIZE) for _ in ARRAYS]
    for x, y in zip(ran(out, 2, *start, 3), ran(fn, 2, *start, 3), strict=True):
        np.testing.assert_array_equal(x, y)


def test_calls_are_expanded_and_reads_numbered() -> None:
    out = prepared(calls)
    assert statements(out, n.Call, n.Return) == []
    sites = [s.site for s in statements(out, n.Load, n.Atomic)]
    assert sites == list(range(len(sites))) and sites
    # The winner of an extremum is known by what it replaced.
    assert all(s.dst is not None for s in statements(out, n.Atomic))


def test_who_is_read_and_written_through_calls() -> None:
    fn = calls.ir
    assert ad.read_params(fn) == {"x"}
    assert ad.written_params(fn) == {"y", "z"}
    assert ad.replay_read_params(fn) == ad.replay_written_params(fn) == ad.replayed_params(fn)
    assert ad.replayed_params(fn) == frozenset()


@wp.func_native("a[i] = v;", replay_snippet="a[i] = v + b[i];")
def native(a: wp.array(dtype=float), b: wp.array(dtype=float), i: int, v: float): ...


@wp.kernel
def replays(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    native(y, z, i, x[i])


def test_what_replays_touch() -> None:
    fn = replays.ir
    assert "z" in ad.replay_read_params(fn) and "z" not in ad.read_params(fn) - {"z"}
    assert ad.replay_written_params(fn) == ad.replayed_params(fn) == {"y"}
