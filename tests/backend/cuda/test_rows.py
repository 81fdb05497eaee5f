"""CUDA threads that run four threads of a launch in a row: they do what four CUDA threads do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cuda import apart, runner
from engine.compile.cuda.rows import can_add_several
from tests.backend.cuda.device import EmulatedCuda
from tests.backend.cuda.emulated import PLACES, place

F, F2 = wp.array(dtype=float), wp.array2d(dtype=float)


@wp.kernel
def wave(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * wp.exp(-x[i] * x[i]) + wp.sqrt(x[i] * x[i] + 1.0)


@wp.kernel
def guarded(x: F, n: int, y: F):
    i = wp.tid()
    if i >= n:
        return
    y[i] = x[i] * x[i] + y[i]


@wp.kernel
def between(x: F, low: int, high: int, y: F):
    i = wp.tid()
    if i > low and i <= high:
        y[i] = wp.sin(x[i])


@wp.kernel
def alone(x: F, n: int, y: F):
    i = wp.tid()
    if i == n:
        y[i] = 3.0 * x[i]


@wp.kernel
def inner(u: F2, out: F2):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + 0.1 * (around - 4.0 * u[i, j])


@wp.kernel
def from_one_row(x: F2, y: F2, z: F2):
    i, j = wp.tid()
    z[i + 1, j] = wp.cos(x[0, j]) * y[i + 1, j]


@wp.kernel
def in_place(x: F, y: F):
    i = wp.tid()
    x[i] = wp.sin(x[i]) + 0.5
    y[i] += x[i] * x[i]
    x[i] = x[i] * 2.0


@wp.kernel
def doubles(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) - x[i]


@wp.kernel
def fours(x: wp.array(dtype=wp.vec4), y: wp.array(dtype=wp.vec4)):
    i = wp.tid()
    v = x[i]
    v[1] = wp.log(v[0] * v[0] + 1.0)
    y[i] = v


@wp.kernel
def components(x: wp.array(dtype=wp.vec2), y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i][1] = wp.sin(x[i][0])


@wp.kernel
def chosen(x: F, y: F):
    """What one thread stores depends on what it read: no row may be written there."""
    i = wp.tid()
    if x[i] > 0.0:
        y[i] = x[i] * 2.0


@wp.kernel
def numbered(x: wp.array3d(dtype=float), y: wp.array3d(dtype=float)):
    i, j, k = wp.tid()
    y[i, j, k] = wp.sin(x[i, j, k]) + float(i * 100 + j * 10 + k)


@wp.kernel
def looked_up(x: F, table: F, y: F):
    """An array that is not of rows, beside functions with branches."""
    i = wp.tid()
    y[i] = wp.sin(x[i]) * table[i % 3]


@wp.kernel
def neighbours(x: F, y: F):
    i = wp.tid()
    if i > 0 and i < x.shape[0] - 1:
        y[i] = x[i - 1] * x[i] + x[i + 1]


@wp.kernel
def far(x: F, y: F):
    i = wp.tid()
    if i >= 6 and i < x.shape[0] - 9:
        y[i] = x[i - 6] - x[i + 9]


@wp.kernel
def astride(x: F, y: F):
    """No element between is left out."""
    i = wp.tid()
    if i >= 3 and i < x.shape[0] - 5:
        y[i] = x[i - 3] - x[i + 5] * x[i + 1]


@wp.kernel
def beyond(x: F, y: F):
    """Only what lies behind the threads' own elements."""
    i = wp.tid()
    if i < x.shape[0] - 3:
        y[i] = x[i + 2] * 0.5 + x[i + 3]


@wp.kernel
def corners(x: F2, y: F2):
    i, j = wp.tid()
    if i > 1 and j > 0 and i < x.shape[0] - 1 and j < x.shape[1] - 2:
        y[i, j] = wp.sin(x[i - 2, j - 1]) * x[i + 1, j + 2] + x[i, j]


@wp.kernel
def boxes(x: wp.array3d(dtype=float), y: wp.array3d(dtype=float)):
    i, j, k = wp.tid()
    if i > 0 and i < x.shape[0] - 1 and j > 0 and j < x.shape[1] - 1:
        if k > 0 and k < x.shape[2] - 1:
            y[i, j, k] = (
                x[i - 1, j, k]
                + x[i + 1, j, k]
                + x[i, j - 1, k]
                + x[i, j + 1, k]
                + x[i, j, k - 1] * x[i, j, k + 1]
            )


