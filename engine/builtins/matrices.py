"""Matrices: products, transposition, determinants and inverses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.builtins import infer as i
from engine.builtins.linear import dot, skew_components, vector_op
from engine.builtins.rules import Maybe, components, construct
from engine.ir.builder import E
from engine.ir.ops import Vjp
from engine.lang.types import MatrixType, Type, VectorType, scalar_of

_LINE = (-2.0, 2.0)


def _matvec_type(types: Sequence[Type]) -> Type | None:
    if len(types) != 2:
        return None
    a, v = types
    if isinstance(a, MatrixType) and isinstance(v, VectorType) and i.matrix(a):
        return VectorType(a.scalar, a.rows) if v == VectorType(a.scalar, a.cols) else None
    return None


def _vecmat_type(types: Sequence[Type]) -> Type | None:
    if len(types) != 2:
        return None
    v, a = types
    if isinstance(a, MatrixType) and isinstance(v, VectorType) and i.matrix(a):
        return VectorType(a.scalar, a.cols) if v == VectorType(a.scalar, a.rows) else None
    return None


def _matmul_type(types: Sequence[Type]) -> Type | None:
    if len(types) != 2:
        return None
    a, b = types
    if isinstance(a, MatrixType) and isinstance(b, MatrixType) and i.matrix(a):
        fits = a.scalar == b.scalar and a.cols == b.rows
        return MatrixType(a.scalar, a.rows, b.cols) if fits else None
    return None


def _outer_type(types: Sequence[Type]) -> Type | None:
    if len(types) != 2:
        return None
    a, b = types
    if isinstance(a, VectorType) and isinstance(b, VectorType) and i.vector(a) and i.vector(b):
        return MatrixType(a.scalar, a.length, b.length) if a.scalar == b.scalar else None
    return None


def _one(f: Callable[[Type], Type | None]) -> Callable[[Sequence[Type]], Type | None]:
    return lambda types: f(types[0]) if len(types) == 1 else None


@_one
def _transpose_type(t: Type) -> Type | None:
    return MatrixType(t.scalar, t.cols, t.rows) if isinstance(t, MatrixType) else None


@_one
def _diag_type(t: Type) -> Type | None:
    if isinstance(t, VectorType) and i.vector(t):
        return MatrixType(t.scalar, t.length, t.length)
    return None


@_one
def _get_diag_type(t: Type) -> Type | None:
    return VectorType(t.scalar, t.rows) if isinstance(t, MatrixType) and i.square(t) else None


@_one
def _skew_type(t: Type) -> Type | None:
    return MatrixType(scalar_of(t), 3, 3) if i.vector3(t) else None


# Meaning on NumPy values.


def _matvec(a: Any, v: Any) -> Any:
    return np.array([dot(row, v) for row in a], a.dtype)


def _vecmat(v: Any, a: Any) -> Any:
    return np.array([dot(v, a[:, j]) for j in range(a.shape[1])], a.dtype)


def _matmul(a: Any, b: Any) -> Any:
    return np.array([[dot(row, b[:, j]) for j in range(b.shape[1])] for row in a], a.dtype)


def _trace(a: Any) -> Any:
    out = a[0, 0]
    for k in range(1, a.shape[0]):
        out = out + a[k, k]
    return out


def _skew(v: Any) -> Any:
    x, y, z = v
    o = v.dtype.type(0)
    return np.array([[o, -z, y], [z, o, -x], [-y, x, o]], v.dtype)


# Rows of numbers: it takes longer to take one out of an array than to compute with it.
_Rows = Sequence[Sequence[Any]]


def _rows(a: Any) -> _Rows:
    numbers, n = list(a.ravel()), a.shape[1]
    return [numbers[k : k + n] for k in range(0, len(numbers), n)]


def _determinant(a: Any) -> Any:
    return _determinant_of(_rows(a))


def _determinant_of(a: _Rows) -> Any:
    n = len(a)
    if n == 1:
        return a[0][0]
    if n == 2:
        return _minor(a, 0, 1, 0, 1)
    if n == 3:
        terms = [a[0][j] * _cofactor(a, 0, j) for j in range(3)]
        return terms[0] + terms[1] + terms[2]

    # Laplace expansion along the two upper rows.
    s = [_minor(a, 0, 1, c, d) for c, d in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))]
    t = [_minor(a, 2, 3, c, d) for c, d in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))]
    return s[0] * t[5] - s[1] * t[4] + s[2] * t[3] + s[3] * t[2] - s[4] * t[1] + s[5] * t[0]


def _minor(a: _Rows, r: int, s: int, c: int, d: int) -> Any:
    """The determinant of two rows and two columns."""
    return a[r][c] * a[s][d] - a[r][d] * a[s][c]


_OTHERS = ((1, 2), (0, 2), (0, 1))


def _cofactor(a: _Rows, r: int, c: int) -> Any:
    if len(a) == 3:
        minor = _minor(a, *_OTHERS[r], *_OTHERS[c])
    else:
        others = [row for k, row in enumerate(a) if k != r]
        minor = _determinant_of([[*row[:c], *row[c + 1 :]] for row in others])
    return -minor if (r + c) % 2 else minor


def _inverse(a: Any) -> Any:
    rows = _rows(a)
    if len(rows) == 3:
        return _inverse_of_three(a, *rows)
    d = _determinant_of(rows)
    if d == 0:
        return np.zeros_like(a)
    n = len(rows)
    adjugate = np.array([[_cofactor(rows, c, r) for c in range(n)] for r in range(n)], a.dtype)
    return adjugate * (a.dtype.type(1) / d)


def _inverse_of_three(m: Any, x: Sequence[Any], y: Sequence[Any], z: Sequence[Any]) -> Any:
    """The same, written out."""
    a, b, c = x
    d, e, f = y
    g, h, i = z
    first, second, third = e * i - f * h, -(d * i - f * g), d * h - e * g
    det = a * first + b * second + c * third
    if det == 0:
        return np.zeros_like(m)
    adjugate = [
        [first, -(b * i - c * h), b * f - c * e], [second, a * i - c * g, -(a * f - c * d)],
        [third, -(a * h - b * g), a * e - b * d],
    ]  # fmt: skip
    return np.array(adjugate, m.dtype) * (m.dtype.type(1) / det)


# Derivatives.


def cofactors(a: E) -> E:
    """The matrix of cofactors, d det / d a, finite for singular matrices too."""
    t = a.type
    assert isinstance(t, MatrixType)
    n = t.rows
    parts = components(a)
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], E] = {}

    def minor(rows: tuple[int, ...], cols: tuple[int, ...]) -> E:
        if len(rows) == 1:
            return parts[rows[0] * n + cols[0]]
        if (rows, cols) not in known:
            out: E | None = None
            for k, c in enumerate(cols):
                term = parts[rows[0] * n + c] * minor(rows[1:], cols[:k] + cols[k + 1 :])
                out = term if out is None else (out - term if k % 2 else out + term)
            assert out is not None
            known[rows, cols] = out
        return known[rows, cols]

    every = tuple(range(n))
    found = []
    for r in range(n):
        for c in range(n):
            m = minor(every[:r] + every[r + 1 :], every[:c] + every[c + 1 :])
            found.append(-m if (r + c) % 2 else m)
    return construct(t, found)


def _inverse_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    t = y.call("transpose")
    return (-t.call("matmul", g).call("matmul", t),)


def _inverse_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    return None if t[0] is None else -y.call("matmul", t[0]).call("matmul", y)


def _trace_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    identity = E(g.b, g.b.op("identity", result=a[0].type))
    return (identity.call("scale", g),)


vector_op(
    "matvec", "mul", "mul(a, v): a matrix times a column vector.", _matvec_type, _matvec,
    Vjp(lambda g, a, y: (g.call("outer", a[1]), g.call("vecmat", a[0])), "multilinear"),
    _LINE, _LINE,
)  # fmt: skip
vector_op(
    "vecmat", "mul", "mul(v, a): a row vector times a matrix.", _vecmat_type, _vecmat,
    Vjp(lambda g, a, y: (a[1].call("matvec", g), a[0].call("outer", g)), "multilinear"),
    _LINE, _LINE,
)  # fmt: skip
vector_op(
    "matmul", "mul", "mul(a, b): the product of two matrices.", _matmul_type, _matmul,
    Vjp(
        lambda g, a, y: (
            g.call("matmul", a[1].call("transpose")),
            a[0].call("transpose").call("matmul", g),
        ),
        "multilinear",
    ), _LINE, _LINE,
)  # fmt: skip
vector_op(
    "outer", "outer", "outer(a, b): the matrix of products a[i] * b[j].", _outer_type,
    lambda a, b: np.multiply.outer(a, b),
    Vjp(lambda g, a, y: (g.call("matvec", a[1]), a[0].call("vecmat", g)), "multilinear"),
    _LINE, _LINE,
)  # fmt: skip
vector_op(
    "transpose", "transpose", "transpose(a): rows become columns.", _transpose_type,
    lambda a: np.ascontiguousarray(a.T),
    Vjp(lambda g, a, y: (g.call("transpose"),), "linear"), _LINE,
)  # fmt: skip
vector_op(
    "trace", "trace", "trace(a): the sum of the diagonal.", i.to_scalar(1, i.square), _trace,
    Vjp(_trace_rule, "linear"), _LINE,
)  # fmt: skip
vector_op(
    "diag", "diag", "diag(v): the square matrix with v on its diagonal.", _diag_type,
    lambda v: np.diag(v), Vjp(lambda g, a, y: (g.call("get_diag"),), "linear"), _LINE,
)  # fmt: skip
vector_op(
    "get_diag", "get_diag", "get_diag(a): the diagonal of a square matrix.", _get_diag_type,
    lambda a: np.diag(a).copy(), Vjp(lambda g, a, y: (g.call("diag"),), "linear"), _LINE,
)  # fmt: skip
vector_op(
    "skew", "skew", "skew(v): the matrix that multiplies like cross(v, ...).", _skew_type, _skew,
    Vjp(lambda g, a, y: (skew_components(g),), "linear"), _LINE,
)  # fmt: skip
vector_op(
    "determinant", "determinant", "determinant(a): of a 2x2, 3x3 or 4x4 matrix.",
    i.to_scalar(1, i.small_square), _determinant,
    Vjp(
        lambda g, a, y: (cofactors(a[0]).call("scale", g),),
        "general",
        lambda t, a, y: None if t[0] is None else cofactors(a[0]).call("ddot", t[0]),
    ), _LINE,
)  # fmt: skip
vector_op(
    "inverse", "inverse",
    "inverse(a): of a 2x2, 3x3 or 4x4 matrix; the zero matrix where the determinant is 0.",
    i.same(1, i.small_square), _inverse, Vjp(_inverse_rule, "general", _inverse_jvp), _LINE,
)  # fmt: skip
