"""Every operation's native code means what NumPy says, for every type and awkward value."""

from __future__ import annotations

import zlib
from collections import Counter

import numpy as np
import pytest

from engine.compile.backend import Entry
from engine.compile.cpu.compiler import compile_functions
from engine.compile.cpu.runner import call, new_launch
from engine.ir.verify import verify
from engine.lang.types import BOOL, FLOAT32, INT32, is_float, scalar_of, shape_of
from tests.backend.signatures import Array, Signature, signatures
from tests.sweeps import reduced, selected

# Neither library rounds these correctly; everything else must agree to the last bit.
LIBM = frozenset(
    "sin cos tan asin acos atan atan2 sinh cosh tanh exp log log2 log10 cbrt erf erfc pow "
    "erfinv erfcinv".split()
)
SIGNATURES = signatures()


SHAPES = 2  # of vectors, of matrices and of others that an operation is tried on


def _usual() -> set[Signature]:
    """Every operation on the types that most programs have, and a tenth of the others.

    Operations on numbers are all of them. Of those on vectors, and of those on matrices, two of
    each operation: their code differs by the length of its loops, and takes the compiler long.
    """
    order = sorted(SIGNATURES, key=lambda s: zlib.crc32(str(s).encode()))
    seen: Counter[tuple[str, int]] = Counter()
    chosen = set()
    for s in order:
        if all(scalar_of(t) in (FLOAT32, INT32, BOOL) for t in s.args):
            ranks = [len(shape_of(t)) for t in (*s.args, s.result)]
            seen[s.op, max(ranks)] += 1
            if not max(ranks) or seen[s.op, max(ranks)] <= SHAPES:
                chosen.add(s)
        elif zlib.crc32(str(s).encode()) % 10 == 0:
            chosen.add(s)
    return chosen


USUAL = _usual()


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest) -> dict[Signature, Entry]:
    """Entry points of the chosen tests' kernels, compiled together."""
    chosen = selected(request, SIGNATURES)
    kernels = [s.kernel() for s in chosen]
    for kernel in kernels:
        verify(kernel)
    return dict(zip(chosen, compile_functions(kernels), strict=True))


def apply(entry: Entry, arrays: list[Array]) -> None:
    fields = [(a.ctypes.data, a.shape[0], a.strides[0]) for a in arrays]
    launch = new_launch((len(arrays[-1]),))
    call(entry, np.array(fields, np.int64).tobytes(), launch)
    assert launch.error == 0, launch.error


def spread(a: Array) -> Array:
    """The same values, with a gap after each."""
    wide = np.zeros((2 * len(a), *a.shape[1:]), a.dtype)
    wide[::2] = a
    return wide[::2]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("signature", reduced(SIGNATURES, USUAL.__contains__), ids=str)
def test_native_code_means_what_numpy_says(
    signature: Signature, compiled: dict[Signature, Entry]
) -> None:
    arguments = signature.arguments()
    expected = signature.meaning(arguments)
    given = arguments[: len(signature.args)]
    got = np.zeros_like(expected)
    apply(compiled[signature], [*given, got])
    compare(signature, arguments, got, expected)

    # Contiguous arrays and others have code of their own.
    strided = spread(np.zeros_like(expected))
    apply(compiled[signature], [*map(spread, given), strided])
    compare(signature, arguments, strided, expected)


def compare(signature: Signature, arguments: list[Array], got: Array, expected: Array) -> None:
    same = agreement(signature, arguments, got, expected)
    same = same.reshape(len(got), -1).all(axis=1)
    if not same.all():
        i = int(np.argmin(same))
        values = ", ".join(str(a[i].tolist()) for a in arguments[: len(signature.args)])
        pytest.fail(
            f"{signature}: ({values}) gives {got[i].tolist()}, expected {expected[i].tolist()}; "
            f"{int((~same).sum())} of {len(same)} rows differ"
        )


def agreement(
    signature: Signature, arguments: list[Array], got: Array, expected: Array
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    if not is_float(signature.result):
        return np.asarray(got == expected)
    eps = np.finfo(scalar_of(signature.result).numpy).eps
    undefined = np.isnan(got) & np.isnan(expected)
    if signature.op in LIBM:
        tiny = np.finfo(got.dtype).tiny
        return np.isclose(got, expected, rtol=16 * eps, atol=tiny) | undefined
    if signature.op in ("determinant", "inverse"):
        return sensible(signature.op, arguments[0], got, expected)
    return undefined | ((got == expected) & (np.signbit(got) == np.signbit(expected)))


def sensible(
    op: str, a: Array, got: Array, expected: Array
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether sums of products agree, taken in another order.

    Rounding is of the size of the terms, not of their sum. Matrices with entries that
    are not finite, or whose products overflow, are left out.
    """
    eps = np.finfo(a.dtype).eps
    size = np.abs(a).max(axis=(1, 2)).astype(np.float64)
    left_out = ~(size ** a.shape[1] < np.finfo(a.dtype).max / 100)
    if op == "determinant":
        return left_out | (np.abs(got - expected) <= 100 * eps * size ** a.shape[1])
    # An entry of the inverse is off by up to the condition number times the largest.
    largest = np.abs(expected).max(axis=(1, 2))
    bound = 100 * eps * np.maximum(1, size * largest) * largest
    return left_out | (np.abs(got - expected).max(axis=(1, 2)) <= bound)
