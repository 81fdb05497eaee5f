"""Loops of many iterations: the limit of saved values, and what a tape says that it takes up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import LaunchError, config
from engine.autograd import check_tape

T = wp.float64


@wp.kernel
def counted(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
    i = wp.tid()
    s = x[i]
    for j in range(n):
        s = s + T(1.0e-6) * wp.sin(s)
    y[i] = s


@wp.kernel
def whiled(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
    i = wp.tid()
    s = x[i]
    k = 0
    while k < n:
        s = s + T(1.0e-6) * wp.sin(s)
        if s > T(100.0):
            break
        k += 1
    y[i] = s


@wp.kernel
def long_inside_short(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
    i = wp.tid()
    s = x[i]
    for j in range(4):
        for k in range(n // 4):
            s = s + T(1.0e-6) * wp.sin(s)
    y[i] = s


@wp.kernel
def in_place(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
    i = wp.tid()
    for j in range(n):
        x[i] = x[i] + T(1.0e-6) * wp.sin(x[i])
    y[i] = x[i]


KERNELS = [counted, whiled, long_inside_short, in_place]
STEPS = 1_000_000
THREADS = 2


def recorded(kernel: Any, steps: int = STEPS, threads: int = THREADS) -> tuple[Any, Any, Any]:
    x = wp.array(np.linspace(0.5, 1.0, threads), dtype=T, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=threads, inputs=[x, y, steps])
    return tape, x, y


@pytest.fixture(scope="module")
def expected() -> Any:
    """d y / d x: the product of all 1 + 1e-6 cos(s)."""
    s, slope = np.linspace(0.5, 1.0, THREADS), np.ones(THREADS)
    for _ in range(STEPS):
        slope = slope * (1.0 + 1e-6 * np.cos(s))
        s = s + 1e-6 * np.sin(s)
    return slope


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
@pytest.mark.parametrize("limit", [128 << 20, 64 << 10])
def test_a_million_steps(kernel: Any, limit: int, expected: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "stack_limit_bytes", limit)
    tape, x, y = recorded(kernel)
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-9)
    assert 0 < tape.memory.stack <= limit
    assert tape.memory.stack == tape.records[0].stack_bytes


def test_the_limit_makes_no_difference_to_any_bit(monkeypatch: Any) -> None:
    found = []
    for limit in (128 << 20, 40 << 10):
        monkeypatch.setattr(config, "stack_limit_bytes", limit)
        for kernel in KERNELS[:3]:
            tape, x, y = recorded(kernel, steps=20_000, threads=5)
            tape.backward(grads={y: wp.ones_like(y)})
            found.append(x.grad.numpy())
    for a, b in zip(found[:3], found[3:], strict=True):
        np.testing.assert_array_equal(a, b)


def test_threads_before_the_long_one_are_not_run_twice(monkeypatch: Any) -> None:
    """The first thread in reverse order fits, the second does not: it and the rest start again."""
    grads = []
    for limit in (128 << 20, 80_000):
        monkeypatch.setattr(config, "stack_limit_bytes", limit)
        x = wp.array(np.full(5, 0.5), dtype=T, requires_grad=True)
        y = wp.zeros_like(x)
        with wp.Tape() as tape:
            wp.launch(ragged, dim=5, inputs=[x, y])
        tape.backward(grads={y: wp.ones_like(y)})
        grads.append(x.grad.numpy().copy())
    np.testing.assert_array_equal(*grads)
    assert (grads[0] != 0).all()


@wp.kernel
def ragged(x: wp.array(dtype=T), y: wp.array(dtype=T)):
    i = wp.tid()
    s = x[i]
    for j in range((4 - wp.abs(i - 2)) * 4000):
        s = s + T(1.0e-6) * wp.sin(s)
        x[i] = s
    y[i] = x[i] * s


@wp.kernel
def ragged_grid(x: wp.array2d(dtype=T), y: wp.array2d(dtype=T)):
    i, j = wp.tid()
    s = x[i, j]
    for k in range((1 + (i + j) % 2) * 6000):
        s = s + T(1.0e-6) * wp.sin(s)
    y[i, j] = x[1 - i, j] * s
    x[i, j] = s


def test_restart_in_a_grid(monkeypatch: Any) -> None:
    grads = []
    for limit in (128 << 20, 80_000):
        monkeypatch.setattr(config, "stack_limit_bytes", limit)
        x = wp.array(np.linspace(0.5, 1.0, 6).reshape(2, 3), dtype=T, requires_grad=True)
        y = wp.zeros_like(x)
        with wp.Tape() as tape:
            wp.launch(ragged_grid, dim=(2, 3), inputs=[x, y])
        tape.backward(grads={y: wp.ones_like(y)})
        grads.append(x.grad.numpy().copy())
    np.testing.assert_array_equal(*grads)
    assert (grads[0] != 0).all()


def test_too_little_even_for_checkpoints(monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "stack_limit_bytes", 4096)
    tape, _, y = recorded(counted)
    with pytest.raises(LaunchError) as caught:
        tape.backward(grads={y: wp.ones_like(y)})
    assert caught.value.diagnostics[0].code == "E209"
    assert "config.stack_limit_bytes is 4.0 KiB" in str(caught.value)


def test_journal_limit(monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "journal_limit_bytes", 1 << 16)
    with pytest.raises(LaunchError) as caught:
        recorded(in_place)
    assert caught.value.diagnostics[0].code == "E209"
    assert "config.journal_limit_bytes is 64.0 KiB" in str(caught.value)


def test_what_a_tape_says_of_its_memory() -> None:
    tape, x, y = recorded(in_place, steps=1000)
    memory = tape.memory
    assert memory.journals >= 2 * 1000 * 8 and memory.stack == 0
    assert memory.inputs == x.size * 8  # overwritten by the launch
    tape.backward(grads={y: wp.ones_like(y)})
    assert tape.memory.stack > 0


def test_a_check_keeps_to_the_limit(monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "stack_limit_bytes", 64 << 10)
    tape, _, _ = recorded(counted, steps=20_000)
    assert check_tape(tape).passed
