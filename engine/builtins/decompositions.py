"""Decompositions of small matrices as operations, with their derivatives.

An operation gives all factors packed into one vector; `engine.builtins.library.decompositions`
takes them apart. With A = U S V', P = U' dA V and skew matrices W = U' dU, Z = V' dV:

    dS_i = P_ii
    (W + Z)_ij = (P_ij + P_ji) / (s_j - s_i)
    (W - Z)_ij = (P_ij - P_ji) / (s_j + s_i)

(after J. Townsend, "Differentiating the singular value decomposition", 2016, in sums and
differences). The rotation U V' depends on W - Z alone, and keeps a finite derivative where
singular values meet. For A = Q D Q' it is P = Q' dA Q and (Q' dQ)_ij = P_ij / (d_j - d_i).

Where two values agree up to rounding, the factors are not determined and have no derivative
across the two. The part of the derivative that would be divided by zero is then left out, in both
modes. The backward pass also leaves out what is rounding noise of a cotangent that does not
depend on the choice of the factors, so that such functions (a rotation, say) are as exact near
these matrices as elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.builtins import decompose
from engine.builtins import infer as i
from engine.builtins.rules import Maybe, call, construct
from engine.ir.builder import E
from engine.ir.ops import Domain, Op, Vjp, register
from engine.lang.ctypes_ import ctype
from engine.lang.numbers import epsilon
from engine.lang.types import MatrixType, Type, VectorType, is_integer, scalar_of

_LINE = (-2.0, 2.0)
_SAME = 16  # values that differ by so many units in the last place are taken as equal
_NOISE = 8  # cotangents below so many units in the last place of their terms are taken as zero

# ---- parts of packed results


def _part_types(size: int, shape: Callable[[Any], Type]) -> Callable[[Sequence[Type]], Type | None]:
    def infer(types: Sequence[Type]) -> Type | None:
        if len(types) != 2 or not i.float_vector(types[0]) or not is_integer(types[1]):
            return None
        assert isinstance(types[0], VectorType)
        return shape(types[0].scalar) if types[0].length > size else None

    return infer


def _put_types(types: Sequence[Type]) -> Type | None:
    fits = len(types) == 3 and i.float_vector(types[0]) and is_integer(types[1])
    inner = types[2] if fits else None
    if not isinstance(inner, (VectorType, MatrixType)) or scalar_of(inner) != scalar_of(types[0]):
        return None
    return types[0] if inner.size < types[0].size else None  # type: ignore[union-attr]


def _put_part(v: Any, k: Any, x: Any) -> Any:
    out = v.copy()
    out[int(k) : int(k) + x.size] = np.ravel(x)
    return out


def _part(name: str, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))

    def of(s: Any) -> Type:
        return VectorType(s, *shape) if len(shape) == 1 else MatrixType(s, *shape)

    register(
        Op(
            name=name,
            user=f"_{name}",
            doc=f"{name}(packed, k): {size} numbers from place k on, as one value.",
            infer=_part_types(size, of),
            c=lambda types, t: f"eng::part<{ctype(t)}>({{0}}, {{1}})",
            numpy=lambda p, k: p[int(k) : int(k) + size].reshape(shape).copy(),
            derivative=Vjp(
                lambda g, a, y: (a[0].full(0).call("put_part", a[1], g), None),
                "linear",
                lambda t, a, y: None if t[0] is None else t[0].call(name, a[1]),
            ),
            domain=Domain((_LINE,)),
        )
    )


for _n in (2, 3):
    _part(f"part_vec{_n}", (_n,))
    _part(f"part_mat{_n}", (_n, _n))


def _part_of(x: Type) -> str:
    return f"part_mat{x.rows}" if isinstance(x, MatrixType) else f"part_vec{x.length}"  # type: ignore[union-attr]


register(
    Op(
        name="put_part",
        doc="put_part(packed, k, x): the vector with the numbers of x from place k on.",
        infer=_put_types,
        c=call("put_part", 3),
        numpy=_put_part,
        derivative=Vjp(
            lambda g, a, y: (
                g.call("put_part", a[1], a[2].full(0)),
                None,
                g.call(_part_of(a[2].type), a[1]),
            ),
            "linear",
            lambda t, a, y: (
                None
                if t[0] is None and t[2] is None
                else (t[0] or a[0].full(0)).call("put_part", a[1], t[2] or a[2].full(0))
            ),
        ),
        domain=Domain((_LINE,)),
    )
)


class Parts:
    """The factors in a packed vector, and the way back."""

    def __init__(self, *names: tuple[str, int]) -> None:
        self.names = names

    def of(self, packed: E) -> list[E]:
        """The factors as values."""
        return [packed.call(name, packed.index(k)) for name, k in self.names]

    def pack(self, like: E, values: Sequence[E]) -> E:
        """The packed vector of these factors."""
        out = like.full(0)
        for (_, k), x in zip(self.names, values, strict=True):
            out = out.call("put_part", out.index(k), x)
        return out


# ---- what the rules are made of


def _eps(x: E) -> float:
    return epsilon(scalar_of(x.type).numpy)


def _at(m: E, r: int, c: int) -> E:
    return m.call("extract", m.index(r), m.index(c))


def _item(v: E, k: int) -> E:
    return v.call("extract", v.index(k))


def _product(*factors: E) -> E:
    out = factors[0]
    for f in factors[1:]:
        out = out.call("matmul", f)
    return out


def _inverse_of(x: E, scale: E) -> E:
    """1 / x, or 0 where x is zero up to rounding of numbers as large as `scale`."""
    near = x.call("abs") <= scale * (_SAME * _eps(x))
    return near.select(0, 1 / near.select(1, x))


def _audible(x: E, noise: E) -> E:
    """x, or 0 where it is not above the rounding noise of its terms."""
    return (x.call("abs") <= noise).select(0, x)


def _noise(*terms: E) -> E:
    """What rounding does to sums of the entries of matrices like these."""
    squares = [m.call("ddot", m) for m in terms]
    total = squares[0]
    for s in squares[1:]:
        total = total + s
    return total.call("sqrt") * (_NOISE * _eps(total))


def _skew_matrix(like: E, upper: dict[tuple[int, int], E]) -> E:
    """The skew matrix with these entries above the diagonal."""
    t = like.type
    assert isinstance(t, MatrixType)
    zero = like.lit(0)
    cells = [zero] * (t.rows * t.rows)
    for (r, c), x in upper.items():
        cells[r * t.rows + c], cells[c * t.rows + r] = x, -x
    return construct(t, cells)


def _pairs(n: int) -> list[tuple[int, int]]:
    return [(r, c) for r in range(n) for c in range(r + 1, n)]


# ---- singular values


def _svd(n: int) -> Vjp:
    parts = Parts(
        (f"part_mat{n}", 0), (f"part_vec{n}", n * n), (f"part_mat{n}", n * n + n)
    )  # U, sigma, V

    def sums(s: E, r: int, c: int) -> tuple[E, E]:
        first, second = _item(s, r), _item(s, c)
        top = _item(s, 0)
        return _inverse_of(second - first, top), _inverse_of(second + first, top)

    def rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
        u, s, v = parts.of(y)
        gu, gs, gv = parts.of(g)
        m, k = _product(u.call("transpose"), gu), _product(v.call("transpose"), gv)
        noise = _noise(m, k)
        cells = {(r, r): _item(gs, r) for r in range(n)}
        for r, c in _pairs(n):
            by_u, by_v = _at(m, r, c) - _at(m, c, r), _at(k, r, c) - _at(k, c, r)
            apart, together = sums(s, r, c)
            even = 0.5 * _audible(by_u + by_v, noise) * apart
            odd = 0.5 * (by_u - by_v) * together
            cells[r, c], cells[c, r] = even + odd, even - odd
        p = construct(a[0].type, [cells[r, c] for r in range(n) for c in range(n)])  # type: ignore[arg-type]
        return (_product(u, p, v.call("transpose")),)

    def jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
        if t[0] is None:
            return None
        u, s, v = parts.of(y)
        p = _product(u.call("transpose"), t[0], v)
        w, z = {}, {}
        for r, c in _pairs(n):
            apart, together = sums(s, r, c)
            even = 0.5 * (_at(p, r, c) + _at(p, c, r)) * apart
            odd = 0.5 * (_at(p, r, c) - _at(p, c, r)) * together
            w[r, c], z[r, c] = even + odd, even - odd
        moved = [
            _product(u, _skew_matrix(u, w)), p.call("get_diag"), _product(v, _skew_matrix(v, z)),
        ]  # fmt: skip
        return parts.pack(y, moved)

    return Vjp(rule, "general", jvp)


# ---- eigenvalues

_EIG = Parts(("part_mat3", 0), ("part_vec3", 9))


def _eig_gap(d: E, r: int, c: int) -> E:
    size = _item(d, 0).call("abs").call("max", _item(d, 2).call("abs"))
    return _inverse_of(_item(d, c) - _item(d, r), size)


def _eig_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    q, d = _EIG.of(y)
    gq, gd = _EIG.of(g)
    m = _product(q.call("transpose"), gq)
    noise = _noise(m)
    cells = {(r, r): _item(gd, r) for r in range(3)}
    for r, c in _pairs(3):
        turn = _audible(_at(m, r, c) - _at(m, c, r), noise)
        cells[r, c] = cells[c, r] = 0.5 * turn * _eig_gap(d, r, c)
    p = construct(a[0].type, [cells[r, c] for r in range(3) for c in range(3)])  # type: ignore[arg-type]
    return (_product(q, p, q.call("transpose")),)


def _eig_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    if t[0] is None:
        return None
    q, d = _EIG.of(y)
    symmetric = (t[0] + t[0].call("transpose")).call("scale", 0.5)
    p = _product(q.call("transpose"), symmetric, q)
    w = {(r, c): _at(p, r, c) * _eig_gap(d, r, c) for r, c in _pairs(3)}
    return _EIG.pack(y, [_product(q, _skew_matrix(q, w)), p.call("get_diag")])


# ---- QR: with X = Q' dA and W = Q' dQ, the lower half of X = W R + dR has no dR in it, and its
# two first columns give W. The third column of R is not divided by.

_QR = Parts(("part_mat3", 0), ("part_mat3", 9))


def _qr_inverses(r: E) -> tuple[E, E]:
    size = r.call("ddot", r).call("sqrt")
    return _inverse_of(_at(r, 0, 0), size), _inverse_of(_at(r, 1, 1), size)


def _qr_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    q, r = _QR.of(y)
    gq, gr = _QR.of(g)
    zero = g.lit(0)
    t = a[0].type
    assert isinstance(t, MatrixType)
    upper = construct(
        t, [_at(gr, row, col) if row <= col else zero for row in range(3) for col in range(3)]
    )
    m = _product(q.call("transpose"), gq) - _product(upper, r.call("transpose"))
    first, second = _qr_inverses(r)
    w10, w20, w21 = (_at(m, i, j) - _at(m, j, i) for i, j in ((1, 0), (2, 0), (2, 1)))
    x21 = w21 * second
    x20 = (w20 - x21 * _at(r, 0, 1)) * first
    x10 = w10 * first
    lower = construct(t, [zero, zero, zero, x10, zero, zero, x20, x21, zero])
    return (_product(q, upper + lower),)


def _qr_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    if t[0] is None:
        return None
    q, r = _QR.of(y)
    x = _product(q.call("transpose"), t[0])
    first, second = _qr_inverses(r)
    w10, w20 = _at(x, 1, 0) * first, _at(x, 2, 0) * first
    w21 = (_at(x, 2, 1) - w20 * _at(r, 0, 1)) * second
    w = _skew_matrix(q, {(0, 1): -w10, (0, 2): -w20, (1, 2): -w21})
    moved = x - _product(w, r)
    zero = x.lit(0)
    upper = [_at(moved, row, col) if row <= col else zero for row in range(3) for col in range(3)]
    return _QR.pack(y, [_product(q, w), construct(t[0].type, upper)])  # type: ignore[arg-type]


def _widened(numpy: Callable[[Any], Any], m: Any) -> Any:
    """Half precision is too coarse to iterate in: the work is done in single precision."""
    if m.dtype != np.float16:
        return numpy(m)
    return numpy(m.astype(np.float32)).astype(np.float16)


def _decomposition(
    name: str, doc: str, n: int, size: int, numpy: Callable[[Any], Any], derivative: Vjp
) -> None:
    def infer(types: Sequence[Type]) -> Type | None:
        square = len(types) == 1 and i.small_square(types[0])
        if not square or not isinstance(types[0], MatrixType) or types[0].rows != n:
            return None
        return VectorType(types[0].scalar, size)

    register(
        Op(
            name=name,
            user=f"_{name}",
            doc=doc,
            infer=infer,
            c=call(name, 1),
            numpy=lambda m: _widened(numpy, m),
            derivative=derivative,
            domain=Domain((_LINE,)),
        )
    )


_decomposition("svd2", "svd2(a): U, sigma and V, packed.", 2, 10, decompose.svd2, _svd(2))
_decomposition("svd3", "svd3(a): U, sigma and V, packed.", 3, 21, decompose.svd3, _svd(3))
_decomposition("eig3", "eig3(a): Q and d, packed.", 3, 12, decompose.eig3,
               Vjp(_eig_rule, "general", _eig_jvp))  # fmt: skip
_decomposition("qr3", "qr3(a): Q and R, packed.", 3, 18, decompose.qr3,
               Vjp(_qr_rule, "general", _qr_jvp))  # fmt: skip
