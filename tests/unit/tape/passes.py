"""Tapes of many records, and what their backward passes leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import engine as wp
from tests.unit.runtime.launching import in_place, made, scale, total, turns
from tests.unit.runtime.sequences import step

Made = tuple[wp.Tape, Any, list[Any]]  # a tape, its loss, its arrays


def chain(n: int) -> Made:
    """More than one chunk of launches."""
    x, v = ([made(n) for _ in range(151)] for _ in "xv")
    loss, tape = wp.zeros(1, dtype=float, requires_grad=True), wp.Tape()
    with tape:
        for t in range(150):
            wp.launch(step, n, [x[t], v[t], 0.1], [x[t + 1], v[t + 1]])
        wp.launch(total, n, [x[150], loss])
    return tape, loss, [*x, *v, loss]


def mixed(n: int) -> Made:
    """Views, whose gradients are views; journals; loops, whose form depends on numbers."""
    whole, y, z = made(2 * n), made(n), made(n)
    loss, tape = wp.zeros(1, dtype=float, requires_grad=True), wp.Tape()
    with tape:
        for k in range(3):
            wp.launch(scale, n, [whole[:n], y, 2.0])
            wp.launch(total, n, [y, loss])
            wp.launch(turns, n, [whole[n:], z, 3 + k])
            wp.launch(total, n, [z, loss])
        wp.launch(in_place, n, [z])
        wp.launch(total, n, [z, loss])
    return tape, loss, [whole, y, z, loss]


def apart(n: int) -> Made:
    """No record overwrites what another one reads."""
    whole, loss, tape = made(2 * n), wp.zeros(1, dtype=float, requires_grad=True), wp.Tape()
    ys = [made(n) for _ in range(6)]
    with tape:
        for k, y in enumerate(ys):
            wp.launch(turns if k % 2 else scale, n, [whole[:n], y, 3 + k if k % 2 else 0.5])
            wp.launch(total, n, [y, loss])
            if k == 3:
                wp.launch(in_place, n, [y])
    return tape, loss, [whole, loss, *ys]


def seen(make: Callable[[int], Made], n: int) -> list[Any]:
    tape, loss, arrays = make(n)
    holds, out = [], []
    for k in range(5):
        grad = arrays[0].grad
        if k % 2:  # somebody remembers a gradient
            holds.append(grad.storage.hold(grad.lo, grad.hi))
        if k == 3:
            arrays[1].grad = wp.full(arrays[1].shape, 2.0, dtype=float)
        version = grad.storage.version
        tape.backward(loss)
        out.append(grad.storage.version - version)
        out.append([a.grad.numpy().tobytes() for a in arrays])
        out.append([r.stack_bytes for r in tape.records])
    out += [h.read(grad.ptr, grad.shape, grad.strides, np.float32).tobytes() for h in holds]
    return out
