"""Comparisons of numbers of two types: by value, in their common type."""

import itertools
import operator
from typing import Any

import numpy as np
import pytest

import engine as wp

KINDS = [
    wp.bool, wp.int8, wp.uint8, wp.int16, wp.uint16, wp.int32, wp.uint32, wp.int64, wp.uint64,
    wp.float16, wp.float32, wp.float64,
]  # fmt: skip
PAIRS = [(a, b) for a, b in itertools.product(KINDS, KINDS) if a is not b]
TESTS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
FLOATS = {wp.float16, wp.float32, wp.float64}
VALUES = [-128, -3, -1, 0, 1, 2, 100, 127, 255, 40_000, 2**31, 2**63]


def mixed_signs(a: Any, b: Any) -> bool:
    return wp.uint64 in (a, b) and bool({a, b} & {wp.int8, wp.int16, wp.int32, wp.int64})


def comparison(a: Any, b: Any) -> Any:
    # Those that are refused must not stop the others, which are compiled in one go.
    @wp.kernel(module="unique" if mixed_signs(a, b) else None)
    def compare(x: wp.array(dtype=a), y: wp.array(dtype=b), out: wp.array2d(dtype=wp.bool)):
        i = wp.tid()
        out[i, 0] = x[i] < y[i]
        out[i, 1] = x[i] <= y[i]
        out[i, 2] = x[i] > y[i]
        out[i, 3] = x[i] >= y[i]
        out[i, 4] = x[i] == y[i]
        out[i, 5] = x[i] != y[i]

    return compare


KERNELS = {(a, b): comparison(a, b) for a, b in PAIRS}


def values_of(kind: Any) -> list[int]:
    t = np.dtype(wp.dtype_to_numpy(kind))
    if t.kind == "b":
        return [0, 1]
    if t.kind == "f":
        return [v for v in VALUES if abs(v) <= 255]  # every type of floats has them
    return [v for v in VALUES if np.iinfo(t).min <= v <= np.iinfo(t).max]


@pytest.mark.parametrize("a, b", [p for p in PAIRS if not mixed_signs(*p)])
def test_numbers_of_two_types_are_compared_by_value(a: Any, b: Any) -> None:
    pairs = list(itertools.product(values_of(a), values_of(b)))
    x = np.array([p for p, _ in pairs], dtype=wp.dtype_to_numpy(a))
    y = np.array([q for _, q in pairs], dtype=wp.dtype_to_numpy(b))
    out = wp.zeros((len(pairs), len(TESTS)), dtype=wp.bool)
    wp.launch(KERNELS[a, b], dim=len(pairs), inputs=[
        wp.array(x, dtype=a), wp.array(y, dtype=b)], outputs=[out])  # fmt: skip
    expected = [[test(p, q) for test in TESTS] for p, q in pairs]
    exact = [all(abs(v) <= 255 for v in p) or not {a, b} & FLOATS for p in pairs]
    np.testing.assert_array_equal(out.numpy()[exact], np.array(expected)[exact])
    assert sum(exact) >= 4


@pytest.mark.parametrize("a, b", [p for p in PAIRS if mixed_signs(*p)])
def test_no_type_holds_int64_and_uint64(a: Any, b: Any) -> None:
    with pytest.raises(wp.KernelError, match="cannot combine"):
        wp.launch(KERNELS[a, b], dim=0, inputs=[
            wp.zeros(1, dtype=a), wp.zeros(1, dtype=b)], outputs=[
            wp.zeros((1, 6), dtype=wp.bool)])  # fmt: skip
