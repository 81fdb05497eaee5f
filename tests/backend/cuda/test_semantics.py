"""A real or emulated GPU agrees with the CPU: numbers, grids, errors, copies, tapes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.backend.cuda.emulated import PLACES, emulated, place
from tests.backend.cuda.fake_cupy import FakeCupy

FLOATS = (wp.float16, wp.float32, wp.float64)


@pytest.fixture(params=PLACES)
def there(request: pytest.FixtureRequest) -> Iterator[Any]:
    with place(request.param) as found, wp.ScopedDevice(found):
        yield found


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def pair(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Two GPUs; one and itself where there is one."""
    if request.param == "emulated":
        with emulated(FakeCupy(count=2)) as found:
            yield found
    else:
        with place("cuda") as one:
            yield (one, wp.get_cuda_devices()[-1])


def both(there: Any, work: Callable[[], list[Any]]) -> Iterator[tuple[Any, Any]]:
    """What some work gives on the device, beside what it gives on the CPU."""
    found = work()
    with wp.ScopedDevice("cpu"):
        expected = work()
    return zip([a.numpy() for a in found], [a.numpy() for a in expected], strict=True)


def code_of(e: pytest.ExceptionInfo[wp.LaunchError]) -> str:
    return e.value.diagnostics[0].code


# ---- numbers


@wp.kernel
def drawn(seed: int, whole: wp.array2d(dtype=wp.uint32), real: wp.array2d(dtype=float)):
    i = wp.tid()
    s = wp.rand_init(seed, i)
    whole[i, 0] = s
    whole[i, 1] = wp.randu(s)
    whole[i, 2] = wp.uint32(wp.randi(s, -50, 1000) + 50)
    whole[i, 3] = wp.randu(s, wp.uint32(10), wp.uint32(20))
    real[i, 0] = wp.randf(s)
    real[i, 1] = wp.randf(s, -3.0, 8.0)
    c = wp.sample_unit_cube(s)
    real[i, 2] = c[0] + c[1] * c[2]
    whole[i, 4] = s
    real[i, 3] = wp.randn(s)


def test_random_numbers_are_the_same(there: Any) -> None:
    def work() -> list[Any]:
        whole = wp.zeros((5000, 5), dtype=wp.uint32)
        real = wp.zeros((5000, 4), dtype=float)
        wp.launch(drawn, dim=5000, inputs=[42, whole, real])
        return [whole, real]

    (w, v), (r, q) = both(there, work)
    np.testing.assert_array_equal(w, v)
    np.testing.assert_array_equal(r[:, :3], q[:, :3])
    np.testing.assert_allclose(r[:, 3], q[:, 3], rtol=4e-6, atol=1e-6)  # a logarithm, a cosine


@wp.kernel
def whole_numbers(a: wp.array(dtype=wp.int32), b: wp.array(dtype=wp.int32), out: Any):
    i = wp.tid()
    x = a[i]
    y = b[i]
    out[i, 0] = x // y
    out[i, 1] = x % y
    out[i, 2] = x * y + x - y
    out[i, 3] = x >> (y & 31)
    out[i, 4] = x << (y & 31)
    out[i, 5] = int(wp.uint8(x)) + int(wp.int16(y))
    out[i, 6] = wp.min(x, y) ^ wp.max(x, y)
    out[i, 7] = int(wp.float32(x))
    out[i, 8] = -x
    out[i, 9] = wp.abs(y)


def test_whole_numbers_wrap_and_divide_as_on_the_cpu(there: Any) -> None:
    ends = np.array([0, 1, -1, 2, -7, 7, 2**31 - 1, -(2**31), 65536, -32769], np.int32)
    a, b = (g.ravel() for g in np.meshgrid(ends, ends))
    random = np.random.default_rng(3).integers(-(2**31), 2**31, (2, 500)).astype(np.int32)
    a, b = np.append(a, random[0]), np.append(b, random[1])

    def work() -> list[Any]:
        out = wp.zeros((len(a), 10), dtype=wp.int32)
        wp.launch(whole_numbers, dim=len(a), inputs=[wp.array(a), wp.array(b), out])
        return [out]

    for found, expected in both(there, work):
        np.testing.assert_array_equal(found, expected)


