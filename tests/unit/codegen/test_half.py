"""Conversions of 16-bit floats in native code, by instruction and by hand, against NumPy."""

import ctypes
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from engine.codegen import headers
from engine.compile.cpu.toolchain import find_toolchain

SOURCE = """
#include "half.h"
ENG_EXPORT void to_float(const uint16_t* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = float(eng::half(x[i]));
}
ENG_EXPORT void of_float(const float* x, uint16_t* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = eng::half_t(x[i]).bits;
}
ENG_EXPORT void of_double(const double* x, uint16_t* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = eng::half_t(x[i]).bits;
}
"""
COMPILERS = [c for c in ("g++", "clang++") if shutil.which(c)]


@pytest.fixture(scope="module", params=[(c, s) for c in COMPILERS for s in (False, True)], ids=str)
def library(request, tmp_path_factory):
    compiler, soft = request.param
    toolchain = replace(find_toolchain(), command=(compiler,))
    if compiler == "clang++":  # what only GCC knows
        flags = [f for f in toolchain.flags if f != "-Wl,--as-needed"]
        toolchain = replace(toolchain, flags=(*flags, "-Wno-unknown-warning-option"))
    if soft:
        toolchain = replace(toolchain, flags=(*toolchain.flags, "-DENG_SOFT_HALF"))
    at = tmp_path_factory.mktemp("half")
    (at / "half.cpp").write_text(SOURCE)
    command = toolchain.compile_command("half.cpp", "half.so", headers.CPU)
    subprocess.run(command, cwd=at, check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(at / "half.so"))


def converted(function, x, dtype):
    out = np.empty(len(x), dtype)
    function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data),
             ctypes.c_int64(len(x)))  # fmt: skip
    return out


def same(got, expected):
    return np.array_equal(got, expected, equal_nan=True) and np.array_equal(
        np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(expected)])
    )


def test_every_half_becomes_its_float(library):
    x = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    got = converted(library.to_float, x, np.float32)
    assert same(got, x.view(np.float16).astype(np.float32))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_round_once_to_the_nearest(library, dtype):
    halves = np.arange(1 << 15, dtype=np.uint16).view(np.float16).astype(dtype)
    finite = halves[np.isfinite(halves)]
    middles = (finite[1:] + finite[:-1]) / 2  # ties, and both of their neighbours
    around = [middles, np.nextafter(middles, dtype(0)), np.nextafter(middles, dtype(np.inf))]
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 63, 20000, dtype=np.uint64)
    anything = bits.view(np.float64).astype(dtype)
    near = np.exp2(rng.uniform(-27, 17, 20000)).astype(dtype)
    ends = np.array([0, 65519.9, 65520, 65504, 1e30, np.inf, np.nan, 2.0**-24, 2.0**-25], dtype)
    x = np.concatenate([halves, *around, anything, near, ends])
    x = np.concatenate([x, -x])
    function = library.of_float if dtype is np.float32 else library.of_double
    assert same(converted(function, x, np.uint16).view(np.float16), x.astype(np.float16))
