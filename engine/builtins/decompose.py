"""Singular values, eigenvalues and QR of small matrices, on NumPy values.

Jacobi rotations (Golub and Van Loan, "Matrix Computations", 8.5 and 8.6.3): one-sided for
singular values, so that small ones keep their digits; two-sided for eigenvalues. QR is
Gram-Schmidt with reorthogonalisation. `engine/codegen/native/decompose.h` does the same in C++,
operation by operation, and gives the same bits.

All results of a decomposition are packed into one array, one after the other, row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SWEEPS = 15
# Below this tangent of an angle, squared, its half is taken for the rotation's.
LIMIT = 3.0 + np.sqrt(8.0)
_PAIRS = {2: ((0, 1),), 3: ((0, 1), (0, 2), (1, 2))}


def _dot(a: Any, b: Any) -> Any:
    out = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        out = out + x * y
    return out


def _unit(v: Any) -> tuple[Any, Any]:
    """v divided by its length, and the length; the first axis for zero."""
    size = np.sqrt(_dot(v, v))
    if size == 0:
        out = np.zeros_like(v)
        out[0] = 1
        return out, size
    return v / size, size


def _perpendicular(u: Any) -> Any:
    """A unit vector at a right angle to the unit vector u of three components."""
    k = 0
    for i in (1, 2):
        if abs(u[i]) < abs(u[k]):
            k = i
    v = -u * u[k]
    v[k] = u.dtype.type(1) + v[k]
    return _unit(v)[0]


def _cross(a: Any, b: Any) -> Any:
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], a.dtype
    )


def _beside(u: Any, v: Any) -> tuple[Any, Any, Any]:
    """The unit vector of the part of v at a right angle to u, v's part along u, and its length.

    Where rounding leaves nothing of v, the length is 0.
    """
    least = u.dtype.type(2) * np.finfo(u.dtype).eps * np.sqrt(_dot(v, v))
    along = u.dtype.type(0)
    for _ in range(3):  # rounding of the first passes is taken off by the later ones
        d = _dot(u, v)
        along = along + d
        v = v - u * d
    w, size = _unit(v)
    if size <= least:
        return _perpendicular(u), along, u.dtype.type(0)
    return w, along, size


def _scaled(a: Any) -> tuple[Any, int] | None:
    """The matrix divided by 2**e, its largest entry then in [1/2, 1); None for Inf and NaN."""
    if not np.all(np.isfinite(a)):
        return None
    _, e = np.frexp(np.max(np.abs(a)))
    return np.ldexp(a, -int(e)), int(e)


def _rotation(zeta: Any) -> tuple[Any, Any, Any]:
    """Tangent, cosine and sine of the smaller angle whose double has the cotangent zeta."""
    one = zeta.dtype.type(1)
    t = np.copysign(one, zeta) / (abs(zeta) + np.sqrt(one + zeta * zeta))
    c = one / np.sqrt(one + t * t)
    return t, c, c * t


def _turn(m: Any, p: int, q: int, c: Any, s: Any) -> None:
    """Rotates two columns."""
    x, y = m[:, p].copy(), m[:, q].copy()
    m[:, p] = c * x - s * y
    m[:, q] = s * x + c * y


def _swap(m: Any, p: int, q: int) -> None:
    """Exchanges two columns by a rotation, which keeps the determinant."""
    x = m[:, p].copy()
    m[:, p] = m[:, q]
    m[:, q] = -x


def _orthogonal_columns(b: Any) -> Any:
    """Rotates the columns of b until they are orthogonal, the longest first; the rotation."""
    n = b.shape[0]
    eps = np.finfo(b.dtype).eps
    v = np.eye(n, dtype=b.dtype)
    two = b.dtype.type(2)
    for _ in range(SWEEPS):
        done = True
        for p, q in _PAIRS[n]:
            alpha, beta = _dot(b[:, p], b[:, p]), _dot(b[:, q], b[:, q])
            gamma = _dot(b[:, p], b[:, q])
            if abs(gamma) <= eps * (np.sqrt(alpha) * np.sqrt(beta)):
                continue
            _, c, s = _rotation((beta - alpha) / (two * gamma))
            _turn(b, p, q, c, s)
            _turn(v, p, q, c, s)
            done = False
        if done:
            break
    for p, q in _PAIRS[n]:
        if _dot(b[:, p], b[:, p]) < _dot(b[:, q], b[:, q]):
            _swap(b, p, q)
            _swap(v, p, q)
    return v


def _packed(size: int) -> Callable[[Callable[[Any], list[Any]]], Callable[[Any], Any]]:
    """Packs a decomposition of `size` numbers; all NaN where the matrix has Inf or NaN."""

    def make(f: Callable[[Any], list[Any]]) -> Callable[[Any], Any]:
        def apply(a: Any) -> Any:
            with np.errstate(all="ignore"):
                scaled = _scaled(a)
                if scaled is None:
                    return np.full(size, np.nan, a.dtype)
                parts = f(scaled)
                return np.concatenate([np.ravel(p) for p in parts]).astype(a.dtype)

        return apply

    return make


@_packed(10)
def svd2(scaled: Any) -> list[Any]:
    """U, sigma, V of a 2x2 matrix."""
    b, e = scaled
    v = _orthogonal_columns(b)
    u, size = _unit(b[:, 0])
    w = np.array([-u[1], u[0]], b.dtype)
    small = _dot(w, b[:, 1])
    if small < 0:
        w, small = -w, -small
    return [np.stack([u, w], 1), np.ldexp(np.array([size, small]), e), v]


@_packed(21)
def svd3(scaled: Any) -> list[Any]:
    """U, sigma, V of a 3x3 matrix."""
    b, e = scaled
    v = _orthogonal_columns(b)
    u0, size = _unit(b[:, 0])
    u1, _, middle = _beside(u0, b[:, 1])
    u2 = _cross(u0, u1)
    sigma = np.array([size, middle, _dot(u2, b[:, 2])])
    return [np.stack([u0, u1, u2], 1), np.ldexp(sigma, e), v]


def _first_axes(a: Any) -> Any:
    """A rotation that makes a symmetric matrix nearly diagonal, in the order of axes that
    approximate rotations lead to (A. McAdams et al., "Computing the Singular Value Decomposition
    of 3x3 Matrices", 2011), which other engines give eigenvalues in.
    """
    one, two = a.dtype.type(1), a.dtype.type(2)
    limit, wide_c, wide_s = (a.dtype.type(x) for x in (LIMIT, np.cos(np.pi / 8), np.sin(np.pi / 8)))
    s = a.copy()
    v = [a.dtype.type(0)] * 3
    w = one
    for _ in range(4):
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            off = s[i, j]
            if off == 0:
                continue
            c, h = two * (s[i, i] - s[j, j]), off
            if limit * h * h < c * c:
                size = np.sqrt(c * c + h * h)
                c, h = c / size, h / size
            else:
                c, h = wide_c, wide_s
            cos, sin = c * c - h * h, two * h * c
            x, y = s[i, i], s[j, j]
            s[i, i] = cos * (cos * x + sin * off) + sin * (cos * off + sin * y)
            s[j, j] = cos * (cos * y - sin * off) - sin * (cos * off - sin * x)
            s[i, j] = s[j, i] = cos * (cos * off - sin * x) + sin * (cos * y - sin * off)
            x, y = s[k, i], s[k, j]
            s[k, i] = s[i, k] = cos * x + sin * y
            s[k, j] = s[j, k] = cos * y - sin * x
            v[i], v[j] = v[i] * c + v[j] * h, v[j] * c - v[i] * h
            v[k], w = v[k] * c + w * h, w * c - v[k] * h
    size = np.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + w * w)
    x, y, z, w = (u / size for u in (*v, w))
    return np.array(
        [
            [one - two * (y * y + z * z), two * (x * y - w * z), two * (x * z + w * y)],
            [two * (x * y + w * z), one - two * (x * x + z * z), two * (y * z - w * x)],
            [two * (x * z - w * y), two * (y * z + w * x), one - two * (x * x + y * y)],
        ],
        a.dtype,
    )


@_packed(12)
def eig3(scaled: Any) -> list[Any]:
    """Q and the eigenvalues of the symmetric part of a 3x3 matrix."""
    a, e = scaled
    half, two = a.dtype.type(0.5), a.dtype.type(2)
    a = half * (a + a.T)
    q = _first_axes(a)
    half_done = np.array([[_dot(q[:, i], a[:, j]) for j in range(3)] for i in range(3)])
    turned = np.array([[_dot(half_done[i], q[:, j]) for j in range(3)] for i in range(3)])
    a = half * (turned + turned.T)
    small = np.finfo(a.dtype).eps * a.dtype.type(0.125)
    for _ in range(SWEEPS):
        done = True
        for i, j in _PAIRS[3]:
            off = a[i, j]
            if abs(off) <= small:
                continue
            t, c, s = _rotation((a[j, j] - a[i, i]) / (two * off))
            a[i, i], a[j, j] = a[i, i] - t * off, a[j, j] + t * off
            k = 3 - i - j
            x, y = a[k, i], a[k, j]
            a[k, i] = a[i, k] = c * x - s * y
            a[k, j] = a[j, k] = s * x + c * y
            a[i, j] = a[j, i] = a.dtype.type(0)
            _turn(q, i, j, c, s)
            done = False
        if done:
            break
    return [q, np.ldexp(np.array([a[0, 0], a[1, 1], a[2, 2]]), e)]


@_packed(18)
def qr3(scaled: Any) -> list[Any]:
    """Q and R of a 3x3 matrix."""
    a, e = scaled
    q0, size = _unit(a[:, 0])
    q1, along, beside = _beside(q0, a[:, 1])
    q2 = _cross(q0, q1)
    last = a[:, 2]
    r = np.zeros_like(a)
    r[0] = size, along, _dot(q0, last)
    r[1, 1:] = beside, _dot(q1, last)
    r[2, 2] = _dot(q2, last)
    return [np.stack([q0, q1, q2], 1), np.ldexp(r, e)]
