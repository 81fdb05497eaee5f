"""Sorting pairs, and runs of equal numbers: NumPy and Python are the oracles."""

import itertools

import numpy as np
import pytest

import engine as wp
from engine.utils import radix_sort_pairs, runlength_encode, segmented_sort_pairs

RNG = np.random.default_rng(9)
KEYS = [wp.int32, wp.uint32, wp.int64, wp.uint64, wp.float32, wp.float64]


def twice(values, dtype, **kw):
    return wp.array(np.concatenate([values, np.zeros_like(values)]), dtype=dtype, **kw)


@pytest.mark.parametrize("kind", KEYS)
def test_pairs_are_sorted_and_stay_in_order(kind) -> None:
    numpy = wp.dtype_to_numpy(kind)
    found = RNG.integers(0, 20, 50).astype(numpy)
    if np.dtype(numpy).kind in "if":
        found -= 10
    keys, values = twice(found, kind), twice(np.arange(50), wp.int32)
    radix_sort_pairs(keys, values, 50)
    order = np.argsort(found, kind="stable")
    np.testing.assert_array_equal(keys.numpy()[:50], found[order])
    np.testing.assert_array_equal(values.numpy()[:50], order)
    assert not keys.numpy()[50:].any()


def test_some_bits_decide() -> None:
    keys = twice(np.array([8, 1, 10, 3, 4, 5, 6, 7]), wp.int64)
    values = twice(np.arange(8.0), wp.float64)
    radix_sort_pairs(keys, values, 8, begin_bit=1, end_bit=3)
    found = [8, 1, 10, 3, 4, 5, 6, 7]
    assert keys.numpy()[:8].tolist() == sorted(found, key=lambda k: k >> 1 & 3)


def test_gradients_follow_the_order() -> None:
    keys = twice(np.float32([3.0, 1.0, 2.0]), wp.float32, requires_grad=True)
    values = twice(np.array([10.0, 20.0, 30.0]), wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        a, b = wp.clone(keys), wp.clone(values)
        radix_sort_pairs(a, b, 3)
    np.testing.assert_array_equal(b.numpy()[:3], [20.0, 30.0, 10.0])
    tape.backward(grads={a: np.float32([1, 2, 3, 7, 8, 9]), b: np.array([4.0, 5, 6, 0, 0, 0])})
    np.testing.assert_array_equal(keys.grad.numpy(), [3, 1, 2, 7, 8, 9])
    np.testing.assert_array_equal(values.grad.numpy(), [6, 4, 5, 0, 0, 0])


@pytest.mark.parametrize("kind", [wp.int32, wp.float32])
@pytest.mark.parametrize("inferred", [True, False])
def test_segments(kind, inferred) -> None:
    found = RNG.integers(-9, 9, 40).astype(wp.dtype_to_numpy(kind))
    keys, values = twice(found, kind), twice(np.arange(40), wp.int32)
    cuts = np.array([0, 3, 3, 17, 40])
    if inferred:
        segmented_sort_pairs(keys, values, 40, wp.array(cuts, dtype=int))
    else:
        cuts = np.array([2, 9, 9, 30])
        segmented_sort_pairs(keys, values, 40, wp.array([2, 9, 30], dtype=int),
                             wp.array([9, 9, 40], dtype=int))  # fmt: skip
        cuts = np.array([2, 9, 30, 40])
    order = np.arange(40)
    for a, b in itertools.pairwise(cuts):
        if inferred or (a, b) != (9, 30):
            order[a:b] = a + np.argsort(found[a:b], kind="stable")
    np.testing.assert_array_equal(keys.numpy()[:40], found[order])
    np.testing.assert_array_equal(values.numpy()[:40], order)


def test_runs() -> None:
    found = np.repeat([4, 1, 4, 9], [3, 1, 2, 5])
    values = wp.array(found, dtype=int)
    runs, lengths = wp.full(11, -1, dtype=int), wp.full(11, -1, dtype=int)
    assert runlength_encode(values, runs, lengths) == 4
    assert runs.numpy()[:5].tolist() == [4, 1, 4, 9, -1]
    assert lengths.numpy()[:5].tolist() == [3, 1, 2, 5, -1]
    count = wp.zeros(1, dtype=int)
    assert runlength_encode(values, runs, lengths, count, value_count=5) is count
    assert count.numpy()[0] == 3
    assert lengths.numpy()[:3].tolist() == [3, 1, 1]
    assert runlength_encode(values, runs, lengths, value_count=0) == 0


def test_refusals_leave_arrays_alone() -> None:
    keys, values = twice(np.array([2, 1]), int), twice(np.array([5, 6]), int)
    with pytest.raises(RuntimeError, match="room for 6 elements"):
        radix_sort_pairs(keys, values, 3)
    with pytest.raises(RuntimeError, match=r"bits \[0, 33\) do not fit 32-bit keys"):
        radix_sort_pairs(keys, values, 2, end_bit=33)
    with pytest.raises(RuntimeError, match="float16"):
        radix_sort_pairs(keys, wp.zeros(4, dtype=wp.float16), 2)
    with pytest.raises(RuntimeError, match="requires a contiguous keys array"):
        radix_sort_pairs(keys[::2], values, 1)
    with pytest.raises(ValueError, match="count must be non-negative, got -1"):
        segmented_sort_pairs(keys, values, -1, keys)
    with pytest.raises(TypeError, match="count must be an integer"):
        segmented_sort_pairs(keys, values, 1.5, keys)
    with pytest.raises(ValueError, match=r"Invalid segment range at index 1: \[1, 3\)"):
        segmented_sort_pairs(keys, values, 2, wp.array([0, 1, 3], dtype=int))
    with pytest.raises(RuntimeError, match="got 2 and 1"):
        segmented_sort_pairs(keys, values, 2, wp.array([0, 1], dtype=int), wp.zeros(1, dtype=int))
    with pytest.raises(RuntimeError, match=r"indices 0 and 2 overlap: \[0, 2\) and \[1, 2\)"):
        starts, ends = wp.array([0, 1, 1], dtype=int), wp.array([2, 1, 2], dtype=int)
        segmented_sort_pairs(keys, values, 2, starts, ends)
    with pytest.raises(RuntimeError, match="run_values are int32, got float32"):
        runlength_encode(keys, wp.zeros(4, dtype=float), values)
    assert keys.numpy().tolist() == [2, 1, 0, 0]
    assert values.numpy().tolist() == [5, 6, 0, 0]
