"""The level at which a compiler works does not matter to results: the same bits at each."""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import compiler

# LARGE and HUGE that put any kernel at a level.
LEVELS = ((10**9, 10**9), (0, 10**9), (0, 0))
N = 9


def products(dtype: Any, rows: int) -> Any:
    """A kernel with every operation of matrices that is a function of its own in long code."""
    square = wp.types.matrix((rows, rows), dtype)
    tall = wp.types.matrix((rows, 2), dtype)
    vector = wp.types.vector(rows, dtype)

    @wp.kernel(module="unique")
    def mixed(
        a: wp.array(dtype=square),  # type: ignore[valid-type]
        b: wp.array(dtype=tall),  # type: ignore[valid-type]
        v: wp.array(dtype=vector),  # type: ignore[valid-type]
        out: wp.array(dtype=square),  # type: ignore[valid-type]
        total: wp.array(dtype=dtype),  # type: ignore[valid-type]
    ):
        i = wp.tid()
        x = a[i]
        y = x * wp.transpose(x) + wp.outer(v[i], x[0])
        for k in range(2):
            y = y * x * dtype(0.25) - y / dtype(3.0)
            y[k, 1 - k] = y[k, k] * x[1, k]
        y = wp.cw_mul(y, x) + wp.cw_div(y, x) - (-x)
        w = b[i] * (wp.transpose(b[i]) * (y * v[i])) + v[i] * y
        out[i] = wp.lerp(y, x, dtype(0.3)) + wp.diag(w)
        wp.atomic_add(total, 0, wp.ddot(y, x) + wp.trace(y) + wp.dot(wp.get_diag(y), w))

    return mixed, square, tall, vector


def by_numpy(a: Any, b: Any, v: Any) -> Any:
    """`out` of the kernel, for each thread."""
    found = []
    for x, tall, vector in zip(a, b, v, strict=True):
        y = x @ x.T + np.outer(vector, x[0])
        for k in range(2):
            y = y @ x * 0.25 - y / 3.0
            y[k, 1 - k] = y[k, k] * x[1, k]
        y = y * x + y / x + x
        w = tall @ (tall.T @ (y @ vector)) + vector @ y
        found.append(0.7 * y + 0.3 * x + np.diag(w))
    return np.array(found)


def noting(levels: list[int]) -> type:
    """What is to be compiled or found in a cache, that tells its level."""

    class Unit(compiler._Unit):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            levels.append(self.level)

    return Unit


@pytest.mark.parametrize("dtype, rows", [(wp.float16, 2), (wp.float32, 3), (wp.float64, 6)])
def test_results_are_the_same_at_each_level(
    dtype: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(rows)
    shapes = ((N, rows, rows), (N, rows, 2), (N, rows), (N, rows, rows), (1,))
    given = [rng.uniform(0.4, 0.9, s) * rng.choice((-1, 1), s) for s in shapes[:3]]
    seeds = [rng.normal(size=s) for s in shapes[3:]]
    found = []
    for level, (large, huge) in enumerate(LEVELS):
        monkeypatch.setattr(compiler, "LARGE", large)
        monkeypatch.setattr(compiler, "HUGE", huge)
        mixed, *types = products(dtype, rows)
        asked: list[int] = []
        monkeypatch.setattr(compiler, "_Unit", noting(asked))
        xs = [wp.array(x, dtype=t, requires_grad=True, device="cpu")
              for x, t in zip(given, types, strict=True)]  # fmt: skip
        out = wp.zeros(N, dtype=types[0], requires_grad=True, device="cpu")
        total = wp.zeros(1, dtype=dtype, requires_grad=True, device="cpu")
        with wp.Tape() as tape:
            wp.launch(mixed, dim=N, inputs=xs, outputs=[out, total], device="cpu")
        results = [out.numpy(), total.numpy()]
        tape.backward(grads={
            a: wp.array(s, dtype=a.dtype, device="cpu")
            for a, s in zip((out, total), seeds, strict=True)
        })  # fmt: skip
        results += [x.grad.numpy() for x in xs]
        assert asked and set(asked) == {level}
        bits = np.finfo(results[0].dtype).eps
        assert np.abs(results[0] - by_numpy(*given)).max() < 200 * bits
        assert all(np.isfinite(r).all() for r in results)
        found.append([r.tobytes() for r in results])
        monkeypatch.undo()
    assert found[0] == found[1] == found[2]