@wp.kernel
def onward(x: F2, y: F2):
    """Without guards: all rows of a warp are whole, and lines end in the middle of it."""
    i, j = wp.tid()
    y[i, j] = x[i, j] * x[i, j + 1] + x[i, j + 2]


@wp.kernel
def inside(x: F2, y: F2):
    i, j = wp.tid()
    if j > 0 and j + 1 < x.shape[1]:
        y[i, j] = x[i, j - 1] * x[i, j] - x[i, j + 1]


@wp.kernel
def far_in_a_box(x: wp.array3d(dtype=float), y: wp.array3d(dtype=float)):
    """The box around what is added to has too many numbers."""
    i, j, k = wp.tid()
    if i > 7 and j > 7 and i < x.shape[0] - 8 and j < x.shape[1] - 8:
        y[i, j, k] = x[i - 8, j, k] + x[i + 8, j, k] + x[i, j - 8, k] * x[i, j + 8, k]


@wp.kernel
def turned(x: F2, y: F2):
    """Two axes that have changed places: no rows."""
    i, j = wp.tid()
    if i < x.shape[1] and j < x.shape[0]:
        y[i, j] = x[j, i] + x[j, i] * x[i, j]


@wp.kernel
def one_row(x: F2, y: F2):
    """All threads of a column add to one element: the last axis is not their own."""
    i, j = wp.tid()
    wp.atomic_add(y, 0, j, x[i, j])
    wp.atomic_sub(y, 1, j, x[i, j] * x[i, j])


@wp.kernel
def given(x: F, y: F):
    """Adds to neighbours, forward."""
    i = wp.tid()
    if i < x.shape[0] - 1:
        wp.atomic_add(y, i, x[i] * 0.25)
        wp.atomic_sub(y, i + 1, x[i] * x[i])


