"""Every operation's C++ spelling compiles for every type it takes, and means what NumPy says."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import pytest

import engine.builtins  # noqa: F401
from engine.compile.host import Entry, compile_functions, new_launch
from engine.ir.builder import Builder, Names
from engine.ir.nodes import Const, Function, Let, Store, Var
from engine.ir.ops import OPS
from engine.lang.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    SCALARS,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
    scalar_of,
    shape_of,
)

Signature = tuple[tuple[ValueType, ...], ValueType]

SAMPLES = 300
# Correctly rounded in neither library; all other operations must agree to the last bit.
LIBM = {
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log",
    "log2", "log10", "cbrt", "erf", "erfc", "pow", "inverse",
}  # fmt: skip
INDEXED = {"extract", "extract_row", "insert", "insert_row"}


def shapes(s: ScalarType) -> list[ValueType]:
    return [
        s, VectorType(s, 2), VectorType(s, 3), MatrixType(s, 2, 2), MatrixType(s, 3, 3),
        MatrixType(s, 4, 4), MatrixType(s, 2, 3), MatrixType(s, 3, 2),
    ]  # fmt: skip


def pool(s: ScalarType) -> list[ValueType]:
    if s in (FLOAT32, FLOAT64):
        return shapes(s)
    return [s, VectorType(s, 3), MatrixType(s, 2, 2)] if s in (INT32, SCALARS["uint8"]) else [s]


def explicit(name: str) -> list[Signature]:
    """Signatures of the operations whose result type their arguments do not tell."""
    out: list[Signature] = []
    if name == "cast":
        for a, b in itertools.product(SCALARS.values(), SCALARS.values()):
            out.append(((a,), b))
        for a, b in itertools.product((FLOAT32, FLOAT64, INT32), (FLOAT32, FLOAT64, INT64)):
            out.append(((VectorType(a, 3),), VectorType(b, 3)))
            out.append(((MatrixType(a, 2, 3),), MatrixType(b, 2, 3)))
    for s in (FLOAT32, FLOAT64, INT32):
        for t in shapes(s)[1:]:
            size = int(np.prod(shape_of(t)))
            if name == "construct" and size <= 9:
                out.append(((s,) * size, t))
            if name == "fill":
                out.append(((s,), t))
            if name == "identity" and isinstance(t, MatrixType) and t.rows == t.cols:
                out.append(((), t))
    return out


def indexed(name: str) -> list[Signature]:
    out: list[Signature] = []
    op = OPS[name]
    for s in (FLOAT32, FLOAT64, INT32):
        for t in shapes(s)[1:]:
            row = (VectorType(s, t.cols),) if isinstance(t, MatrixType) else ()
            for value in ((), (s,), row):
                for index in (INT32, INT64) if s == FLOAT32 else (INT32,):
                    for count in (1, 2):
                        types = (t, *(index,) * count, *value)
                        result = op.infer(types)
                        if result is not None:
                            out.append((types, result))  # type: ignore[arg-type]
    return sorted(set(out), key=str)


def signatures(name: str) -> list[Signature]:
    """Types that an operation takes, over every scalar."""
    op = OPS[name]
    if op.explicit:
        return explicit(name)
    if name in INDEXED:
        return indexed(name)
    out: list[Signature] = []
    for s in SCALARS.values():
        kinds = {0: [()]}
        for count in (1, 2, 3):
            first: list[ValueType] = pool(s)
            if count == 3 and name in ("select", "where_int"):
                first = [BOOL, INT32]
            rest = [pool(s)] * (count - 1)
            kinds[count] = list(itertools.product(first, *rest))  # type: ignore[misc]
        for types in itertools.chain(*kinds.values()):
            result = op.infer(types) if types else None
            if result is not None:
                out.append((types, result))  # type: ignore[arg-type]
    assert out, f"no types found for {name}"
    return sorted(set(out), key=str)


def kernel(name: str, signature: Signature) -> Function:
    """Applies an operation to element i of its arrays."""
    types, result = signature
    b = Builder(Names())
    i = b.op("tid", Const(0, INT32), Const(1, INT32), base="i")
    arrays = [Var(f"a{j}", ArrayType(t, 1)) for j, t in enumerate(types)]
    out = Var("out", ArrayType(result, 1))
    atoms = [b.load(a, [i], [], t) for a, t in zip(arrays, types, strict=True)]
    dst = b.temp(result)
    b.add(Let(dst, name, tuple(atoms)))
    b.add(Store(out, (i,), dst))
    return Function(f"test_{name}", (*arrays, out), (), b.block(), True)


def special(s: ScalarType) -> list[Any]:
    if s.kind == "b":
        return [False, True]
    if s.kind == "f":
        tiny = np.finfo(s.numpy).smallest_subnormal
        return [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1.5, 0.49999997, 7.3, -7.3, 3.0e9,
                -3.0e9, 1e19, -1e19, 255.5, -129.0, np.nan, np.inf, -np.inf, tiny,
                np.finfo(s.numpy).max]  # fmt: skip
    info = np.iinfo(s.numpy)
    values = [0, 1, 2, 3, 7, -1, -2, -7, 31, 63, 100, info.min, info.max, info.min + 1]
    return [v for v in values if info.min <= v <= info.max]


def sample(name: str, types: tuple[ValueType, ...], rng: Any) -> list[Any]:
    """SAMPLES values of each argument, special values and all pairs of them among these."""
    out = []
    for k, t in enumerate(types):
        s = scalar_of(t)
        shape = (SAMPLES, *shape_of(t))
        last = k == len(types) - 1
        if name in INDEXED and k and not (last and name.startswith("insert")):
            out.append(rng.integers(0, shape_of(types[0])[k - 1], shape).astype(s.numpy))
            continue
        if s.kind == "f":
            values = rng.normal(0, 2, shape)
        else:
            values = rng.integers(0 if s.kind in "ub" else -9, 10, shape)
        values = values.astype(s.numpy)
        if name not in LIBM:
            hit = rng.random(shape) < (0.4 if not shape_of(t) else 0.1)
            values[hit] = rng.choice(known(s), int(hit.sum()))
        elif not shape_of(t):
            values[: len(known(s))] = known(s)
        out.append(values)
    if len(types) == 2 and not shape_of(types[0]) and not shape_of(types[1]) and name not in LIBM:
        a, b = np.meshgrid(known(scalar_of(types[0])), known(scalar_of(types[1])))
        count = min(SAMPLES, a.size)
        pick = rng.permutation(a.size)[:count]
        out[0][:count], out[1][:count] = a.ravel()[pick], b.ravel()[pick]
    return out


def known(s: ScalarType) -> Any:
    return np.array(special(s), np.float64 if s.kind == "f" else object).astype(s.numpy)


Compiled = dict[str, list[tuple[Signature, Function, Entry]]]
NAMES = [name for name in OPS if name not in ("tid", "shape")]  # facts of a launch


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    all_of = [(name, s, kernel(name, s)) for name in NAMES for s in signatures(name)]
    entries = compile_functions([f for _, _, f in all_of])
    out: Compiled = {}
    for (name, s, f), entry in zip(all_of, entries, strict=True):
        out.setdefault(name, []).append((s, f, entry))
    return out


def meaning(name: str, result: Type, args: list[Any]) -> Any:
    op = OPS[name]
    with np.errstate(all="ignore"):
        value = op.numpy(result, *args) if op.explicit else op.numpy(*args)
        return np.asarray(value).astype(scalar_of(result).numpy)


@pytest.mark.parametrize("name", NAMES)
def test_operation_means_what_numpy_says(name: str, compiled: Compiled, call: Any) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for (types, result), fn, entry in compiled[name]:
        where = f"{name}({', '.join(map(str, types))}) -> {result}"
        ins = sample(name, types, rng)
        out = np.zeros((SAMPLES, *shape_of(result)), scalar_of(result).numpy)
        launch = new_launch((SAMPLES,))
        call(entry, fn, [*ins, out], launch)
        assert launch.error == 0
        expected = np.stack([meaning(name, result, [a[i] for a in ins]) for i in range(SAMPLES)])
        assert expected.shape == out.shape, where
        check(name, result, ins, out, expected, where)


def check(name: str, result: Type, ins: list[Any], out: Any, expected: Any, where: str) -> None:
    if scalar_of(result).kind != "f":
        bad = out != expected
    elif name in LIBM:
        eps = np.finfo(out.dtype).eps
        scale = 50 if name == "inverse" else 8
        with np.errstate(all="ignore"):
            size = np.abs(expected)
            if name == "inverse":  # an error in one entry is of the size of the largest
                size = size.max(axis=(1, 2), keepdims=True) * condition(ins[0])
            near = np.abs(out - expected) <= scale * eps * np.maximum(
                size, np.finfo(out.dtype).tiny
            )
        bad = ~(near | (out == expected) | (np.isnan(out) & np.isnan(expected)))
        if name == "inverse":
            bad &= np.isfinite(ins[0]).all(axis=(1, 2), keepdims=True)
    else:
        kind = np.uint32 if out.dtype == np.float32 else np.uint64
        same = out.view(kind) == expected.view(kind)
        bad = ~(same | (np.isnan(out) & np.isnan(expected)))
    if bad.any():
        i = int(np.argwhere(bad)[0][0])
        got = [a[i].tolist() for a in ins]
        pytest.fail(f"{where}: {got} gives {out[i].tolist()}, NumPy {expected[i].tolist()}")


def condition(m: Any) -> Any:
    with np.errstate(all="ignore"):
        good = np.where(np.isfinite(m), m, 0).astype(np.float64)
        return np.linalg.cond(good)[:, None, None] + 1
