"""Lookups of arrays and memory, by identity and by elements."""

from __future__ import annotations

import numpy as np

import engine as wp
from engine.autograd.watch.detectors.aliasing import _overlapping
from engine.autograd.watch.places import Places, Weak
from engine.runtime.base import may_meet


def test_what_is_gone_is_forgotten() -> None:
    said: Weak[int] = Weak()
    kept = [wp.zeros(1, dtype=float) for _ in range(10)]
    for k, a in enumerate(kept):
        said.put(a, k)
    for k in range(5_000):
        said.put(wp.zeros(1, dtype=float), -k)
    assert len(said._refs) < 1_000  # swept on the way
    assert [said.get(a) for a in kept] == list(range(10))
    assert kept[0] in said and wp.zeros(1, dtype=float) not in said
    assert said and not Weak[int]()


def test_another_object_at_the_same_address_is_another() -> None:
    said: Weak[str] = Weak()
    for _ in range(100):
        a = wp.zeros(1, dtype=float)
        assert said.get(a) is None and a not in said
        said.put(a, "it")
        del a


def test_places_are_what_may_meet() -> None:
    """Few are looked at one by one, many by their addresses."""
    rng = np.random.default_rng(3)
    whole = wp.zeros((60, 8), dtype=float)
    places: Places[int] = Places()
    put = {}
    for k in range(80):
        begin = int(rng.integers(60))
        a = whole[begin : begin + int(rng.integers(0, 1 + min(20, 60 - begin)))]
        if k % 3 == 0:
            a = whole[begin]
        if k % 7 == 6:
            places.pop(a)
            put.pop(a._packed, None)
        else:
            places.put(a, k)
            put[a._packed] = (a, k)
        for b in (a, whole, whole[3], whole[:, 2], whole[5:5]):
            right = sorted(tag for x, tag in put.values() if may_meet(x, b))
            assert sorted(places.meeting(b)) == right
            assert places.meets(b) == (bool(right) or b._packed in put)


def test_spans_that_meet() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        spans = [(int(a), int(a + n)) for a, n in rng.integers(0, 12, (9, 2))]
        right = [
            (k, j) for k in range(9) for j in range(k)
            if max(spans[j][0], spans[k][0]) < min(spans[j][1], spans[k][1])
        ]  # fmt: skip
        found = _overlapping(spans)
        assert [p for p in found if all(spans[k][0] < spans[k][1] for k in p)] == right