@wp.kernel
def given_doubles(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    if i < x.shape[0] - 1:
        wp.atomic_add(y, i + 1, x[i])


def some(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(dtype)


def flat(kernel: Any, *numbers: Any) -> Callable[[int], tuple[Any, Any, list[Any], list[Any]]]:
    """A case of one axis."""

    def make(n: int) -> tuple[Any, Any, list[Any], list[Any]]:
        given = [k(n) if callable(k) else k for k in numbers]
        return kernel, n, [some(n), *given], [some(n + 1)[:n]]

    make.__name__ = kernel.key
    return make


def grid(kernel: Any, inputs: int = 1, extra: int = 0, axes: int = 2) -> Callable[[int], Any]:
    """A case of some axes."""

    def make(n: int) -> Any:
        inner = (*[8] * (axes - 2), 64 if n % 2 == 0 else 63)
        shape = (n // int(np.prod(inner)) + 3, *inner)
        lies = (shape[0] + extra, *shape[1:])
        return kernel, shape, [some(*lies) for _ in range(inputs)], [0 * some(*lies)]

    make.__name__ = kernel.key
    return make


def lines(kernel: Any, last: int, more: int = 0) -> Callable[[int], Any]:
    """A case of two axes, with arrays that may be wider than the grid."""

    def make(n: int) -> Any:
        shape = (n // last + 2, last)
        return kernel, shape, [some(shape[0], last + more)], [some(shape[0], last + more)]

    make.__name__ = f"{kernel.key}_{last}"
    return make


def vectors(kernel: Any, *size: int, dtype: Any = np.float32) -> Callable[[int], Any]:
    def make(n: int) -> Any:
        return kernel, n, [some(n, *size, dtype=dtype)], [some(n, *size, dtype=dtype)]

    make.__name__ = kernel.key
    return make


# Each with whether some of its threads run in rows, forward and backward.
CASES: list[tuple[Callable[[int], Any], bool, bool]] = [
    (flat(wave), True, True),
    (flat(guarded, lambda n: n - 5), True, True),
    (flat(between, lambda n: 3, lambda n: n - 7), True, True),
    (flat(between, lambda n: -9, lambda n: n + 9), True, True),
    (flat(between, lambda n: 70, lambda n: 12), True, True),
    (flat(alone, lambda n: n // 2), True, True),
    (grid(inner), True, True),
    (grid(from_one_row, inputs=2, extra=1), True, True),
    (flat(in_place), False, False),
    (vectors(doubles, dtype=np.float64), True, True),
    (vectors(fours, 4), True, True),
    (vectors(components, 2), True, True),
    (flat(chosen), False, False),
    (grid(numbered, axes=3), True, True),
    (flat(looked_up, lambda n: some(3)), False, False),
    (flat(neighbours), True, True),
    (flat(far), True, False),
    (flat(astride), True, True),
    (flat(beyond), True, True),
    (grid(corners), False, False),
    (grid(boxes, axes=3), True, True),
    (grid(turned), True, False),
    (lines(onward, 8, 4), True, True),
    (lines(onward, 12, 2), False, False),  # lines do not begin at 16 bytes
    (lines(onward, 512, 4), True, True),
    (lines(inside, 256), True, True),
    (lines(inside, 1024), True, True),
    (grid(far_in_a_box, axes=3), True, False),
    (grid(one_row), True, True),
    (flat(given), True, True),
    (vectors(given_doubles, dtype=np.float64), True, True),
]


@pytest.fixture(params=PLACES)
def there(request: Any) -> Iterator[Any]:
    with place(request.param) as found:
        yield found


def values_of(case: Any, n: int, device: Any) -> list[Any]:
    """Results and gradients, with a cotangent that differs from element to element."""
    kernel, dim, inputs, outputs = case(n)
    kinds = [p.type.dtype if hasattr(p.type, "dtype") else None for p in kernel.adj.args]
    with wp.ScopedDevice(device):
        made = [
            wp.array(v, dtype=kind, requires_grad=True) if isinstance(v, np.ndarray) else v
            for v, kind in zip([*inputs, *outputs], kinds, strict=True)
        ]
        with wp.Tape() as tape:
            wp.launch(kernel, dim, made)
        results = [a.numpy().copy() for a in made if isinstance(a, wp.array)]
        out = made[-1]
        seed = np.cos(np.arange(out.numpy().size)).reshape(out.numpy().shape)
        tape.backward(grads={out: wp.array(seed.astype(out.numpy().dtype), dtype=out.dtype)})
        return results + [a.grad.numpy() for a in made if isinstance(a, wp.array)]


def enough(n: int, device: Any) -> int:
    """Threads run in rows where they fill a device; an emulated one has 8192 at once."""
    return n if n < 100 or isinstance(device.backend, EmulatedCuda) else n * 20


@pytest.mark.parametrize("n", [1, 4, 7, 30_000, 30_001, 99_999])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_the_same_as_on_the_cpu(
    case: Any, n: int, there: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, *_ = case
    if n < 100:  # rows that are not whole
        monkeypatch.setattr(runner, "is_many", lambda count, at_once: True)
    n = enough(n, there)
    found, expected = values_of(make, n, there), values_of(make, n, "cpu")
    assert len(found) == len(expected) >= 4
    for a, b in zip(found, expected, strict=True):
        # What many threads add up has another order.
        summed = make.__name__ in ("looked_up", "from_one_row", "one_row")
        close, least = (1e-4, 1e-5 + 1e-7 * n) if summed else (2e-6, 2e-6)
        np.testing.assert_allclose(a, b, rtol=close, atol=least)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_which_kernels_run_so(case: Any, there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make, forward, backward = case
    if not can_add_several(there.backend.arch):
        pytest.skip("a GPU that does not add several floats at once")
    taken: dict[bool, int] = {}
    rows: list[int] = []

    def is_many(count: int, at_once: int, decide: Any = runner.is_many) -> bool:
        rows.append(decide(count, at_once))
        return bool(rows[-1])

    monkeypatch.setattr(runner, "is_many", is_many)

    def form(entry: Any, dim: Any, args: bytes) -> int:
        taken[entry.code.is_adjoint] = apart._form(entry, dim, args)
        return taken[entry.code.is_adjoint]

    monkeypatch.setattr(apart, "form_of", form)  # which knows launches of other tests
    values_of(make, enough(30_000, there), there)
    assert [taken[k] == apart.WIDE for k in (False, True)] == [forward, backward]
    assert rows == [True] * (forward + backward)
