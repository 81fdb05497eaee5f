"""Minima and maxima of recorded launches in parts: the gradient is the winner's, as in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import dealing, runner
from tests.parts import _in_parts, cut

pytestmark = [
    pytest.mark.whole,
    # `tests.backend.cuda.test_winners` has those of GPUs.
    pytest.mark.host("launches in parts are the CPU's"),
]
F = wp.array(dtype=float)
V = wp.array(dtype=wp.vec3)
N = 600


@wp.kernel
def highest(x: F, y: F):
    i = wp.tid()
    wp.atomic_max(y, 0, x[i] * x[i])


@wp.kernel
def bins(x: F, at: wp.array(dtype=int), low: F, high: F):
    i = wp.tid()
    wp.atomic_min(low, at[i], 2.0 * x[i])
    wp.atomic_max(high, at[i], 3.0 * x[i])


@wp.kernel
def several_each(x: F, y: F):
    i = wp.tid()
    for k in range(i % 4):
        if x[i] > 0.2:
            wp.atomic_min(y, (i + k) % 5, x[i] * float(k + 1))


@wp.kernel
def corners(p: V, low: V, high: V):
    i = wp.tid()
    wp.atomic_min(low, 0, p[i])
    wp.atomic_max(high, 0, p[i])


@wp.kernel
def with_sum(x: F, w: F, y: F, total: F, count: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_max(y, i % 3, x[i] * w[0])
    wp.atomic_add(total, 0, x[i])
    wp.atomic_max(count, 0, i % 11)


@wp.kernel
def in_place(x: F, y: F):
    i = wp.tid()
    x[i] = x[i] * x[i]
    wp.atomic_max(y, 0, x[i])


@wp.kernel
def of_two_names(x: F, y: F, z: F):
    i = wp.tid()
    if i % 2 == 0:
        wp.atomic_max(y, i % 3, x[i])
    else:
        wp.atomic_max(z, i % 3, x[i])


@wp.kernel
def constant(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.5:
        wp.atomic_max(y, 0, 0.25)


def values(seed: int, steps: int) -> np.ndarray[Any, Any]:
    """Numbers of which sums and squares are exact; with few steps there are many ties."""
    x = np.random.default_rng(seed).uniform(-1, 1, N)
    return (np.round(x * steps) / steps).astype(np.float32)


def arrays(kernel: Any, x: np.ndarray[Any, Any], start: float) -> list[Any]:
    def new(a: Any, dtype: Any = float) -> Any:
        return wp.array(a, dtype=dtype, requires_grad=dtype is not int)

    filled = np.full(5, start, np.float32)
    if kernel is bins:
        return [new(x), new(np.arange(N) * 7 % 5, int), new(filled), new(filled)]
    if kernel is corners:
        return [
            new(x.reshape(-1, 3), wp.vec3),
            *(new([(start, 0.1, start)], wp.vec3) for _ in "ab"),
        ]
    if kernel is with_sum:
        return [new(x), new([0.5]), new(filled), new([0.0]), new([0], int)]
    if kernel is of_two_names:
        both = new(filled)
        return [new(x), both, both]
    return [new(x), new(filled)]


def gradients(kernel: Any, x: np.ndarray[Any, Any], start: float, seed: int) -> list[bytes]:
    """What the arrays and their gradients hold after the tape, two backward passes of it."""
    args = arrays(kernel, x, start)
    dim = N // 3 if kernel is corners else N
    with wp.Tape() as tape:
        wp.launch(kernel, dim, args)
    out = [a.numpy().tobytes() for a in args]
    rng = np.random.default_rng(seed)
    cotangents = {
        a: rng.integers(1, 9, a.numpy().shape) for a in args[1:] if a.requires_grad
    }  # fmt: skip
    for _ in range(2):
        tape.zero()
        given = {a: wp.array(c.astype(np.float32), dtype=a.dtype) for a, c in cotangents.items()}
        tape.backward(grads=given)
        out += [a.grad.numpy().tobytes() for a in args if a.requires_grad]
    return out


KERNELS = [highest, bins, several_each, corners, with_sum, in_place, of_two_names, constant]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("start", [-5.0, 0.1, 5.0, np.nan])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_the_gradient_is_that_of_one_thread_after_another(
    kernel: Any, start: float, threads: int
) -> None:
    for seed, steps in ((1, 1024), (2, 8)):
        x = values(seed, steps)
        whole = gradients(kernel, x, start, seed)
        with cut(threads) as seen:
            parts = gradients(kernel, x, start, seed)
        assert parts == whole
        assert {name for name, count in seen if count > 1} == {
            f"{kernel.key}_recorded", f"{kernel.key}_adjoint",
        }  # fmt: skip


@pytest.mark.parametrize("kernel", [highest, bins, corners], ids=lambda k: k.key)
def test_gradients_that_are_not_dealt_out_are_seen(
    kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = values(3, 1024)
    whole = gradients(kernel, x, 0.1, 3)
    monkeypatch.setattr(dealing, "deal", lambda *args: [])
    monkeypatch.setattr(runner, "_in_parts", _in_parts)  # `--parts` would see it first
    with cut(1):
        assert gradients(kernel, x, 0.1, 3) != whole


# ---- gradients that are more than the winners'


@wp.func
def raised(m: F, i: int, v: float):
    wp.atomic_max(m, i, v)


@wp.func_grad(raised)
def adj_raised(m: F, i: int, v: float):
    wp.adjoint[v] += wp.adjoint[m][i]
    wp.adjoint[m][i] += 1.0


@wp.func
def hook(m: F, i: int, v: float):
    return v


@wp.func_grad(hook)
def adj_hook(m: F, i: int, v: float, ret: float):
    wp.adjoint[v] += ret + 0.5 * wp.adjoint[m][i]


@wp.func
def taking(m: F, i: int, v: float):
    wp.atomic_max(m, i, v)


@wp.func_grad(taking)
def adj_taking(m: F, i: int, v: float):
    if m[i] == v:
        wp.adjoint[v] += wp.adjoint[m][i]
        wp.adjoint[m][i] = 0.0


@wp.kernel
def to_all(x: F, m: F, low: F):
    i = wp.tid()
    raised(m, i % 3, x[i])
    wp.atomic_min(low, 0, x[i])


@wp.kernel
def hooked(x: F, m: F, y: F):
    i = wp.tid()
    wp.atomic_max(m, i % 3, x[i])
    y[i] = hook(m, i % 3, x[i])


@wp.kernel
def taken(x: F, m: F, low: F):
    i = wp.tid()
    taking(m, i % 3, x[i])
    wp.atomic_min(low, 0, x[i])


@wp.kernel
def untouched(x: F, m: F, low: F):
    i = wp.tid()
    wp.atomic_max(m, i % 3, 2.0)
    wp.atomic_min(low, 0, x[i])


def gradients_of(kernel: Any, seeds: list[Any], changed: float = 1.0) -> list[bytes]:
    """All gradients after a backward pass. changed: of the input, in the meantime."""
    x = wp.array(values(4, 8), dtype=float, requires_grad=True)
    args = [wp.zeros(N if kernel is hooked and k else 3, dtype=float, requires_grad=True)
            for k in range(2)]  # fmt: skip
    for a, seed in zip(args, seeds, strict=True):
        a.grad = seed(a) if callable(seed) else args[seed].grad
    with wp.Tape() as tape:
        wp.launch(kernel, N, [x, *args])
    x.assign(x.numpy() * np.float32(changed))
    tape.backward()
    return [a.grad.numpy().tobytes() for a in (x, *args)]


KEPT: list[Any] = []


def ones(a: Any) -> Any:
    return wp.ones(a.shape, dtype=float)


def one_for_all(a: Any) -> Any:
    """Elements that are one and the same."""
    KEPT.append(wp.ones(1, dtype=float))
    return wp.array(ptr=KEPT[-1].ptr, shape=a.shape, strides=(0,), dtype=float)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("kernel", [to_all, hooked, taken, untouched], ids=lambda k: k.key)
def test_handwritten_gradients_of_what_is_replaced(kernel: Any, threads: int) -> None:
    whole = gradients_of(kernel, [ones, ones])
    with cut(threads):
        assert gradients_of(kernel, [ones, ones]) == whole


@wp.kernel
def two(x: F, a: F, b: F):
    i = wp.tid()
    wp.atomic_max(a, i % 3, x[i])
    wp.atomic_max(b, i % 3, 2.0 * x[i])


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_gradients_in_one_memory(threads: int) -> None:
    def total(seeds: list[Any]) -> float:
        return float(np.frombuffer(gradients_of(two, seeds)[0], np.float32).sum())

    for seeds in ([ones, 0], [one_for_all, ones]):
        whole = total(seeds)
        with cut(threads) as seen:
            assert total(seeds) == whole
        assert ("two_recorded", 64) in seen


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_what_no_part_takes_is_not_lost(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "overwrites", "present")
    whole = gradients_of(two, [ones, ones], changed=0.0)
    with cut(threads):
        assert gradients_of(two, [ones, ones], changed=0.0) == whole
