"""Planes in one block hold, copy, clear and multiply as planes by themselves do."""

from __future__ import annotations

import numpy as np
import pytest

from engine.autograd.tape.planes import Block, Planes, block_of

KEYS = [((0, 2), 80), ((3, 1), 24), ((1, 2), 8), ((2, 4), 1000), ((5, 1), 13)]
SIZES = dict(KEYS)
BLOCKS = {"all": block_of([*KEYS, *KEYS]), "some": block_of(KEYS[::2]), "none": Block({})}


@pytest.fixture(params=BLOCKS)
def block(request: pytest.FixtureRequest) -> Block:
    return BLOCKS[request.param]


def filled(block: Block, keys: list[tuple[int, int]], seed: int) -> Planes:
    rng = np.random.default_rng(seed)
    out = Planes(block)
    for key in keys:
        numbers = out.get(key, SIZES[key])[: SIZES[key] // 8 * 8].view(np.float64)
        numbers[:] = rng.normal(size=numbers.shape)
    return out


def numbers(planes: Planes, key: tuple[int, int]) -> np.ndarray:
    return planes.get(key, SIZES[key])[: SIZES[key] // 8 * 8].view(np.float64)


def test_planes_share_nothing(block: Block) -> None:
    planes = Planes(block)
    for n, (key, size) in enumerate(KEYS, 1):
        plane = planes.get(key, size)
        assert plane.size == size
        assert not plane.any()
        plane.fill(n)
    assert [set(planes.get(*k)) for k in KEYS] == [{1}, {2}, {3}, {4}, {5}]
    assert len(planes) == len(KEYS)


@pytest.mark.parametrize("mine", [[], [(0, 2)], [(2, 4), (3, 1)], list(SIZES)])
@pytest.mark.parametrize("yours", [[], [(0, 2), (1, 2)], [(3, 1), (2, 4)], list(SIZES)])
def test_dot_is_of_what_both_have(
    block: Block, mine: list[tuple[int, int]], yours: list[tuple[int, int]]
) -> None:
    x, y = filled(block, mine, 1), filled(block, yours, 2)
    expected = sum(float(numbers(x, k) @ numbers(y, k)) for k in mine if k in yours)
    assert filled(block, mine, 1).dot(filled(block, yours, 2)) == pytest.approx(expected, abs=1e-12)


def test_what_only_one_has_does_not_count(block: Block) -> None:
    x, y = filled(block, [(0, 2), (3, 1)], 1), filled(block, [(0, 2)], 2)
    before = x.dot(y)
    numbers(x, (3, 1))[:] = np.inf
    assert x.dot(y) == before
    numbers(y, (3, 1))[:] = 0.0  # now both have it
    assert np.isnan(x.dot(y))


def test_planes_that_are_made_later_count(block: Block) -> None:
    x, y = filled(block, [(0, 2)], 1), filled(block, [(0, 2)], 1)
    first = x.dot(y)
    numbers(x, (1, 2))[:] = 2.0
    numbers(y, (1, 2))[:] = 3.0
    assert x.dot(y) == pytest.approx(first + 6.0)


def test_a_copy_is_a_copy(block: Block) -> None:
    x = filled(block, [(0, 2), (2, 4)], 1)
    y = Planes(block)
    numbers(y, (3, 1))[:] = 7.0
    y.take(x)
    for key in ((0, 2), (2, 4)):
        assert np.array_equal(numbers(x, key), numbers(y, key))
    x.clear()
    assert not numbers(x, (0, 2)).any()
    assert numbers(y, (0, 2)).any()
    y.take(x)
    assert not numbers(y, (0, 2)).any()


def test_zeros_have_as_many_planes(block: Block) -> None:
    x = filled(block, [(0, 2), (5, 1)], 1)
    y = x.zeros()
    assert len(y) == 2
    assert not numbers(y, (0, 2)).any()
    assert numbers(x, (0, 2)).any()
