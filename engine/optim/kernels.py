"""The steps of optimizers, scalar by scalar. Moments may be wider than parameters."""

from __future__ import annotations

from typing import Any

import engine as wp


@wp.kernel
def adam_step(
    g: wp.array(dtype=Any),  # type: ignore[valid-type]
    m: wp.array(dtype=Any),  # type: ignore[valid-type]
    v: wp.array(dtype=Any),  # type: ignore[valid-type]
    lr: Any,
    beta1: Any,
    beta2: Any,
    t: Any,
    eps: Any,
    params: wp.array(dtype=Any),  # type: ignore[valid-type]
) -> None:
    """One step of Adam; t counts from 0."""
    i = wp.tid()
    grad = m.dtype(g[i])
    one = m.dtype(1.0)
    m[i] = beta1 * m[i] + (one - beta1) * grad
    v[i] = beta2 * v[i] + (one - beta2) * grad * grad
    mean = m[i] / (one - wp.pow(beta1, t + one))
    square = v[i] / (one - wp.pow(beta2, t + one))
    params[i] = params.dtype(m.dtype(params[i]) - lr * mean / (wp.sqrt(square) + eps))


@wp.kernel
def sgd_step(
    g: wp.array(dtype=Any),  # type: ignore[valid-type]
    b: wp.array(dtype=Any),  # type: ignore[valid-type]
    lr: Any,
    weight_decay: Any,
    momentum: Any,
    damping: Any,
    nesterov: int,
    t: int,
    params: wp.array(dtype=Any),  # type: ignore[valid-type]
) -> None:
    """One step of gradient descent; t counts from 0."""
    i = wp.tid()
    grad = b.dtype(g[i])
    if weight_decay != b.dtype(0.0):
        grad += weight_decay * b.dtype(params[i])
    if momentum != b.dtype(0.0):
        before = b[i]
        moved = grad
        if t > 0:
            moved = momentum * before + (b.dtype(1.0) - damping) * grad
        b[i] = moved
        if nesterov != 0:
            grad += momentum * moved
        else:
            grad = moved
    params[i] = params.dtype(b.dtype(params[i]) - lr * grad)