def rounded(T: Any) -> Any:
    @wp.kernel
    def rounded(x: wp.array(dtype=T), y: wp.array(dtype=T), s: wp.array(dtype=T)):
        i = wp.tid()
        v = x[i] * x[i] + T(0.5)
        y[i] = v / (x[i] + T(3.0)) - wp.sqrt(v)
        wp.atomic_add(s, i % 2, x[i])

    return rounded


@pytest.mark.parametrize("T", FLOATS)
def test_floats_of_every_size(there: Any, T: Any) -> None:
    """No product and sum are one operation; sums of few digits are exact in any order."""
    data = np.random.default_rng(1).integers(-8, 9, 64) / 8

    def work() -> list[Any]:
        x = wp.array(data, dtype=T, requires_grad=True)
        y, s = (wp.zeros(n, dtype=T, requires_grad=True) for n in (64, 2))
        with wp.Tape() as tape:
            wp.launch(rounded(T), dim=64, inputs=[x], outputs=[y, s])
        tape.backward(grads={y: wp.ones_like(y), s: wp.ones_like(s)})
        return [y, s, x.grad]

    (y, v), (s, t), (g, h) = both(there, work)
    np.testing.assert_array_equal(y, v)
    np.testing.assert_array_equal(s, t)
    eps = float(np.finfo(g.dtype).eps)
    np.testing.assert_allclose(g, h, rtol=8 * eps, atol=8 * eps)


@wp.kernel
def inverted(
    a: wp.array(dtype=wp.mat33d), x: wp.array(dtype=wp.vec3d), y: wp.array(dtype=wp.vec3d)
):
    i = wp.tid()
    m = a[i] * wp.transpose(a[i]) + wp.identity(n=3, dtype=wp.float64)
    y[i] = wp.inverse(m) * x[i] * wp.determinant(m) + wp.cross(x[i], m[1])


def test_matrices(there: Any) -> None:
    rng = np.random.default_rng(2)
    data, vectors = rng.normal(size=(20, 3, 3)), rng.normal(size=(20, 3))

    def work() -> list[Any]:
        a = wp.array(data, dtype=wp.mat33d, requires_grad=True)
        x = wp.array(vectors, dtype=wp.vec3d, requires_grad=True)
        y = wp.zeros(20, dtype=wp.vec3d, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(inverted, dim=20, inputs=[a, x], outputs=[y])
        tape.backward(grads={y: wp.ones_like(y)})
        return [y, a.grad, x.grad]

    for found, expected in both(there, work):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)


# ---- grids


@wp.kernel
def counted(n: wp.array(dtype=int), last: wp.array(dtype=int)):
    i, j = wp.tid()
    if j % 65536 == 65535:
        wp.atomic_add(n, i % 64, 1)
    if i == last[0] and j == last[1]:
        last[2] = 1


@pytest.mark.gpu
def test_more_threads_than_32_bits_count() -> None:
    """2^32 + 2^17 threads: each row is there, and the last thread, too."""
    with place("cuda") as device, wp.ScopedDevice(device):
        rows, columns = (1 << 15) + 1, 1 << 17
        n, last = wp.zeros(64, dtype=int), wp.array([rows - 1, columns - 1, 0], dtype=int)
        wp.launch(counted, dim=(rows, columns), inputs=[n, last])
        assert n.numpy().sum() == 2 * rows and last.numpy()[2] == 1


@wp.kernel
def deep(x: wp.array(dtype=int)):
    i, j, k, m = wp.tid()
    wp.atomic_add(x, 0, ((i * 3 + j) * 4 + k) * 5 + m)


def test_grids_of_any_shape(there: Any) -> None:
    x = wp.zeros(1, dtype=int)
    wp.launch(deep, dim=(2, 3, 4, 5), inputs=[x])
    assert x.list() == [119 * 60]
    for dim in ((0, 3, 4, 5), (2, 3, 4, 0)):
        wp.launch(deep, dim=dim, inputs=[x])
    assert x.list() == [119 * 60]


# ---- errors and messages


