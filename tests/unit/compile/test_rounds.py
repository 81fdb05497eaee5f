"""Launches that compiled code runs in parts, against the same by Python: bits, messages, limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import pool as pools
from engine.compile.cpu import runner
from engine.compile.cpu.schedule import Schedule
from engine.diagnostics import EngineError
from tests.parts import anything, cut

pytestmark = [
    pytest.mark.whole,  # parts are cut here
    pytest.mark.host("launches in parts are the CPU's"),
]
F, D, I = wp.array(dtype=float), wp.array(dtype=wp.float64), wp.array(dtype=int)
L, H, V = wp.array(dtype=wp.int64), wp.array(dtype=wp.float16), wp.array(dtype=wp.vec3)
N = 150


@wp.kernel
def sums(x: F, f: F, d: D, i: I, l: L, v: V):
    t = wp.tid()
    wp.atomic_add(f, t % 7, x[t])
    wp.atomic_add(d, t % 3, wp.float64(x[t]))
    wp.atomic_add(i, 0, t - 70)
    wp.atomic_sub(l, t % 2, wp.int64(t))
    wp.atomic_add(v, t % 5, wp.vec3(x[t], 0.0, -x[t]))


@wp.kernel
def halves(h: H):
    wp.atomic_add(h, wp.tid() % 2, wp.float16(0.25))


@wp.kernel
def lowest(x: F, f: F):
    t = wp.tid()
    wp.atomic_min(f, t % 4, x[t])


@wp.kernel
def near(x: F, f: F):
    t = wp.tid()
    wp.atomic_add(f, t, x[t] * x[t])
    wp.atomic_add(f, t + 1, x[t])


@wp.kernel
def says(x: F, f: F):
    t = wp.tid()
    if t % 50 == 0:
        print(t)
    f[t] = x[t]


@wp.kernel
def long(x: F, f: F):
    t = wp.tid()
    a = x[t]
    for _ in range(t % 40 * 80):
        a = wp.sin(a) * x[t]
    wp.atomic_add(f, 0, a)


@wp.kernel
def long_near(x: F, p: F, f: F):
    """Of its adjoint, every second part runs first, and each has its own gradient of `p`."""
    t = wp.tid()
    a = x[t] + x[t + 1] * p[t % 4]
    for _ in range(t % 40 * 80):
        a = wp.sin(a) * x[t]
    f[t] = a


@wp.kernel
def extremes(x: F, f: F, d: D, i: I, l: L, v: wp.array(dtype=wp.uint32)):
    t = wp.tid()
    wp.atomic_max(f, t % 3, x[t])
    wp.atomic_min(d, t % 4, wp.float64(x[t]))
    wp.atomic_min(i, 0, 70 - t)
    wp.atomic_max(l, t % 2, wp.int64(t) - wp.int64(1 << 40))
    wp.atomic_max(v, 0, wp.uint32(t) * wp.uint32(1 << 25))


@wp.kernel
def highest(x: F, f: F):
    t = wp.tid()
    wp.atomic_max(f, t % 3, wp.sin(x[t]) * x[t])


@wp.kernel
def changes(x: F, f: F):
    t = wp.tid()
    x[t] = x[t] * x[t]
    wp.atomic_add(f, t % 5, x[t])


@contextmanager
def by_python() -> Iterator[None]:
    told = Schedule.__dict__["told"]
    Schedule.told = property(lambda self: None)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Schedule.told = told  # type: ignore[method-assign]


def random(n: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(n).uniform(-1, 1, n).astype(dtype)


def everything() -> list[Any]:
    f = wp.array(random(7), dtype=float)
    arrays = [
        wp.array(random(N), dtype=float), f, wp.zeros(3, dtype=wp.float64),
        wp.zeros(1, dtype=int), wp.zeros(2, dtype=wp.int64), wp.zeros(5, dtype=wp.vec3),
    ]  # fmt: skip
    wp.launch(sums, N, arrays)
    return arrays


def strided() -> list[Any]:
    x, whole = wp.array(random(N), dtype=float), wp.zeros(8, dtype=float)
    wp.launch(lowest, N, [x, whole[::2]])
    return [whole]


def few_bits() -> list[Any]:
    h = wp.zeros(2, dtype=wp.float16)
    wp.launch(halves, N, [h])
    return [h]


def one_after_another() -> list[Any]:
    x, f = wp.array(random(N), dtype=float), wp.zeros(N + 1, dtype=float)
    wp.launch(near, N, [x, f])
    return [f]


def special() -> list[Any]:
    """-0.0 stays where nothing is added; NaN and infinities are added like other numbers."""
    values = random(N)
    values[:] = 0.0
    values[[3, 10]] = np.nan, np.inf
    f = wp.array(np.full(7, -0.0, np.float32))
    x = wp.array(values, dtype=float)
    rest = [wp.zeros(3, dtype=wp.float64), wp.zeros(1, dtype=int), wp.zeros(2, dtype=wp.int64),
            wp.zeros(5, dtype=wp.vec3)]  # fmt: skip
    wp.launch(sums, N, [x, f, *rest])
    return [f, *rest]


def all_extremes() -> list[Any]:
    """NaN is replaced by any number, -0.0 and 0.0 by nothing that equals them."""
    values = random(N)
    values[[3, 10, 149]] = np.nan, -np.inf, -0.0
    x = wp.array(values, dtype=float)
    f = wp.array(np.array([np.nan, -0.0, 9.0], np.float32), dtype=float)
    rest = [wp.zeros(4, dtype=wp.float64), wp.zeros(1, dtype=int), wp.zeros(2, dtype=wp.int64),
            wp.zeros(1, dtype=wp.uint32)]  # fmt: skip
    wp.launch(extremes, N, [x, f, *rest])
    return [f, *rest]


def winners() -> list[Any]:
    values = random(N)
    values[[9, 60, 90]] = 2.0  # of equal ones, the first wins
    x = wp.array(values, dtype=float, requires_grad=True)
    f = wp.array(np.array([-5.0, np.nan, 9.0], np.float32), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(highest, N, [x, f])
    tape.backward(grads={f: wp.array(random(3), dtype=float)})
    return [f, x.grad, f.grad]


def in_place() -> list[Any]:
    x = wp.array(random(N), dtype=float, requires_grad=True)
    f = wp.zeros(5, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(changes, N, [x, f])
    tape.backward(grads={f: wp.array(random(5), dtype=float), x: wp.array(random(N))})
    return [f, x, x.grad, f.grad]


def gradients() -> list[Any]:
    x = wp.array(random(N), dtype=float, requires_grad=True)
    f = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(long, N, [x, f])
    tape.backward(f)
    return [x.grad, f]


def gradients_in_rounds() -> list[Any]:
    x = wp.array(random(N + 1), dtype=float, requires_grad=True)
    p = wp.array(random(4), dtype=float, requires_grad=True)
    f = wp.zeros(N, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(long_near, N, [x, p, f])
    tape.backward(grads={f: wp.array(random(N), dtype=float)})
    return [x.grad, p.grad, f]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize(
    "program",
    [
        everything,
        strided,
        few_bits,
        one_after_another,
        special,
        gradients,
        gradients_in_rounds,
        all_extremes,
        winners,
        in_place,
    ],
)
def test_the_same_bits(program: Any, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[int] = []
    launch = pools.Pool.launch
    monkeypatch.setattr(
        pools.Pool, "launch",
        lambda self, *args: came.append(launch(self, *args)) or came[-1],
    )  # fmt: skip
    monkeypatch.setattr(pools.Pool, "memory", anything)
    for limit in (wp.config.stack_limit_bytes, 1 << 14):  # some threads save more
        monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
        with cut(threads) as ran, by_python():
            plain = [a.numpy().tobytes() for a in program()]
        assert ran and not came
        with cut(threads) as ran:
            found = [a.numpy().tobytes() for a in program()]
        assert ran and found == plain
        # Sums of half precision, and arrays that are not contiguous, are for Python.
        assert bool(came) is (program not in (few_bits, strided))
        if program in (gradients, gradients_in_rounds) and limit < 1 << 20:
            assert 0 in came  # a round after which threads go on by another form
        came.clear()


def test_what_is_left_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    x, f = wp.array(random(N), dtype=float), wp.zeros(N, dtype=float)
    with cut(2) as ran:
        wp.launch(says, N, [x, f])
    assert ran and capfd.readouterr().out.split() == ["0", "50", "100"]
    assert (f.numpy() == x.numpy()).all()


@pytest.mark.parametrize("code", [pools.NO_MEMORY, 0])
def test_where_it_cannot(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has run where there is no memory; then Python runs all of it."""
    with cut(2):
        plain = one_after_another()[0].numpy()
    if code == pools.NO_MEMORY:
        monkeypatch.setattr(pools.Pool, "launch", lambda self, *args: code)
    else:
        monkeypatch.setattr(runner, "pool", lambda: None)
    with cut(2):
        assert (one_after_another()[0].numpy() == plain).all()


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that is refused names its reason, with parts of their own memory too."""

    @wp.kernel
    def saves(x: F, f: F):
        t = wp.tid()
        x[t] = x[t] * x[t]
        wp.atomic_add(f, 0, x[t])

    x = wp.array(random(N), dtype=float, requires_grad=True)
    f = wp.zeros(1, dtype=float, requires_grad=True)
    monkeypatch.setattr(wp.config, "journal_limit_bytes", 64)
    for way in (by_python, None):
        with cut(2), pytest.raises(EngineError) as e:
            with wp.Tape():
                if way is None:
                    wp.launch(saves, N, [x, f])
                else:
                    with way():
                        wp.launch(saves, N, [x, f])
        assert e.value.diagnostics[0].code == "E209"
