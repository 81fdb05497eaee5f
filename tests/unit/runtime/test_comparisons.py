"""Comparisons of numbers of two types: by value, in their common type."""

import itertools
import linecache
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
VALUES = [
    -(2**63), -(2**31) - 1, -128, -3, -1, 0, 1, 2, 100, 127, 255, 256, 2049, 40_000, 2**24 + 1,
    2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1,
]  # fmt: skip
FRACTIONS = [0.5, -0.5, 2.5, 1e-6, 1e10, -1e300, 2.0**24, 2.0**53, 2.0**63, 2.0**64, np.inf,
             -np.inf, np.nan, -0.0]  # fmt: skip


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


def values_of(kind: Any) -> np.ndarray:
    t = np.dtype(wp.dtype_to_numpy(kind))
    if t.kind == "b":
        return np.array([False, True])
    if t.kind == "f":
        with np.errstate(over="ignore"):
            return np.array([*VALUES, *FRACTIONS], dtype=t)
    return np.array([v for v in VALUES if np.iinfo(t).min <= v <= np.iinfo(t).max], dtype=t)


def by_value(test: Any, a: Any, b: Any) -> bool:
    """Python's comparison, which is exact between integers and floats."""
    return bool(test(a.item(), b.item()))


@pytest.mark.parametrize("a, b", [p for p in PAIRS if not mixed_signs(*p)])
def test_numbers_of_two_types_are_compared_by_value(a: Any, b: Any) -> None:
    x, y = (m.ravel() for m in np.meshgrid(values_of(a), values_of(b)))
    out = wp.zeros((len(x), len(TESTS)), dtype=wp.bool)
    wp.launch(KERNELS[a, b], dim=len(x), inputs=[
        wp.array(x, dtype=a), wp.array(y, dtype=b)], outputs=[out])  # fmt: skip
    expected = [[by_value(test, p, q) for test in TESTS] for p, q in zip(x, y, strict=True)]
    np.testing.assert_array_equal(out.numpy(), np.array(expected))


# ---- literals

LITERALS = [
    "0", "1", "-1", "3", "127", "128", "255", "256", "-129", "2049", "65519", "65536", "16777217",
    "2147483648", "-2147483649", "9007199254740993", "9223372036854775807", "0.0", "-0.0", "0.5",
    "-0.5", "1.0", "2.5", "-1e-30", "300.5", "65535.0", "1e10", "-1e300", "1e400", "-1e400",
    "9007199254740992.0", "9.223372036854775807e18", "1.8446744073709551616e19", "True", "False",
]  # fmt: skip


def with_literals(kind: Any) -> Any:
    """A kernel that compares an element, a parameter and a variable with every literal."""
    lines = [
        f"    out[i, {6 * k + j}] = {text}\n"
        for k, literal in enumerate(LITERALS)
        for j, text in enumerate(
            [
                f"x[i] < {literal}", f"y <= {literal}", f"v > {literal}",
                f"{literal} < x[i]", f"v == {literal}", f"{literal} != x[i]",
            ]
        )
    ]  # fmt: skip
    source = (
        "@wp.kernel(module='unique')\n"
        "def k(x: wp.array(dtype=T), y: T, out: wp.array2d(dtype=wp.bool)):\n"
        "    i = wp.tid()\n    v = x[i]\n    v = x[i]\n" + "".join(lines)
    )
    name = f"<compared with literals: {kind.__name__}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"wp": wp, "T": kind}
    exec(compile(source, name, "exec", dont_inherit=True), space)
    return space["k"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_literals_are_compared_by_value(kind: Any) -> None:
    values = values_of(kind)
    kernel = with_literals(kind)
    for value in values:
        out = wp.zeros((1, 6 * len(LITERALS)), dtype=wp.bool)
        x = wp.array(values[values == value][:1] if value == value else [value], dtype=kind)
        wp.launch(kernel, dim=1, inputs=[x, kind(value.item())], outputs=[out])
        for k, text in enumerate(LITERALS):
            n, v = eval(text), value.item()
            if isinstance(v, float) and isinstance(n, float):
                with np.errstate(over="ignore"):
                    n = type(value)(n).item()  # a float literal has the type of its neighbour
            expected = [v < n, v <= n, v > n, n < v, v == n, n != v]
            got = out.numpy()[0, 6 * k : 6 * k + 6].tolist()
            assert got == expected, (text, v)


@pytest.mark.parametrize("a, b", [p for p in PAIRS if mixed_signs(*p)])
def test_no_type_holds_int64_and_uint64(a: Any, b: Any) -> None:
    with pytest.raises(wp.KernelError, match="cannot combine"):
        wp.launch(KERNELS[a, b], dim=0, inputs=[
            wp.zeros(1, dtype=a), wp.zeros(1, dtype=b)], outputs=[
            wp.zeros((1, 6), dtype=wp.bool)])  # fmt: skip