@wp.kernel
def limited(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.expect_eq(x[i] < 5.0, True)
    y[i] = x[i]


@wp.kernel
def chatty(x: wp.array(dtype=int)):
    i = wp.tid()
    if i % 97 == 0:
        wp.printf("thread %d of %d\n", i, x[0])


def test_errors_are_of_the_launch_that_caused_them(there: Any) -> None:
    good, bad = (wp.array(v, dtype=float) for v in ([1.0, 2.0], [1.0, 9.0]))
    y = wp.zeros(2, dtype=float)
    wp.launch(limited, dim=2, inputs=[good, y])
    with pytest.raises(wp.LaunchError) as e:
        wp.launch(limited, dim=2, inputs=[bad, y])
    assert code_of(e) == "E210"
    wp.launch(limited, dim=2, inputs=[good, y])  # the device goes on
    assert y.list() == [1.0, 2.0]


def test_messages_of_many_threads_come_in_their_order(
    there: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    x = wp.array([7], dtype=int)
    wp.launch(chatty, dim=20000, inputs=[x])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"thread {i} of 7" for i in range(0, 20000, 97)]


# ---- copies


def test_copies_that_overlap(there: Any) -> None:
    later, earlier = slice(1, None), slice(None, -1)
    back, whole = slice(None, None, -1), slice(None)
    apart, close = slice(0, 6, 2), slice(1, 4)
    for to, of in ((later, earlier), (earlier, later), (back, whole), (apart, close)):

        def work(to: Any = to, of: Any = of) -> list[Any]:
            x = wp.array(np.arange(300001.0), dtype=float)
            wp.copy(x[to], x[of])
            return [x]

        for found, expected in both(there, work):
            np.testing.assert_array_equal(found, expected, err_msg=f"{to} {of}")


def test_copies_between_devices(pair: Any) -> None:
    """Packed and strided ones, in both directions, with their gradients."""
    one, two = pair
    data = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    for source, target in ((one, two), ("cpu", two), (one, "cpu")):
        x = wp.array(data, dtype=float, device=source, requires_grad=True)
        y = wp.zeros((2, 3), dtype=float, device=target, requires_grad=True)
        with wp.Tape() as tape:
            wp.copy(y, x[::2, ::-2])
        np.testing.assert_array_equal(y.numpy(), data[::2, ::-2])
        tape.backward(grads={y: wp.full((2, 3), 2.0, dtype=float, device=target)})
        expected = np.zeros_like(data)
        expected[::2, ::-2] = 2.0
        np.testing.assert_array_equal(x.grad.numpy(), expected)
        z = x.to(target)
        z[1:3].assign(wp.array(data[:2], dtype=float, device=source))
        np.testing.assert_array_equal(z.numpy()[1:3], data[:2])


# ---- tapes


@wp.kernel
def squared(x: wp.array(dtype=wp.float64), s: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(s, i % 3, x[i] * x[i])


@wp.kernel
def grown(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = x[i] * x[i] * wp.float64(0.5) + wp.float64(1.0)


def test_several_tapes(there: Any) -> None:
    """Of the same arrays, one after the other and again, with what they overwrote."""

    def work() -> list[Any]:
        x = wp.array(np.linspace(0.1, 1.0, 700), dtype=wp.float64, requires_grad=True)
        s, t = (wp.zeros(3, dtype=wp.float64, requires_grad=True) for _ in range(2))
        seed = wp.array([1.0, 10.0, 100.0], dtype=wp.float64)
        with wp.Tape() as first:
            wp.launch(squared, dim=700, inputs=[x, s])
            wp.launch(grown, dim=700, inputs=[x])
        with wp.Tape() as second:
            wp.launch(grown, dim=700, inputs=[x])
            wp.launch(squared, dim=700, inputs=[x, t])
        out = [x, s, t]
        second.backward(grads={t: seed})
        out.append(wp.clone(x.grad))
        first.backward(grads={s: seed})  # goes on from the gradient of what was in between
        out.append(wp.clone(x.grad))
        first.zero()
        second.backward(grads={t: seed})
        return [*out, x.grad]

    for found, expected in both(there, work):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_python_threads_launch_side_by_side(there: Any) -> None:
    sums: dict[int, float] = {}

    def work(k: int) -> None:
        with wp.ScopedDevice(there):
            x = wp.full(500, float(k), dtype=wp.float64)
            s = wp.zeros(3, dtype=wp.float64)
            for _ in range(20):
                wp.launch(squared, dim=500, inputs=[x, s])
            sums[k] = float(s.numpy().sum())

    wp.launch(squared, dim=1, inputs=[wp.ones(1, dtype=wp.float64), wp.zeros(3, dtype=wp.float64)])
    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert sums == {k: 20.0 * 500 * k * k for k in range(4)}
