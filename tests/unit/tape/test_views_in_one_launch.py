"""Several views of one array in one launch: whichever is overwritten later is restored."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import engine as wp
from engine.accel import launcher

ROWS = 4
N = 3


@wp.kernel
def product(
    a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64), c: wp.array(dtype=wp.float64),
    z: wp.array(dtype=wp.float64),
):  # fmt: skip
    i = wp.tid()
    z[i] = a[i] * b[i] * c[i]


@wp.kernel
def halve(a: wp.array(dtype=wp.float64)):
    i = wp.tid()
    a[i] = 0.5 * a[i]


@wp.func
def multiplied(a: wp.float64, b: wp.float64):
    return a * b


WRITES = {
    "kernel": lambda a: wp.launch(halve, N, [a]),
    "fill": lambda a: a.fill_(7.0),
    "zero": lambda a: a.zero_(),
    "copy": lambda a: wp.copy(a, wp.array(np.full(N, 9.0), dtype=wp.float64)),
}
READS = {
    "launch": lambda a, b, c, z: wp.launch(product, N, [a, b, c], [z]),
    "operators": lambda a, b, c, z: wp.copy(z, a * b * c),
    "map": lambda a, b, c, z: wp.map(multiplied, a, wp.map(multiplied, b, c), out=z),
}


def gradient(order, written, write, read, base):
    x = wp.array(base, dtype=wp.float64, requires_grad=True)
    z = wp.zeros(N, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        READS[read](*(x[k] for k in order), z)
        WRITES[write](x[written])
    tape.backward(grads={z: wp.ones_like(z)})
    return x.grad.numpy()


@pytest.mark.whole
@pytest.mark.host("native launches")
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
def test_each_view_is_restored(read, write, monkeypatch):
    """In all orders of the views, by Python and natively, in the first and in later iterations.

    The derivative of a product is known: the product of the other rows, as they were.
    """
    base = 1.0 + np.arange(ROWS * N, dtype=float).reshape(ROWS, N)
    for order in itertools.permutations(range(ROWS), 3):
        for written in order:
            want = np.zeros((ROWS, N))
            for k in order:
                want[k] = np.prod([base[j] for j in order if j != k], axis=0)
            # What the overwrite consumes is the gradient of what came after the product: none.
            for after in (-1, 0):
                monkeypatch.setattr(wp.config, "native_after", after)
                for _ in range(3):
                    got = gradient(order, written, write, read, base)
                    assert np.array_equal(got, want), (order, written, after)
    assert launcher.maker.made is not None
