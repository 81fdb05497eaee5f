"""Forms of kernels for launches whose arrays share no memory: who gets them, and what they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cuda import apart, runner
from tests.backend.cuda.emulated import PLACES, place

MANY = 600_003  # threads that fill a device; the emulated one has 8192 at once


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a * x[i] + y[i]


@wp.kernel
def sums(
    w: wp.array(dtype=float),
    x: wp.array2d(dtype=float),
    s: wp.array(dtype=float),
    n: wp.array(dtype=int),
):
    i, j = wp.tid()
    if x[i, j] > 0.0:
        wp.atomic_add(s, 1, w[0] * x[i, j])
        wp.atomic_add(n, 2, j)
    wp.atomic_sub(n, 0, 1)


@wp.kernel
def turned(x: wp.array2d(dtype=wp.vec3), y: wp.array2d(dtype=wp.vec3), c: wp.array(dtype=wp.vec3)):
    i, j = wp.tid()
    y[j, i] = wp.cw_mul(x[i, j], c[0])


@pytest.fixture(params=PLACES)
def forms(request: Any, monkeypatch: Any) -> Iterator[list[tuple[str, int]]]:
    """The forms that kernels took, in order, on a device that is the current one."""
    found: list[tuple[str, int]] = []

    def form(entry: Any, dim: Any, args: bytes, decide: Any = apart._form) -> int:
        found.append((entry.symbol.rpartition("_")[0], decide(entry, dim, args)))
        return found[-1][1]

    monkeypatch.setattr(apart, "_form", form)
    with place(request.param) as there, wp.ScopedDevice(there):
        yield found


def floats(values: Any, **more: Any) -> Any:
    return wp.array(np.asarray(values, np.float32), requires_grad=True, **more)


@pytest.mark.parametrize("n", [1, 1023, MANY])
def test_gradients_of_elements_that_are_the_threads_own(forms: Any, n: int) -> None:
    x, y = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
    a, b, c = floats(x), floats(y), floats(np.zeros(n))
    with wp.Tape() as tape:
        wp.launch(saxpy, dim=n, inputs=[0.5, a, b], outputs=[c])
    assert (c.numpy() == np.float32(0.5) * x + y).all()
    for _ in range(2):  # what is there already is added to
        c.grad.assign(x)
        tape.backward()
    assert (a.grad.numpy() == x).all() and (b.grad.numpy() == 2 * x).all()
    assert {form for _, form in forms} == {apart.WIDE}


def test_launches_whose_arrays_meet(forms: Any) -> None:
    x, n = np.arange(1.0, 13.0, dtype=np.float32), 12
    a, c = floats(x), floats(np.zeros(n))
    with wp.Tape() as tape:
        wp.launch(saxpy, dim=n, inputs=[2.0, a, a], outputs=[c])
    assert (c.numpy() == 3 * x).all()
    tape.backward(grads={c: floats(x)})
    assert (a.grad.numpy() == 3 * x).all()
    assert [form for _, form in forms] == [apart.WIDE, apart.ANY]  # one gradient by two names
    wp.launch(saxpy, dim=n - 1, inputs=[1.0, a[:-1], a[:-1]], outputs=[c[1:]])
    wp.launch(saxpy, dim=6, inputs=[1.0, a[::2], a[::2]], outputs=[c[:6]])
    wp.launch(saxpy, dim=6, inputs=[1.0, a[:6], a[6:]], outputs=[a[6:]])
    wp.launch(saxpy, dim=(6, 1), inputs=[1.0, a[:6], a[:6]], outputs=[c[:6]])
    assert [form for _, form in forms[2:]] == [apart.APART, *[apart.ANY] * 3]
    assert a.numpy().tolist() == [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18]


@pytest.mark.parametrize("shape", [(1, 1), (40, 33), (5000, 8)])
def test_sums_of_all_threads(forms: Any, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).integers(-8, 9, shape).astype(np.float32)
    w, a, s = floats([0.5]), floats(x), floats([7, 1, -0.0])
    n = wp.array(np.array([5, 6, 7], np.int32))
    with wp.Tape() as tape:
        wp.launch(sums, dim=shape, inputs=[w, a], outputs=[s, n])
    columns = np.broadcast_to(np.arange(shape[1]), shape)
    assert s.numpy().tolist() == [7, 1 + x[x > 0].sum() / 2, 0]
    assert n.numpy().tolist() == [5 - x.size, 6, 7 + columns[x > 0].sum()]
    tape.backward(grads={s: floats([9, 2, 9])})
    assert w.grad.numpy().tolist() == [2 * x[x > 0].sum()]
    assert (a.grad.numpy() == (x > 0)).all()
    assert apart.ANY not in {form for _, form in forms}


def test_sums_keep_what_is_no_number_and_the_sign_of_zero(forms: Any) -> None:
    w, s, n = floats([1.0]), floats([0, -0.0, 0]), wp.zeros(3, dtype=int)
    wp.launch(sums, dim=(3, 5), inputs=[w, floats(np.full((3, 5), -1.0))], outputs=[s, n])
    assert np.signbit(s.numpy()).tolist() == [False, True, False]
    values = np.ones((3, 5), np.float32)
    for special in (np.nan, np.inf):
        w.fill_(special)
        wp.launch(sums, dim=(3, 5), inputs=[w, floats(values)], outputs=[s, n])
        assert not np.isfinite(s.numpy()[1])
    assert forms


@pytest.mark.parametrize("shape", [(3, 4), (2500, 8), (7, 5)])
def test_rows_of_vectors(forms: Any, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(2).integers(-8, 9, (*shape, 3)).astype(np.float32)
    a, c = (wp.array(v, dtype=wp.vec3, requires_grad=True) for v in (x, np.array([[1.0, 2, 3]])))
    b = wp.zeros((shape[1], shape[0] + 1), dtype=wp.vec3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(turned, dim=shape, inputs=[a], outputs=[b, c])
    want = np.swapaxes(x * np.float32([1, 2, 3]), 0, 1)
    assert (b.numpy()[:, :-1] == want).all() and not b.numpy()[:, -1].any()
    tape.backward(grads={b: wp.ones(b.shape, dtype=wp.vec3)})
    assert (a.grad.numpy() == np.float32([1, 2, 3])).all()
    assert c.grad.numpy()[0].tolist() == x.sum((0, 1)).tolist()


@wp.kernel
def wave(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i]


@wp.kernel
def doubled(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = x[i] + x[i]


@wp.kernel
def sides(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    if j > 0 and j < x.shape[1] - 1:
        y[i, j] = x[i, j - 1] + x[i, j + 1]


def test_rows_are_for_what_moves_as_rows(forms: Any) -> None:
    x = np.random.default_rng(3).standard_normal(3 * MANY).astype(np.float32)
    a, b = floats(x[:MANY]), floats(np.zeros(MANY))
    c, d = (wp.array(v.reshape(-1, 3), dtype=wp.vec3, requires_grad=True) for v in (x, 0 * x))
    with wp.Tape() as tape:
        wp.launch(wave, dim=MANY, inputs=[a], outputs=[b])
        wp.launch(doubled, dim=MANY, inputs=[c], outputs=[d])
    tape.backward(grads={b: wp.ones_like(b), d: wp.ones_like(d)})
    assert np.allclose(b.numpy(), np.sin(x[:MANY]) * x[:MANY], atol=1e-6)
    want = np.cos(x[:MANY]) * x[:MANY] + np.sin(x[:MANY])
    assert np.allclose(a.grad.numpy(), want, atol=1e-5)
    assert (d.numpy().reshape(-1) == 2 * x).all() and (c.grad.numpy() == 2).all()
    by_kernel = {name.split("_")[0]: form for name, form in forms}
    assert by_kernel == {"wave": apart.WIDE, "doubled": apart.APART}


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (257, 131)])
def test_neighbours_in_a_grid(forms: Any, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(4).integers(-8, 9, shape).astype(np.float32)
    a, b = floats(x), floats(np.zeros(shape))
    with wp.Tape() as tape:
        wp.launch(sides, dim=shape, inputs=[a], outputs=[b])
    tape.backward(grads={b: wp.ones_like(b)})
    want, slope = np.zeros(shape), np.zeros(shape)
    want[:, 1:-1] = x[:, :-2] + x[:, 2:]
    slope[:, :-2] += 1.0 if shape[1] > 2 else 0.0
    slope[:, 2:] += 1.0
    assert (b.numpy() == want).all() and (a.grad.numpy() == slope).all()
    assert {form for _, form in forms} == {apart.APART}
    wp.launch(sides, dim=shape, inputs=[a], outputs=[a])  # one array, in any order of threads
    assert forms[-1][1] == apart.ANY


def test_few_threads_are_not_looked_at(forms: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(runner, "FEW", 100)
    for n in (99, 100):
        a, b, c = (floats(np.ones(n)) for _ in range(3))
        wp.launch(saxpy, dim=n, inputs=[0.5, a, b], outputs=[c])
        assert (c.numpy() == 1.5).all()
    assert len(forms) == 1


@wp.kernel
def spread(
    x: wp.array(dtype=wp.vec3),
    n: int,
    s: wp.array(dtype=wp.vec3),
    t: wp.array(dtype=float),
    u: wp.array(dtype=float),
):
    """Threads mean one element in each turn, but for some that leave some out, or are ahead."""
    i = wp.tid()
    k = int(0)  # noqa: RUF046
    for j in range(n):
        if i % 7 == 3 and j % 2 == 0:
            continue
        wp.atomic_add(s, j, x[i])
        wp.atomic_sub(t, j, x[i][0])
        k += 1
        if x[i][1] > 1.0:
            k += 1
        wp.atomic_add(u, k % n, 1.0)


@pytest.mark.parametrize("count", [1, 31, 64, 1000])
def test_sums_of_warps(forms: Any, count: int) -> None:
    n = 5
    values = np.random.default_rng(count).integers(-3, 4, (count, 3)).astype(np.float32)
    x = wp.array(values, dtype=wp.vec3)
    s, t, u = wp.zeros(n, dtype=wp.vec3), wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
    wp.launch(spread, count, [x, n], [s, t, u])
    sums, counts = np.zeros((n, 3)), np.zeros(n)
    for i, v in enumerate(values):
        k = 0
        for j in range(n):
            if i % 7 == 3 and j % 2 == 0:
                continue
            sums[j] += v
            k += 2 if v[1] > 1.0 else 1
            counts[k % n] += 1
    assert s.numpy().tolist() == sums.tolist()
    assert t.numpy().tolist() == (-sums[:, 0]).tolist()
    assert u.numpy().tolist() == counts.tolist()
