"""Every operation with the types it is tested on, and arguments that hold the awkward values."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import engine.builtins  # noqa: F401
from engine.ir.builder import Builder, Names
from engine.ir.nodes import Const, Function, Store, Var
from engine.ir.ops import OPS
from engine.lang.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    SCALARS,
    UINT8,
    UINT64,
    ArrayType,
    MatrixType,
    ScalarType,
    ValueType,
    VectorType,
    quat_type,
    scalar_of,
    shape_of,
    transform_type,
    untagged,
    with_scalar,
)
from tests.packed import index_limit, packed_types

Array = np.ndarray[Any, Any]

# Read the launch, not values; tests of kernels cover them.
OF_THE_LAUNCH = ("tid", "thread", "shape")
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 255.5, 1e30, -1e30, 1e-30, np.inf, -np.inf, np.nan)
RANDOM = 48


@dataclass(frozen=True)
class Signature:
    """An operation applied to arguments of given types."""

    op: str
    args: tuple[ValueType, ...]
    result: ValueType

    def __str__(self) -> str:
        words = [self.op, *map(str, self.args)]
        return "-".join([*words, "to", str(self.result)] if OPS[self.op].explicit else words)

    def indexed_by(self, k: int) -> int | None:
        """How many values argument `k` may have, where it is an index."""
        packed = index_limit(self.op)
        if packed is not None:
            return packed if k == 1 else None
        if not self.op.startswith(("extract", "insert")) or not 0 < k:
            return None
        value = self.op.startswith("insert") and k == len(self.args) - 1
        return None if value else shape_of(self.args[0])[k - 1]

    def kernel(self) -> Function:
        """A kernel that applies the operation to element `tid` of its arrays."""
        params = [Var(f"a{k}", ArrayType(t, 1)) for k, t in enumerate(self.args)]
        out = Var("out", ArrayType(self.result, 1))
        b = Builder(Names([p.name for p in (*params, out)]))
        i = b.op("tid", Const(0, INT32), Const(1, INT32), base="i")
        values = [b.load(p, [i], [], t) for p, t in zip(params, self.args, strict=True)]
        b.add(Store(out, (i,), b.op(self.op, *values, result=self.result)))
        return Function(f"apply_{self.op}", (*params, out), (), b.block(), True)

    def arguments(self) -> list[Array]:
        """Arrays of values for each argument; the same in every run.

        Scalars (one or two) meet in every combination of special values.
        """
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        scalars = len(self.args) <= 2 and all(isinstance(t, ScalarType) for t in self.args)
        grid = list(itertools.product(*map(_special, self.args))) if scalars else []
        count = len(grid) + RANDOM
        out = []
        for k, t in enumerate(self.args):
            limit = self.indexed_by(k)
            shape = (count, *shape_of(t))
            if limit is None:
                values = _random(t, shape, rng)
                if grid:
                    values[: len(grid)] = [row[k] for row in grid]
            else:
                values = rng.integers(0, limit, shape).astype(scalar_of(t).numpy)
            out.append(values)
        return out or [np.zeros(count)]

    def meaning(self, arguments: Sequence[Array]) -> Array:
        """What the operation's NumPy meaning gives, element by element."""
        op = OPS[self.op]
        out = np.zeros((len(arguments[0]), *shape_of(self.result)), scalar_of(self.result).numpy)
        for i in range(len(out)):
            # Scalars stay NumPy scalars, as in the interpreter.
            values = [a[i] for a in arguments[: len(self.args)]]
            out[i] = op.numpy(self.result, *values) if op.explicit else op.numpy(*values)
        return out


def _special(t: ValueType) -> list[Any]:
    s = scalar_of(t)
    if s.kind == "b":
        return [False, True]
    if s.kind == "f":
        return list(np.array(FLOATS, s.numpy))
    info = np.iinfo(s.numpy)
    values = (0, 1, 2, 3, 7, -1, -2, -7, info.max, info.max - 1, info.min)
    return [s.numpy.type(v) for v in sorted(set(values)) if info.min <= v <= info.max]


