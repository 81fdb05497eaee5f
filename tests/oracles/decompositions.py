"""SVD, eigenvalues and QR: what the factors must satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.oracles import Oracle

FACTORS = "its factors are not unique, and all of them are NaN for Inf and NaN"


def close(got: Any, want: Any, tolerance: float) -> None:
    scale = max(1.0, float(np.max(np.abs(want), initial=0)))
    np.testing.assert_allclose(np.asarray(got, float), want, rtol=0, atol=tolerance * scale)


def rotation(q: Any, tolerance: float, proper: bool = True) -> None:
    close(q.T @ q, np.eye(len(q)), tolerance)
    assert not proper or np.linalg.det(q) > 0


def svd(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
    u, s, v = (np.asarray(r, float) for r in results)
    (a, *_) = args
    rotation(u, tolerance, len(a) == 3)
    rotation(v, tolerance)
    close(u @ np.diag(s) @ v.T, a, tolerance)
    close(np.abs(s), np.linalg.svd(a)[1], tolerance)


def eig(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
    q, d = (np.asarray(r, float) for r in results)
    symmetric = (args[0] + args[0].T) / 2
    rotation(q, tolerance)
    close(q @ np.diag(d) @ q.T, symmetric, tolerance)
    close(np.sort(d), np.linalg.eigvalsh(symmetric), tolerance)


def qr(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
    q, r = (np.asarray(x, float) for x in results)
    rotation(q, tolerance)
    close(q @ r, args[0], tolerance)
    assert not np.tril(r, -1).any() and r[0, 0] >= 0 and r[1, 1] >= 0


def packed(check: Any, n: int, *shapes: tuple[int, ...]) -> Any:
    """The check of an operation that gives its factors in one vector."""

    def apply(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
        (p,) = results
        sizes = [int(np.prod(s)) for s in shapes]
        assert len(p) == sum(sizes)
        parts = np.split(np.asarray(p, float), np.cumsum(sizes)[:-1])
        check([x.reshape(s) for x, s in zip(parts, shapes, strict=True)], args, tolerance)

    return apply


M2, V2, M3, V3 = (2, 2), (2,), (3, 3), (3,)
OPERATIONS = {
    "svd2": Oracle(check=packed(svd, 2, M2, V2, M2), special=FACTORS),
    "svd3": Oracle(check=packed(svd, 3, M3, V3, M3), special=FACTORS),
    "eig3": Oracle(check=packed(eig, 3, M3, V3), special=FACTORS),
    "qr3": Oracle(check=packed(qr, 3, M3, M3), special=FACTORS),
}
COMPOSED = {
    "svd2": Oracle(check=svd, special=FACTORS),
    "svd3": Oracle(check=svd, special=FACTORS),
    "eig3": Oracle(check=eig, special=FACTORS),
    "qr3": Oracle(check=qr, special=FACTORS),
}
