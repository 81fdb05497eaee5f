"""Kernels whose last adjoint takes a cotangent from where it lies, or not, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import runner, schedule, seeded
from engine.runtime import blank
from engine.runtime.guards import Guard
from engine.tape import seeding, tape
from tests.parts import SMALL

F, V, D = wp.array(dtype=float), wp.array(dtype=wp.vec3), wp.array(dtype=wp.float64)
F2, H = wp.array2d(dtype=float), wp.array(dtype=wp.float16)


@wp.kernel
def plain(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * s + x[i] * x[i]


@wp.kernel
def guarded(x: F, y: F, s: float):
    i = wp.tid()
    if i % 3 == 1 or x[i] < 0.0:
        return
    y[i] = x[i] * s


@wp.kernel
def adds(x: F, y: F, s: float):
    i = wp.tid()
    y[i] += x[i] * s


@wp.kernel
def in_place(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] * s
    y[i] *= x[i]
    y[i] = wp.sin(y[i])


@wp.kernel
def spins(x: F, y: F, s: float):
    i = wp.tid()
    v = x[i]
    n = int(wp.abs(x[i]) * 20.0) + 1
    k = wp.int32(0)
    while k < n:
        v = wp.sin(v) + s * v
        k += 1
    y[i] = v


@wp.kernel
def climbs(x: F, y: F, s: float):
    i = wp.tid()
    v = x[i]
    for _ in range(1000 * (i % 6)):
        v = wp.sin(v) + x[i] * s
    y[i] = v


@wp.kernel
def vectors(x: V, y: V, s: float):
    i = wp.tid()
    y[i] = wp.cross(x[i], x[i] * x[i][0]) * s + wp.normalize(x[i])


@wp.kernel
def doubles(x: D, y: D, s: float):
    i = wp.tid()
    y[i] = wp.exp(x[i]) * wp.float64(s)


@wp.kernel
def halves(x: H, y: H, s: float):
    i = wp.tid()
    y[i] = x[i] * x[i] * wp.float16(s)


@wp.kernel
def grids(x: F2, y: F2, s: float):
    i, j = wp.tid()
    y[i, j] = x[i, j] * s * float(j)


@wp.kernel
def turned(x: F2, y: F2, s: float):
    i, j = wp.tid()
    y[j, i] = x[j, i] * s


@wp.kernel
def neighbours(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] + s * x[wp.min(i + 1, x.shape[0] - 1)]


@wp.kernel
def reverses(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[x.shape[0] - 1 - i] * s


@wp.kernel
def shared(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] * x[0] * s


@wp.kernel
def shifted(x: F, y: F, s: float):
    i = wp.tid()
    y[(i + 1) % x.shape[0]] = x[i] * s


TAKEN = {  # those whose cotangents are taken from where they lie
    plain: (4099,), guarded: (3000,), adds: (2049,), spins: (1100,), climbs: (1100,),
    vectors: (1300,), doubles: (1025,), halves: (4099,), grids: (37, 71),
}  # fmt: skip
OTHERS = {
    in_place: (2600,),
    turned: (40, 40),
    neighbours: (3000,),
    shared: (3000,),
    shifted: (3000,),
}


def take_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches and cotangents that are small are taken to be large."""
    for name, value in SMALL.items():
        monkeypatch.setattr(schedule, name, value)
    monkeypatch.setattr(tape, "seed_at_once", lambda loss, grads: None)  # which does small ones
    monkeypatch.setattr(Guard, "made", False)  # as other tests may have left it
    monkeypatch.setattr(seeding, "VAST", 1)
    monkeypatch.setattr(blank, "VAST", 1)
    monkeypatch.setattr(seeded, "NEAR", 1024)


def note_taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the gradient was known to be zero, of each pass that went the short way."""
    found: list[bool] = []
    run = runner.run_seeded

    def noted(*args: Any) -> Any:
        head, _ = args[-1][1][:96], found.append(False)
        found[-1] = int.from_bytes(head[64:72], "little") != 0  # where the memory near by is
        return run(*args)

    monkeypatch.setattr(runner, "run_seeded", noted)
    return found


def inputs(kernel: Any, shape: tuple[int, ...], seed: int = 0) -> tuple[Any, ...]:
    dtype = {vectors: wp.vec3, doubles: wp.float64, halves: wp.float16}.get(kernel, wp.float32)
    numbers = {doubles: np.float64, halves: np.float16}.get(kernel, np.float32)
    inner = (3,) if kernel is vectors else ()
    rng = np.random.default_rng(seed)
    draw = lambda: rng.normal(size=(*shape, *inner)).astype(numbers)  # noqa: E731
    x = wp.array(draw(), dtype=dtype, requires_grad=True)
    y = wp.array(draw(), dtype=dtype, requires_grad=True)
    return x, y, draw(), draw()


def grads(kernel: Any, shape: tuple[int, ...], passes: int = 3) -> list[np.ndarray[Any, Any]]:
    x, y, *cotangents = inputs(kernel, shape)
    recorded = wp.Tape()
    with recorded:
        wp.launch(kernel, dim=shape, inputs=[x, y, 0.75])
    out = []
    for k in range(passes):
        given: Any = cotangents[k % 2]
        if k != 1:  # arrays, and what NumPy has
            given = wp.array(given, dtype=y.dtype)
        recorded.backward(grads={y: given})
        out += [np.array(x.grad.numpy()), np.array(wp.clone(y.grad).numpy())]
    return out


def same(a: list[np.ndarray[Any, Any]], b: list[np.ndarray[Any, Any]]) -> None:
    for p, q in zip(a, b, strict=True):
        assert p.tobytes() == q.tobytes()


def as_before(monkeypatch: pytest.MonkeyPatch, kernel: Any, shape: tuple[int, ...]) -> Any:
    with monkeypatch.context() as m:
        m.setattr(seeding, "VAST", 1 << 60)
        return grads(kernel, shape)


def recorded_pass(kernel: Any, shape: tuple[int, ...]) -> tuple[wp.Tape, Any, Any, Any]:
    """A pass that ran backward and was zeroed, with all adjoints compiled, and its arrays."""
    grads(kernel, shape)
    x, y, c, _ = inputs(kernel, shape)
    recorded = wp.Tape()
    with recorded:
        wp.launch(kernel, dim=shape, inputs=[x, y, 0.75])
    recorded.backward(grads={y: c})
    recorded.zero()
    return recorded, x, y, wp.array(c, dtype=y.dtype)