def _random(t: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values of many sizes, a quarter of the floats and half of the integers special."""
    s = scalar_of(t)
    if s.kind == "b":
        return rng.random(shape) < 0.5
    values: Array
    if s.kind == "f":
        sizes = rng.choice([0.5, 3, 100], size=(shape[0],) + (1,) * (len(shape) - 1))
        values = (rng.normal(size=shape) * sizes).astype(s.numpy)
    else:
        info = np.iinfo(s.numpy)
        values = rng.integers(info.min, info.max, shape, dtype=s.numpy, endpoint=True)
    special = rng.random(shape) < (0.25 if s.kind == "f" else 0.5)
    values[special] = rng.choice(_special(t), int(special.sum()))
    return values


def _composites(s: ScalarType, *shapes: int | tuple[int, int]) -> list[ValueType]:
    return [VectorType(s, n) if isinstance(n, int) else MatrixType(s, *n) for n in shapes]


TYPES: list[ValueType] = [
    *SCALARS.values(),
    *_composites(FLOAT32, 2, 3, 4, (2, 2), (3, 3), (4, 4), (2, 3), (3, 2)),
    *_composites(FLOAT64, 3, (2, 2), (3, 3), (4, 4)),
    *_composites(INT32, 2, 3, (2, 2), (2, 3)),
    *_composites(UINT8, 3),
    *_composites(FLOAT16, 3, (2, 2), (4, 4)),
    *(make(s) for s in (FLOAT16, FLOAT32, FLOAT64) for make in (quat_type, transform_type)),
]
# Operations of three arguments take one of the first type, or choose between two of any.
TERNARY = [
    BOOL, INT32, UINT8, FLOAT16, FLOAT32, FLOAT64, VectorType(FLOAT32, 3),
    MatrixType(FLOAT64, 2, 2), quat_type(FLOAT32), transform_type(FLOAT64),
]  # fmt: skip


def _casts() -> Iterator[tuple[tuple[ValueType, ...], ValueType]]:
    for a, b in itertools.product(SCALARS.values(), repeat=2):
        yield (a,), b
    for a, b in itertools.product((BOOL, INT32, UINT64, FLOAT32, FLOAT64), repeat=2):
        yield (VectorType(a, 2),), VectorType(b, 2)
    for a, b in itertools.product((INT32, FLOAT32, FLOAT64), repeat=2):
        yield (MatrixType(a, 2, 2),), MatrixType(b, 2, 2)
    for t in (quat_type(FLOAT32), transform_type(FLOAT16)):
        yield (t,), untagged(t)
        yield (t,), with_scalar(t, FLOAT64)


def _reinterpreted() -> Iterator[tuple[tuple[ValueType, ...], ValueType]]:
    same_size: list[list[ValueType]] = [
        [FLOAT32, INT32, SCALARS["uint32"], VectorType(UINT8, 4)],
        [FLOAT64, INT64, UINT64, VectorType(FLOAT32, 2)],
    ]
    for group in same_size:
        for a, b in itertools.permutations(group, 2):
            yield (a,), b


def _indexed(name: str) -> Iterator[tuple[ValueType, ...]]:
    for s, index in ((FLOAT32, INT32), (FLOAT64, INT64)):
        for t in (VectorType(s, 3), MatrixType(s, 2, 3), quat_type(s)):
            values: list[tuple[ValueType, ...]] = [()]
            if name.startswith("insert"):
                values = [(s,), (VectorType(s, 3),)]
            for value, count in itertools.product(values, (1, 2)):
                yield (t, *(index,) * count, *value)


def _explicit(name: str) -> Iterator[tuple[tuple[ValueType, ...], ValueType]]:
    for s in (FLOAT32, FLOAT64, INT8):
        for t in (VectorType(s, 3), MatrixType(s, 2, 2), MatrixType(s, 2, 3)):
            size = int(np.prod(shape_of(t)))
            if name == "identity":
                if shape_of(t) == (2, 2):
                    yield (), t
            else:
                yield (s,) * (size if name == "construct" else 1), t


def _of(name: str) -> Iterator[Signature]:
    op = OPS[name]
    if op.explicit:
        table = {"cast": _casts, "reinterpret": _reinterpreted}
        pairs = table[name]() if name in table else _explicit(name)
        yield from (Signature(name, args, result) for args, result in pairs)
        return
    if name.startswith(("extract", "insert")):
        candidates = list(_indexed(name))
    elif index_limit(name) is not None:
        candidates = [t for s in (FLOAT32, FLOAT64) for t in packed_types(name, s)]
    else:
        pools = ([TYPES], [TYPES] * 2, [TERNARY] * 3)
        candidates = [types for pool in pools for types in itertools.product(*pool)]
    for types in candidates:
        result = op.infer(types)
        if result is not None and not isinstance(result, ArrayType):
            yield Signature(name, types, result)


def signatures() -> list[Signature]:
    """Every operation on values, each with at least one choice of types."""
    out = []
    for name in OPS:
        if name not in OF_THE_LAUNCH:
            found = list(_of(name))
            assert found, f"no types found for operation {name}"
            out += found
    return out
