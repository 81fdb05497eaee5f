"""Arguments that share memory: gradients are those of the CPU, or refused where order counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import LaunchError
from engine.ad.threads import Access, collect
from engine.ad.threads.affine import Form, Value
from engine.ad.threads.apart import Numbers
from engine.ad.threads.bounds import Bounds
from engine.frontend import lower_kernel
from tests.backend.cuda.emulated import PLACES, place

T = wp.float64
D = wp.array(dtype=T)
N = 3


@pytest.fixture(params=PLACES)
def gpu(request: pytest.FixtureRequest) -> Iterator[str]:
    with place(request.param) as device:
        yield device.alias


@wp.kernel
def mixed(x: D, out: D):
    i = wp.tid()
    out[i] = wp.sin(x[i]) * x[i]


@wp.kernel
def shifted(x: D, out: D):
    i = wp.tid()
    out[i] = wp.sin(x[i + 1]) * x[i + 1]


@wp.kernel
def gathered(x: D, at: wp.array(dtype=int), out: D):
    i = wp.tid()
    out[i] = wp.sin(x[at[i]]) * x[i]


@wp.kernel
def added(x: D, out: D):
    i = wp.tid()
    wp.atomic_add(out, i % 2, wp.sin(x[i]))


@wp.kernel
def both(x: D, y: D, out: D):
    i = wp.tid()
    out[i] = x[i] * y[i]


@wp.kernel
def columns(x: wp.array2d(dtype=T), out: wp.array2d(dtype=T)):
    i, j = wp.tid()
    out[i, j] = wp.sin(x[i, j]) * x[i, 0]


@wp.kernel
def every_second(x: D, out: D):
    i = wp.tid()
    if i % 2 == 0:
        out[i] = wp.sin(x[i]) * x[i]


@wp.kernel
def in_turn(x: D, out: D, by: int):
    i = wp.tid()
    if i % by == 1:
        out[i] = wp.sin(x[i]) * x[i + 1]


@wp.kernel
def other_halves(x: D, out: D):
    i = wp.tid()
    if i % 2 == 0:
        out[i] = x[i] * x[i]
    elif i % 4 == 1:
        out[i] = wp.sin(x[i])


def dim_of(kernel: Any) -> int:
    return 6 if kernel in (every_second, in_turn, other_halves) else N


def gradient(device: str, kernel: Any, dim: Any, parts: Any, at: Any = None) -> list[Any]:
    """Values and gradients after a launch with parts of one array."""
    values = np.linspace(0.5, 2.0, 24)
    if kernel is columns:
        values = values.reshape(4, 6)
    with wp.ScopedDevice(device):
        a = wp.array(values, dtype=T, requires_grad=True)
        args = [a[p] if isinstance(p, (slice, tuple)) else p(a) for p in parts]
        if at is not None:
            args.insert(1, wp.array(at, dtype=int))
        with wp.Tape() as tape:
            wp.launch(kernel, dim, args)
        weights = np.arange(1.0, values.size + 1).reshape(values.shape)
        tape.backward(grads={a: weights})
        return [a.numpy(), a.grad.numpy()]


MEET = {
    "next": (mixed, [slice(0, 3), slice(1, 4)], None),
    "before": (mixed, [slice(1, 4), slice(0, 3)], None),
    "turned": (mixed, [slice(2, None, -1), slice(0, 3)], None),
    "steps": (mixed, [slice(2, None, -1), slice(0, 6, 2)], None),
    "the second": (both, [slice(6, 9), slice(0, 3), slice(1, 4)], None),
    "gathered": (gathered, [slice(0, 3), slice(1, 4)], [0, 2, 1]),
    "added": (added, [slice(0, 3), slice(1, 4)], None),
    "every second": (every_second, [slice(0, 6), slice(2, 8)], None),
    "every second, turned": (every_second, [slice(4, None, -1), slice(0, 5)], None),
    "in turn": (in_turn, [slice(0, 8), slice(3, 10), lambda a: 3], None),
    "in turn, its neighbour's": (in_turn, [slice(0, 8), slice(4, 11), lambda a: 3], None),
    "other halves": (other_halves, [slice(0, 8), slice(3, 11)], None),
}


@pytest.mark.parametrize("name", MEET)
def test_threads_that_use_what_others_write_are_refused(gpu: str, name: str) -> None:
    kernel, parts, at = MEET[name]
    with pytest.raises(LaunchError, match="one thread uses a value that another one writes"):
        gradient(gpu, kernel, dim_of(kernel), parts, at)


def test_a_launch_of_one_thread_has_an_order(gpu: str) -> None:
    parts = [slice(0, 3), slice(1, 4)]
    found, right = gradient(gpu, mixed, 1, parts), gradient("cpu", mixed, 1, parts)
    np.testing.assert_allclose(found, right, rtol=1e-12)


def test_what_is_known_of_accesses_that_are_gone_is_not_believed_of_others() -> None:
    """New ones may lie where these lay."""
    span = next(iter(collect(lower_kernel(mixed.func)).accesses)).span
    numbers = Numbers(Bounds((4,), {}))
    for k in range(200):
        index = (Value(Form.of(k)),)
        assert numbers.forms(Access("x", "store", index, (), span)) == [Form.of(k)]


APART = {
    "one's own": (shifted, N, [slice(0, 4), slice(1, 5)]),
    "odd and even": (mixed, N, [slice(0, 6, 2), slice(1, 7, 2)]),
    "what is not touched": (mixed, N, [slice(0, 6), slice(3, 9)]),
    "inputs alone": (both, N, [slice(0, 3), slice(1, 4), slice(6, 9)]),
    "the same": (mixed, N, [slice(0, 3), slice(0, 3)]),
    "every second": (every_second, 6, [slice(0, 6), slice(1, 7)]),
    "in turn": (in_turn, 6, [slice(0, 8), slice(2, 8), lambda a: 3]),
    "columns": (columns, (4, 3), [np.s_[:, 0:3], np.s_[:, 3:6]]),
}


@pytest.mark.parametrize("name", APART)
def test_gradients_of_threads_that_keep_apart_are_the_cpus(gpu: str, name: str) -> None:
    kernel, dim, parts = APART[name]
    for _ in range(2):  # the order of an emulated GPU turns round
        found, right = gradient(gpu, kernel, dim, parts), gradient("cpu", kernel, dim, parts)
        np.testing.assert_allclose(found, right, rtol=1e-12)


@wp.kernel
def linear(x: D, out: D):
    i = wp.tid()
    out[i] = T(2.0) * x[i] - x[0]


FIRST_AND_STEP = [(0, 1), (1, 1), (3, 1), (0, 2), (1, 2), (5, -2), (4, -2), (2, -1), (5, -1)]
PARTS = [slice(f, f + N * s if f + N * s >= 0 else None, s) for f, s in FIRST_AND_STEP]


def test_all_pairs_of_parts_of_one_array(gpu: str) -> None:
    """Refused where threads meet, by what they touch; computed where it is proven that not."""
    computed = 0
    for x in PARTS:
        for out in PARTS:
            reads, writes = np.arange(24)[x], np.arange(24)[out]
            met = any(w in (reads[i], reads[0]) for i in range(N) for j, w in enumerate(writes)
                      if i != j)  # fmt: skip
            try:
                found = gradient(gpu, linear, N, [x, out])
            except LaunchError as e:
                assert "E407" in str(e), (x, out)
                continue
            assert not met, (x, out)
            np.testing.assert_allclose(found, gradient("cpu", linear, N, [x, out]), rtol=1e-12)
            computed += 1
    assert computed > 12, computed


@wp.kernel
def scattered_beside(at: wp.array(dtype=int), x: D, y: D):
    i = wp.tid()
    y[at[i]] = wp.sin(x[i])
    y[i] += x[i]


@wp.kernel
def computed_beside(x: D, y: D):
    i = wp.tid()
    y[((i - 2) // 2 + 2) % 4] = wp.sin(x[i])
    y[i] += x[i]


@wp.kernel
def scattered(at: wp.array(dtype=int), x: D, y: D):
    i = wp.tid()
    y[at[i]] = wp.sin(x[i])
    y[at[i]] += x[i]


@wp.kernel
def beside_one(x: D, y: D):
    i = wp.tid()
    y[0] = x[i]
    y[i + 1] = wp.sin(x[i])


def pulled(device: str, kernel: Any, *args: Any) -> Any:
    with wp.ScopedDevice(device):
        arrays = [wp.array(a, requires_grad=a.dtype == np.float64) for a in args]
        with wp.Tape() as tape:
            wp.launch(kernel, N, arrays)
        tape.backward(grads={arrays[-1]: np.arange(1.0, 1.0 + arrays[-1].size)})
        return arrays[-2].grad.numpy()


def test_what_is_not_known_beside_what_is(gpu: str) -> None:
    """An index of which nothing is known is that of a permutation, which others may well meet."""
    x, y, at = np.linspace(0.5, 1.0, N), np.zeros(N + 1), np.array([2, 0, 1], np.int32)
    for kernel, args in ((scattered_beside, (at, x, y)), (computed_beside, (x, y))):
        with pytest.raises(LaunchError, match="one thread uses a value that another one writes"):
            pulled(gpu, kernel, *args)
    found = [pulled(d, scattered, at, x, y) for d in (gpu, "cpu")]
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_an_array_that_others_overlap_is_looked_at_by_itself(gpu: str) -> None:
    for x in (slice(2, 8), slice(4, 12)):  # the other one does not meet what is touched
        with pytest.raises(LaunchError, match="E407"):
            gradient(gpu, beside_one, N, [x, slice(8, 14)])
