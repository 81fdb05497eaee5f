"""Vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.lang.types import shape_of
from tests.oracles import Oracle
from tests.oracles.scalars import div, maximum, minimum


def length(v: Any) -> Any:
    return np.sqrt(np.sum(v * v))


def normalize(v: Any) -> Any:
    size = length(v)
    return v * 0 if size == 0 else v / size


def fold(f: Any) -> Any:
    def apply(v: Any) -> Any:
        out = v[0]
        for x in v[1:]:
            out = f(out, x)
        return out

    return apply


def first(best: Any) -> Any:
    def apply(v: Any) -> int:
        missing = [x != x for x in v]
        if all(missing):
            return 0
        wanted = best(x for x in v if x == x)
        return next(k for k, x in enumerate(v) if x == wanted)

    return apply


def inverse(a: Any) -> Any:
    n = len(a)
    if determinant(a) == 0:
        return np.zeros_like(a)
    cofactors = [
        [(-1) ** (r + c) * determinant(np.delete(np.delete(a, r, 0), c, 1)) for r in range(n)]
        for c in range(n)
    ]
    return np.array(cofactors) / determinant(a)


def determinant(a: Any) -> Any:
    """By the definition: NumPy's own loses infinities."""
    if len(a) == 1:
        return a[0, 0]
    minors = [np.delete(np.delete(a, 0, 0), k, 1) for k in range(len(a))]
    return sum((-1) ** k * a[0, k] * determinant(m) for k, m in enumerate(minors))


def regular(args: list[Any]) -> list[Any]:
    (a,) = args
    return [a + 4 * np.eye(len(a), dtype=a.dtype)]


def insert(x: Any, *rest: Any) -> Any:
    out = x.copy()
    out[tuple(rest[:-1])] = rest[-1]
    return out


def put_part(v: Any, k: int, x: Any) -> Any:
    return np.concatenate([v[:k], np.ravel(x), v[k + np.size(x) :]])


def part(*shape: int) -> Any:
    return lambda p, k: p[k : k + int(np.prod(shape))].reshape(shape)


def product(a: Any, b: Any) -> Any:
    """Sums of products, whatever the components are."""
    left, right = np.atleast_2d(a), b if np.ndim(b) == 2 else np.reshape(b, (-1, 1))
    rows = [[sum(x * y for x, y in zip(row, col, strict=True)) for col in right.T] for row in left]
    kind = object if np.asarray(a).dtype == object else float
    out = np.array(rows, kind)
    return (
        out.reshape([*np.shape(a)[:-1], *np.shape(b)[1:]]) if np.ndim(a) + np.ndim(b) < 4 else out
    )


def skew(v: Any) -> Any:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]], v.dtype)


ORDER = "products in another order meet Inf - Inf elsewhere"
SUMS = {"degree": 2, "units": 64}
OPERATIONS: dict[str, Any] = {
    "scale": lambda x, s: x * s,
    "unscale": div,
    "cw_mul": lambda a, b: a * b,
    "cw_div": div,
    "lerp_vec": Oracle(lambda a, b, t: a * (1 - t) + b * t, **SUMS),
    "dot": Oracle(lambda a, b: sum(a * b), **SUMS),
    "ddot": Oracle(lambda a, b: np.sum(a * b), **SUMS),
    "cross": Oracle(
        lambda a, b: np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                               a[0] * b[1] - a[1] * b[0]], a.dtype), **SUMS),
    "length_sq": Oracle(lambda v: sum(v * v), **SUMS),
    "length": length,
    "normalize": normalize,
    "argmin": first(min), "argmax": first(max),
    "min_of": fold(minimum), "max_of": fold(maximum),
    "matvec": Oracle(product, **SUMS), "vecmat": Oracle(product, **SUMS),
    "matmul": Oracle(product, **SUMS),
    "outer": lambda a, b: np.multiply.outer(a, b),
    "transpose": np.transpose,
    "trace": Oracle(np.trace, degree=1),
    "diag": lambda v: np.diag(v),
    "get_diag": lambda a: np.diag(a),
    "skew": skew,
    "determinant": Oracle(determinant, degree=4, units=256, special=ORDER),
    "inverse": Oracle(inverse, units=4096, sample=regular, special=ORDER),
    "construct": lambda _type, *parts: np.array(parts, object).reshape(shape_of(_type)),
    "fill": lambda _type, s: np.full(shape_of(_type), s, object),
    "identity": lambda _type: np.eye(*shape_of(_type)),
    "extract": lambda x, *index: x[index],
    "extract_row": lambda x, k: x[k],
    "insert": insert,
    "insert_row": insert,
    "put_part": put_part,
    "replayed": lambda a, b: a,
    "part_vec2": part(2), "part_vec3": part(3), "part_mat2": part(2, 2), "part_mat3": part(3, 3),
}  # fmt: skip


def huber(v: Any, delta: Any = 1.0) -> Any:
    size = length(v)
    return size**2 / 2 if size <= delta else delta * (size - delta / 2)


def pseudo_huber(v: Any, delta: Any = 1.0) -> Any:
    return delta * np.sqrt(1 + np.sum(v * v) / delta**2)


COMPOSED: dict[str, Any] = {
    "norm_l1": lambda v: np.sum(abs(v)),
    "norm_l2": length,
    "norm_huber": huber,
    "norm_pseudo_huber": pseudo_huber,
    "smooth_normalize": lambda v, delta=1.0: v / pseudo_huber(v, delta),
}
