"""The engine's own functions of floats: their errors over the whole range, and the same bits alone
and in vectors.

The oracle is NumPy in float64, and in long double for functions of float64. Errors are counted in
units in the last place of the right result.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.backend.signatures import Array

# The largest errors that docs/python.md states, in units in the last place.
STATED = {
    "sin": 1.6, "cos": 1.6, "tan": 1.5, "exp": 1.1, "log": 1.0, "tanh": 1.5,
    "log2": 0.51, "log10": 0.51, "atan": 0.51, "asin": 0.51, "acos": 0.51, "sinh": 0.51,
    "cosh": 0.51, "cbrt": 0.51, "pow": 0.51, "atan2": 0.51,
}  # fmt: skip
STATED64 = {"sin": 1.1, "cos": 1.1, "exp": 1.0, "log": 1.0, "tanh": 1.5}
NUMPY: dict[str, Any] = {
    **{name: getattr(np, name) for name in STATED if hasattr(np, name)},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "pow": np.power, "atan2": np.arctan2,
}  # fmt: skip
ONE = sorted(set(STATED) - {"pow", "atan2"})
CODES = {name: k for k, name in enumerate(ONE)}

Floats = wp.array(dtype=Any)


@wp.kernel
def sin(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.sin(x[i])


@wp.kernel
def cos(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.cos(x[i])


@wp.kernel
def tan(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.tan(x[i])


@wp.kernel
def exp(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.exp(x[i])


@wp.kernel
def log(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.log(x[i])


@wp.kernel
def tanh(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.tanh(x[i])


@wp.kernel
def log2(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.log2(x[i])


@wp.kernel
def log10(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.log10(x[i])


@wp.kernel
def atan(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.atan(x[i])


@wp.kernel
def asin(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.asin(x[i])


@wp.kernel
def acos(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.acos(x[i])


@wp.kernel
def sinh(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.sinh(x[i])


@wp.kernel
def cosh(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.cosh(x[i])


@wp.kernel
def cbrt(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.cbrt(x[i])


@wp.kernel
def pow(x: Floats, p: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.pow(x[i], p[i])


@wp.kernel
def atan2(x: Floats, p: Floats, y: Floats):
    i = wp.tid()
    y[i] = wp.atan2(x[i], p[i])


KERNELS = {name: globals()[name] for name in STATED}

# GPUs have CUDA's functions, and state less of them.
CPU = pytest.mark.host("errors of the CPU's own functions")

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5,
     1e-45, -1e-45, 1e-38, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 1.0000001, 0.99999994,
     88.72283, 88.72284, -87.33655, -103.97208, -103.98, -104.5, 89.0, 47999.0, 48000.0, 48001.0,
     -48000.004, 1e9, 1e22, 16777215.0, 16777216.0, 16777217.0, -16777215.0, 8388609.0, 33554432.0,
     0.625, 0.62499994, 0.00390625, 1.5707964, 3.1415927, 6.2831855, -7.0, 1e10, 0.33333334],
    dtype=np.float32,
)  # fmt: skip


def sample(n: int, seed: int) -> Array:
    """Numbers of all exponents, special ones, and as many of ordinary size."""
    rng = np.random.default_rng(seed)
    everywhere = rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)
    return np.concatenate([SPECIAL, everywhere, rng.normal(scale=8.0, size=n).astype(np.float32)])


def run(name: str, *values: Array) -> Array:
    dtype = values[0].dtype.type
    out = wp.zeros(len(values[0]), dtype=dtype)
    inputs = [wp.array(v, dtype=dtype) for v in values]
    wp.launch(KERNELS[name], dim=len(values[0]), inputs=inputs, outputs=[out])
    return out.numpy()


def errors(name: str, got: Array, *values: Array) -> Array:
    """Errors in units in the last place; infinite where special values or signs of zero differ."""
    dtype, digits = got.dtype, np.finfo(got.dtype).nmant + 1
    wider = np.float64 if dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        at = [v.astype(wider) for v in values]
        if name in ("asin", "acos"):
            at = [np.clip(at[0], -1.0, 1.0)]
        want = NUMPY[name](*at)
        rounded = want.astype(dtype)
        least = np.finfo(dtype).minexp + 1
        unit = np.ldexp(wider(1.0), np.maximum(np.frexp(want)[1], least) - digits)
        out = np.abs(got.astype(wider) - want) / unit
    special = ~np.isfinite(rounded) | ~np.isfinite(got) | (want == 0.0)
    bits = np.int32 if dtype == np.float32 else np.int64
    same = (got.view(bits) == rounded.view(bits)) | (np.isnan(got) & np.isnan(rounded))
    # The largest numbers may round to infinity on one side alone.
    edge = (np.isinf(rounded) != np.isinf(got)) & ~np.isnan(rounded)
    largest = wider(np.finfo(dtype).max)
    near = edge & (np.abs(want) > largest * 0.999999) & (np.abs(want) < largest * 1.000001)
    out[special] = np.where(same | near, 0.0, np.inf)[special]
    return out


def held(name: str, *values: Array) -> None:
    found = errors(name, run(name, *values), *values)
    worst = int(np.argmax(found))
    stated = STATED if values[0].dtype == np.float32 else STATED64
    assert found[worst] <= stated[name], (name, found[worst], [v[worst] for v in values])


@CPU
@pytest.mark.parametrize("name", ONE)
def test_errors_over_the_whole_range(name: str) -> None:
    held(name, sample(1 << 18, CODES[name]))


@CPU
@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="long double is no wider than float64 here"
)
@pytest.mark.parametrize("name", sorted(STATED64))
def test_errors_in_float64(name: str) -> None:
    rng = np.random.default_rng(CODES[name])
    n = 1 << 17
    everywhere = rng.integers(0, 1 << 63, n, dtype=np.int64) - rng.integers(0, 2, n) * (1 << 62) * 2
    held(name, np.concatenate([
        SPECIAL.astype(np.float64), everywhere.view(np.float64), rng.normal(size=n) * 2.0,
        rng.uniform(-1e6, 1e6, n), rng.uniform(-750.0, 750.0, n),
        [709.782712893384, 709.7827128933841, -708.3964, -745.13321910194, -745.13321910195, -746.5,
         0.55, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e6, 1.0000001e6],
    ]))  # fmt: skip


def next_to_multiples(digits: int, most: float) -> list[float]:
    """The numbers of each exponent that are nearest to multiples of pi / 2, where most digits go.

    By continued fractions of what the last digit counts for, as W. Kahan does.
    """
    half = Fraction(
        "1.57079632679489661923132169163975144209858469968755291048747229615390820314310449931"
    )
    found: list[float] = []
    for exponent in range(math.frexp(most)[1]):
        last = Fraction(2) ** (exponent - digits + 1)
        before, now, x = 1, 0, last / half
        good: set[int] = set()
        while now < 2**digits:
            whole = x.numerator // x.denominator
            before, now, x = now, whole * now + before, 1 / (x - whole)
            for first in (before, 0):
                least = max(0, (2 ** (digits - 1) - first) // now)
                good.update(first + n * now for n in range(least, least + 4))

        def distance(m: int, turn: Fraction = last / half) -> Fraction:
            return abs(m * turn - round(m * turn))

        fitting = [m for m in good if 2 ** (digits - 1) <= m < 2**digits]
        found += [float(m * last) for m in sorted(fitting, key=distance)[:6]]
    return [x for x in found if x <= most]


@CPU
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_errors_next_to_multiples(name: str) -> None:
    values = np.array(next_to_multiples(24, 48000.0))
    assert len(values) > 80 and np.abs(np.sin(2.0 * values)).min() < 1e-6
    held(name, values.astype(np.float32))
    if name in STATED64:
        values = np.array(next_to_multiples(53, 1e6))
        assert len(values) > 100 and np.abs(np.sin(2.0 * values)).min() < 1e-14
        held(name, values)


@CPU
@pytest.mark.sweep
@pytest.mark.parametrize("name", ONE)
def test_errors_of_every_64th_number(name: str) -> None:
    for start in range(0, 1 << 32, 1 << 28):
        bits = np.arange(start + CODES[name], start + (1 << 28), 64, dtype=np.uint32)
        held(name, bits.view(np.float32))


@CPU
@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_errors_of_pairs(name: str) -> None:
    a, b = (m.ravel() for m in np.meshgrid(SPECIAL, SPECIAL))
    held(name, a, b)
    held(name, sample(1 << 17, 1), sample(1 << 17, 2))
    rng = np.random.default_rng(3)
    base = np.exp(rng.normal(size=1 << 17)).astype(np.float32)
    held(name, base, rng.normal(scale=20.0, size=1 << 17).astype(np.float32))
    held(name, -base, rng.integers(-20, 20, 1 << 17).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, np.float32) for n in sorted(STATED)] + [(n, np.float64) for n in sorted(STATED64)],
)
def test_the_same_bits_alone_and_in_vectors(name: str, dtype: Any) -> None:
    values = [sample(200, 5), sample(200, 6)[::-1].copy()][: 2 if name in ("pow", "atan2") else 1]
    values = [v.astype(dtype) for v in values]
    whole = run(name, *values)
    for n in (1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 100):
        for start in (0, 5, 37):
            part = run(name, *(v[start : start + n].copy() for v in values))
            assert part.tobytes() == whole[start : start + n].tobytes(), (name, n, start)
    # Elements that are apart in memory are loaded one by one.
    n = len(values[0])
    inputs = []
    for v in values:
        spread = np.zeros(3 * n, dtype)
        spread[::3] = v
        inputs.append(wp.array(spread, dtype=dtype)[::3])
    out = wp.zeros(n, dtype=dtype)
    wp.launch(KERNELS[name], dim=n, inputs=inputs, outputs=[out])
    assert out.numpy().tobytes() == whole.tobytes()


def test_no_elements() -> None:
    assert run("sin", np.zeros(0, np.float32)).shape == (0,)


@CPU
def test_functions_of_the_library_are_taken_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wp.config, "precise_math", True)

    @wp.kernel
    def precise(x: Floats, y: Floats):
        i = wp.tid()
        y[i] = wp.sin(x[i])

    values = sample(1 << 16, 9)
    out = wp.zeros(len(values), dtype=wp.float32)
    wp.launch(precise, dim=len(values), inputs=[wp.array(values)], outputs=[out])
    got, own = out.numpy(), run("sin", values)
    found = errors("sin", got, values)
    assert found.max() < 1.0 < errors("sin", own, values).max()
    assert np.any(got != own)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_sine_is_past_one(dtype: Any) -> None:
    """Roots and arcs of what is left up to 1 would be NaN."""
    turns = np.arange(-2000, 2000) * (np.pi / 2)
    around = (turns[:, None] + np.linspace(-2e-3, 2e-3, 101)).ravel().astype(dtype)
    for name in ("sin", "cos"):
        assert np.abs(run(name, around)).max() == 1.0
    assert run("cos", np.zeros(9, dtype)).tolist() == [1.0] * 9


@CPU
def test_errors_where_processors_do_not_multiply_and_add_at_once() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    chosen = ["-k", "(whole_range or float64 or multiples or alone or pairs or past) and not log10"]
    env = {**os.environ, "CXX": "g++ -DENG_NO_FMA"}
    done = subprocess.run([*command, *chosen], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "passed" in done.stdout
