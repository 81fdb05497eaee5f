"""Decompositions, as results or stored into given variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import composite
from engine.ir.ops import Domain
from engine.lang.types import MatrixType, Type, VectorType, is_float

_LINE = Domain(((-2.0, 2.0),))


def _takes(n: int, *factors: str) -> Callable[[Sequence[Type]], bool]:
    """A square matrix of floats, then variables for its factors: vectors (v) or matrices (m)."""

    def accepts(types: Sequence[Type]) -> bool:
        a = types[0] if types else None
        if not isinstance(a, MatrixType) or (a.rows, a.cols) != (n, n) or not is_float(a):
            return False
        vector = VectorType(a.scalar, n)
        return list(types[1:]) == [a if f == "m" else vector for f in factors]

    return accepts


_SVD = (
    "A = U * diag(sigma) * transpose(V), with orthogonal U and V. A pair of columns of U and V "
    "may have either sign. Where two singular values are equal, the derivative across their "
    "columns is left out: functions that do not depend on it, such as the rotation "
    "U * transpose(V), keep their exact derivative."
)
_SVD2 = f"svd2(A): U, sigma and V of a 2x2 matrix: {_SVD} sigma falls and is not negative."
_SVD3 = (
    f"svd3(A): U, sigma and V of a 3x3 matrix: {_SVD} U and V are rotations: the magnitude of "
    "sigma falls, and its last component has the sign of the determinant of A."
)
_EIG3 = (
    "eig3(A): Q and d of a symmetric 3x3 matrix: A = Q * diag(d) * transpose(Q), with a rotation "
    "Q. Rotations determine the order of d, so it can be any order; only the symmetric part of A "
    "counts. Where two eigenvalues are equal, the derivative across their eigenvectors is "
    "left out."
)
_QR3 = (
    "qr3(A): Q and R of a 3x3 matrix: A = Q * R, with a rotation Q and an upper triangle R whose "
    "first two diagonal entries are not negative. Exact where the first two columns of A are "
    "independent; elsewhere the derivative leaves out terms with a division by zero."
)
_INTO = " With variables for the factors as further arguments, these are set instead."


@composite(_SVD2 + _INTO, _takes(2), domain=_LINE)
def svd2(A: Any) -> Any:
    p = wp._svd2(A)
    return wp._part_mat2(p, 0), wp._part_vec2(p, 4), wp._part_mat2(p, 6)


@composite(_SVD2 + _INTO, _takes(2, "m", "v", "m"), user="svd2", updates=(1, 2, 3), domain=_LINE)
def svd2_into(A: Any, U: Any, sigma: Any, V: Any) -> Any:
    p = wp._svd2(A)
    return wp._part_mat2(p, 0), wp._part_vec2(p, 4), wp._part_mat2(p, 6)


@composite(_SVD3 + _INTO, _takes(3), domain=_LINE)
def svd3(A: Any) -> Any:
    p = wp._svd3(A)
    return wp._part_mat3(p, 0), wp._part_vec3(p, 9), wp._part_mat3(p, 12)


@composite(_SVD3 + _INTO, _takes(3, "m", "v", "m"), user="svd3", updates=(1, 2, 3), domain=_LINE)
def svd3_into(A: Any, U: Any, sigma: Any, V: Any) -> Any:
    p = wp._svd3(A)
    return wp._part_mat3(p, 0), wp._part_vec3(p, 9), wp._part_mat3(p, 12)


@composite(_EIG3 + _INTO, _takes(3), domain=_LINE)
def eig3(A: Any) -> Any:
    p = wp._eig3(A)
    return wp._part_mat3(p, 0), wp._part_vec3(p, 9)


@composite(_EIG3 + _INTO, _takes(3, "m", "v"), user="eig3", updates=(1, 2), domain=_LINE)
def eig3_into(A: Any, Q: Any, d: Any) -> Any:
    p = wp._eig3(A)
    return wp._part_mat3(p, 0), wp._part_vec3(p, 9)


@composite(_QR3 + _INTO, _takes(3), domain=_LINE)
def qr3(A: Any) -> Any:
    p = wp._qr3(A)
    return wp._part_mat3(p, 0), wp._part_mat3(p, 9)


@composite(_QR3 + _INTO, _takes(3, "m", "m"), user="qr3", updates=(1, 2), domain=_LINE)
def qr3_into(A: Any, Q: Any, R: Any) -> Any:
    p = wp._qr3(A)
    return wp._part_mat3(p, 0), wp._part_mat3(p, 9)
