"""Products of matrices of several shapes in one kernel, each by itself right."""

from __future__ import annotations

import numpy as np

import engine as wp

mat22d = wp.types.matrix(shape=(2, 2), dtype=wp.float64)
mat33d = wp.types.matrix(shape=(3, 3), dtype=wp.float64)
mat23d = wp.types.matrix(shape=(2, 3), dtype=wp.float64)
mat32d = wp.types.matrix(shape=(3, 2), dtype=wp.float64)
mat44d = wp.types.matrix(shape=(4, 4), dtype=wp.float64)


@wp.kernel
def products(
    a: wp.array(dtype=mat23d),
    b: wp.array(dtype=mat32d),
    c: wp.array(dtype=mat44d),
    ab: wp.array(dtype=mat22d),
    ba: wp.array(dtype=mat33d),
    cc: wp.array(dtype=mat44d),
):
    i = wp.tid()
    ab[i] = a[i] @ b[i]
    ba[i] = b[i] @ a[i]
    cc[i] = c[i] @ c[i]


def test_variables_do_not_share_a_place() -> None:
    rng = np.random.default_rng(123)
    a, b, c = (rng.normal(size=(5, *s)) for s in ((2, 3), (3, 2), (4, 4)))
    given = [wp.array(x, dtype=t) for x, t in zip((a, b, c), (mat23d, mat32d, mat44d), strict=True)]
    out = [wp.zeros(5, dtype=t) for t in (mat22d, mat33d, mat44d)]
    wp.launch(products, dim=5, inputs=given, outputs=out)
    for got, want in zip(out, (a @ b, b @ a, c @ c), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
