"""Results of a program do not depend on watching, to the last bit."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import engine as wp

N = 1003
F = wp.array(dtype=float)
Ints = wp.array(dtype=int)


@wp.kernel
def total(x: F, index: Ints, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, wp.sin(x[index[i]]) * 0.1)


@wp.kernel
def in_place(x: F, index: Ints, y: F):
    i = wp.tid()
    x[i] = x[i] * 1.1 + 0.1
    wp.atomic_add(y, index[i] % 2, x[i] * x[i])


@wp.kernel
def looped(x: F, index: Ints, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(7):
        s += x[index[(i + k) % 1003]] * x[i]
    y[i] = s


@wp.kernel
def told(x: F, index: Ints, y: F):
    i = wp.tid()
    if i == 5:
        wp.printf("five\n")
    wp.atomic_add(y, 0, x[index[i]])


@wp.func_native("return x / (1.0f + x * x);", adj_snippet="adj_x += adj_ret * x;")
def soft(x: float) -> float: ...


@wp.kernel
def native(x: F, index: Ints, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, soft(x[i] * 0.1))


@wp.kernel
def native_drawn(x: F, index: Ints, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, soft(x[index[i]] * 0.1))


@wp.kernel
def strayed(x: F, index: Ints, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, x[index[i] + 1])


def values(kernel: Any, watching: Any) -> list[Any]:
    rng = np.random.default_rng(3)
    x = wp.array(rng.normal(size=N), dtype=float, requires_grad=True)
    index = wp.array(np.append(rng.integers(0, N, N - 1), N - 1), dtype=int)
    y = wp.zeros(N, dtype=float, requires_grad=True)
    with watching, wp.Tape() as tape:
        wp.launch(kernel, N, [x, index], [y])
        y.grad = wp.array(rng.normal(size=N), dtype=float)
        tape.backward()
    return [a.numpy().tobytes() for a in (x, y, x.grad, y.grad)]


@pytest.mark.parametrize(
    "kernel", [total, in_place, looped, told, native, native_drawn], ids=lambda k: k.key
)
@pytest.mark.parametrize("races", [False, True])
def test_the_same_bits(kernel: Any, races: bool, capfd: Any) -> None:
    plain = values(kernel, nullcontext())
    said = capfd.readouterr().out
    faults: list[Any] = []
    watched = values(kernel, wp.watching(faults.append, races))
    assert watched == plain
    assert not faults
    assert capfd.readouterr().out == said == ("five\n" if kernel is told else "")


def test_debug_mode_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [values(k, nullcontext()) for k in (total, in_place, looped)]
    monkeypatch.setattr(wp.config, "mode", "debug")
    assert [values(k, nullcontext()) for k in (total, in_place, looped)] == plain
    with pytest.raises(wp.LaunchError, match="outside"):
        values(strayed, nullcontext())


def test_what_strays_runs_once_for_effect() -> None:
    faults: list[Any] = []
    x = wp.array(np.ones(4), dtype=float)
    index = wp.array(np.array([0, 1, 2, 3]), dtype=int)
    y = wp.zeros(1, dtype=float)
    with wp.watching(faults.append):
        wp.launch(strayed, 4, [x, index], [y])
    assert y.numpy()[0] == 3.0
    assert [(f.kind, f.count) for f in faults] == [("outside", 1)]
