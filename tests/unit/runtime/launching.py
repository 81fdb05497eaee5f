"""Kernels that are launched in more than one way, and the ways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.accel import launcher
from engine.accelerator import Accelerator
from engine.compile.cpu import CPU
from engine.runtime import device, kernel
from engine.runtime.execute import Executable
from engine.tape.records import LaunchRecord

F = wp.array(dtype=float)


@wp.kernel
def scale(x: F, y: F, k: float):
    i = wp.tid()
    y[i] = x[i] * x[i] * k


@wp.kernel
def in_place(x: F):
    i = wp.tid()
    x[i] = wp.sin(x[i]) * x[i]


@wp.kernel
def total(x: F, loss: F):
    wp.atomic_add(loss, 0, x[wp.tid()])


@wp.kernel
def turns(x: F, y: F, n: int):
    i = wp.tid()
    a = x[i]
    for _ in range(n):
        a = a * x[i] + 0.5
    y[i] = a


@wp.kernel
def grid(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[i, j] = wp.exp(x[i, j])


@wp.kernel
def talks(x: F):
    i = wp.tid()
    print(x[i])
    wp.expect_eq(x[i], 0.0)


@contextmanager
def alone() -> Iterator[None]:
    """As if no device but the host's had ever been registered; the list is known by its address."""
    registered = list(device.others)
    del device.others[:]
    for known in list(kernel._planned):
        if known._plan is not None and known._plan.backend is not CPU:  # first launched there
            known.forget()
    try:
        yield
    finally:
        device.others[:0] = registered


@contextmanager
def way(monkeypatch: pytest.MonkeyPatch, short: bool | str) -> Iterator[pytest.MonkeyPatch]:
    """All launches of a block in the short way (or without Python: "native"), or none.

    Devices that other tests registered are not there meanwhile: beside them nothing goes without
    Python. Gives what has changed all that, for others to change it, too, as long as it lasts.
    """
    with monkeypatch.context() as m, alone():
        m.setattr(wp.config, "native_after", 0 if short == "native" else -1)
        m.setattr(launcher.maker, "asked", True)
        if short == "native":
            m.setattr(launcher.maker, "made", NATIVE)
        if not short:
            m.setattr(Executable, "run_cached", lambda self, dim, args: None)
            m.setattr(LaunchRecord, "is_ready", lambda self: False)
        yield m


def native() -> Any:
    """The launcher in C++, made at once; None where it cannot be."""
    wp.Tape  # noqa: B018  # says what tapes are
    maker = launcher.Maker(Accelerator())
    maker.make()
    return maker.made


NATIVE = native()


def made(n: int, stride: int = 1) -> Any:
    data = np.linspace(-1, 1, n * stride).astype(np.float32)
    a = wp.array(data, dtype=float, requires_grad=True)
    return a[::stride] if stride > 1 else a
