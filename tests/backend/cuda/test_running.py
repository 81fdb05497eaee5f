"""Programs on a real or emulated GPU: arrays, launches, tapes, messages, errors."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape
from tests.backend.cuda.emulated import PLACES, place


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a * x[i] + y[i]


@wp.kernel
def total(x: wp.array(dtype=float), s: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(s, 0, x[i] * x[i])


@wp.kernel
def looped(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    a = x[i]
    for _k in range(n[i]):
        a = wp.sin(a) * 1.01 + 0.1
        x[i] = a
    y[i] = a * a


@wp.kernel
def overwriting(x: wp.array(dtype=float), n: wp.array(dtype=int)):
    i = wp.tid()
    for _k in range(n[i]):
        x[i] = x[i] * x[i] + 0.1


@wp.kernel
def says(x: wp.array(dtype=float)):
    i = wp.tid()
    for k in range(2):
        if x[i] > 2.0:
            wp.printf("%d: %d has %f\n", k, i, x[i])
    wp.expect_eq(x[i] < 100.0, True)


@wp.kernel
def least(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.atomic_min(y, 0, x[wp.tid()])


@wp.kernel
def ordered(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = wp.atomic_min(y, 0, x[i])


@wp.kernel
def by_table(x: wp.array(dtype=float), at: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[at[i]] = x[i] * x[i]


@wp.kernel
def turned(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[i, j] = 2.0 * x[j, i]


@pytest.fixture(params=PLACES)
def there(request: pytest.FixtureRequest) -> Iterator[Any]:
    with place(request.param) as found, wp.ScopedDevice(found):
        yield found


def floats(values: Any) -> Any:
    return wp.array(np.asarray(values, np.float32), dtype=float, requires_grad=True)


def code_of(e: pytest.ExceptionInfo[wp.LaunchError]) -> str:
    return e.value.diagnostics[0].code


# ---- memory


def test_arrays(there: Any) -> None:
    x = wp.zeros(5, dtype=float)
    assert x.device == there and there.is_cuda and x.list() == [0.0] * 5
    x.fill_(3.0)
    assert wp.full(2, 7, dtype=wp.int8).list() == [7, 7] and x.list() == [3.0] * 5
    y = floats(np.arange(12))
    z = y.reshape((3, 4))
    assert z[1:, ::2].numpy().tolist() == [[4, 6], [8, 10]]
    assert z[::-1, 1].numpy().tolist() == [9, 5, 1] and z[2, 3] == 11.0
    wp.copy(x, y[2:7])
    assert x.list() == [2, 3, 4, 5, 6] and str(x) == "[2. 3. 4. 5. 6.]"
    z[1:, ::2].fill_(-1.0)
    z[0] = [5.0, 6.0, 7.0, 8.0]
    assert y.numpy().tolist() == [5, 6, 7, 8, -1, 5, -1, 7, -1, 9, -1, 11]
    turned_back = wp.clone(z.transpose())
    assert turned_back.numpy().tolist() == z.numpy().T.tolist()
    with pytest.raises(wp.LaunchError, match="cannot be viewed"):
        z.transpose().reshape(12)
    x.assign(y[::-1][:5])
    assert x.list() == [11, -1, 9, -1, 7]
    on_host = x.to("cpu")
    x.zero_()
    assert on_host.list() == [11, -1, 9, -1, 7] and not x.numpy().any()
    assert wp.empty(0, dtype=float).numpy().shape == (0,)


def test_elements_of_every_size(there: Any) -> None:
    for dtype in (wp.int8, wp.float16, wp.int32, wp.float64, wp.vec3, wp.mat33d, wp.vec4):
        inner = getattr(dtype, "_shape_", ())
        values = np.arange(24 * int(np.prod(inner)), dtype=np.float64).reshape(4, 6, *inner) % 100
        a = wp.array(values, dtype=dtype, shape=(4, 6))
        np.testing.assert_array_equal(a.numpy(), values)
        np.testing.assert_array_equal(a[1::2, ::-2].numpy(), values[1::2, ::-2])
        b = wp.zeros((6, 4), dtype=dtype)
        wp.copy(b, a.transpose())
        np.testing.assert_array_equal(b.numpy(), values.swapaxes(0, 1))
        b[2:4].fill_(3)
        assert (b.numpy()[2:4] == 3).all() and (b.numpy()[4:] == values.swapaxes(0, 1)[4:]).all()


def test_the_host_sees_copies_alone(there: Any) -> None:
    x = floats([1, 2, 3])
    assert not hasattr(x, "__array_interface__")
    seen = np.asarray(x)
    seen[0] = 9.0
    assert x.list() == [1, 2, 3] and np.add(x, 1.0).tolist() == [2, 3, 4]
    again = pickle.loads(pickle.dumps(x))
    assert again.device == there and again.list() == [1, 2, 3]


def test_the_interface_of_gpus(there: Any) -> None:
    x = floats(np.arange(6)).reshape((2, 3))
    found = x.__cuda_array_interface__
    assert found["shape"] == (2, 3) and found["typestr"] == "<f4" and found["strides"] is None
    assert found["data"] == (x.ptr, False) and found["version"] == 3 and found["stream"] != 0
    assert x[:, ::2].__cuda_array_interface__["strides"] == (12, 8)
    assert x.__dlpack_device__() == (2, there.ordinal)
    assert not hasattr(x.to("cpu"), "__cuda_array_interface__")


def test_arrays_of_arrays(there: Any) -> None:
    """They stay on the device: shared where that is asked for, copied there else."""
    x = floats(np.arange(6)).reshape((2, 3))
    for copy in (None, False):
        shared = wp.array(x[:, ::2], copy=copy)
        assert shared.ptr == x.ptr and shared.strides == (12, 8) and shared.device == there
    mine = wp.array(x)
    assert mine.device == there and mine.ptr != x.ptr
    assert mine.list() == wp.array(x, device="cpu").list() == x.list()
    assert wp.array(x, dtype=wp.vec3).shape == (2,)
    with pytest.warns(UserWarning, match=f"is not on {there}"):
        wp.array(np.zeros(3, np.float32), copy=False)


def test_memory_of_others(there: Any) -> None:
    """A NumPy array, and what says that its memory is a GPU's."""

    class Lost:
        __cuda_array_interface__ = {  # noqa: RUF012
            "version": 3, "shape": (3,), "typestr": "<f4", "data": (4096, False),
        }  # fmt: skip

    y, z = floats(np.ones(3)), floats(np.zeros(3))
    for wrong, words in ((np.ones(3, np.float32), "array(..., device="), (Lost(), "not on a GPU")):
        with pytest.raises(wp.LaunchError) as e:
            wp.launch(saxpy, 3, inputs=[2.0, wrong, y], outputs=[z])
        assert code_of(e) == "E204" and "'x'" in str(e.value) and words in str(e.value)


def test_arguments_that_overlap(there: Any) -> None:
    """Checks leave them out, where their arrays were taken for separate ones."""
    flat = floats(np.arange(1.0, 7.0))
    with wp.Tape() as tape:
        wp.launch(saxpy, 4, inputs=[2.0, flat[:4], floats(np.ones(4))], outputs=[flat[2:]])
    (launch,) = check_tape(tape).launches
    assert "overlap" in launch.skipped


@wp.kernel
def positive(x: wp.array(dtype=float)):
    i = wp.tid()
    assert x[i] > 0.0, "too small"


def test_the_first_of_several_assertions(there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "mode", "debug")
    for _ in range(2):  # the order of an emulated GPU turns round
        with pytest.raises(wp.LaunchError) as e:
            wp.launch(positive, 4, inputs=[floats([1, -1, 0, 2])])
        assert code_of(e) == "E210" and "thread 1 of a grid of 4" in str(e.value)


def test_the_stream_that_was_set(there: Any) -> None:
    first, stream = wp.get_stream(), wp.Stream()
    assert wp.get_stream() is first
    with wp.ScopedStream(stream):
        assert wp.get_stream() is stream
    assert wp.get_stream().cuda_stream == first.cuda_stream
    wp.set_stream(stream)
    assert wp.get_stream() is stream
    wp.set_stream(first)
    assert wp.get_stream() is first


def test_there_is_no_memory_without_end(there: Any) -> None:
    with pytest.raises(wp.LaunchError) as e:
        wp.zeros((1 << 10, 1 << 28), dtype=float)
    assert code_of(e) == "E209"


# ---- launches


def test_launches(there: Any) -> None:
    x, y, z = floats(np.arange(1000)), floats(np.ones(1000)), floats(np.zeros(1000))
    wp.launch(saxpy, dim=1000, inputs=[2.0, x, y], outputs=[z])
    assert z.numpy().tolist() == (2.0 * np.arange(1000) + 1).tolist()
    a, b = wp.array(np.arange(12.0).reshape(3, 4), dtype=float), wp.zeros((4, 3), dtype=float)
    wp.launch(turned, dim=(4, 3), inputs=[a, b])
    assert (b.numpy() == 2 * a.numpy().T).all()
    wp.launch(turned, dim=(0, 3), inputs=[a, b])
    wp.synchronize_device(there)


def test_tapes(there: Any) -> None:
    x, s = floats(np.arange(1000)), floats([0.0])
    with wp.Tape() as tape:
        wp.launch(total, dim=1000, inputs=[x], outputs=[s])
    tape.backward(s)
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.arange(1000))
    tape.zero()
    assert not x.grad.numpy().any()


@pytest.mark.parametrize("kernel", [looped, overwriting], ids=["stack", "journal"])
@pytest.mark.parametrize("counts", [(1, 2, 0), (300, 1, 0, 2, 5), (20000, 3)], ids=str)
def test_loops_that_save_any_number_of_values(there: Any, kernel: Any, counts: Any) -> None:
    def work(device: Any) -> list[Any]:
        with wp.ScopedDevice(device):
            x = floats(np.linspace(0.1, 0.8, len(counts)))
            args = [x, wp.array(np.array(counts, np.int32), dtype=int)]
            if kernel is looped:
                args.append(floats(np.zeros(len(counts))))
            with wp.Tape() as tape:
                wp.launch(kernel, dim=len(counts), inputs=args)
            tape.backward(grads={args[-1 if kernel is looped else 0]: wp.ones(len(counts))})
            return [a.numpy() for a in args] + [x.grad.numpy()]

    for found, expected in zip(work(there), work("cpu"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_limits(there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that is too large is an error; a stack that is, is done without."""
    monkeypatch.setattr(wp.config, "journal_limit_bytes", 1 << 12)
    x, n = floats([0.1, 0.2]), wp.array([5000, 1], dtype=int)
    with pytest.raises(wp.LaunchError) as e, wp.Tape():
        wp.launch(overwriting, dim=2, inputs=[x, n])
    assert code_of(e) == "E209" and "journal_limit_bytes" in str(e.value)
    monkeypatch.setattr(wp.config, "stack_limit_bytes", 1 << 15)
    x, n, y = floats([0.1, 0.2]), wp.array([20000, 1], dtype=int), floats([0, 0])
    with wp.Tape() as tape:
        wp.launch(looped, dim=2, inputs=[x, n], outputs=[y])
    tape.backward(grads={y: wp.ones(2)})
    slope = 1.02 * np.cos(0.2) * 1.01 / 1.02  # of the second, which goes round once
    expected = 2 * (1.01 * np.sin(0.2) + 0.1) * slope
    np.testing.assert_allclose(x.grad.numpy()[1], expected, rtol=1e-4)


@wp.kernel
def nested(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    a = x[i]
    for k in range(n[i]):
        b = a
        for _j in range(k % 3 * 700):
            b = b * 0.99 + wp.sin(b) * 0.01
        a = a * 0.5 + b * x[i]
    if n[i] > 3:
        for _k in range(n[i] * 400):
            a = a * 0.9 + x[i] * 0.1
    y[i] = a


@pytest.mark.parametrize("kernel, n", [(looped, 20000), (looped, 1024), (nested, 7), (nested, 3)])
@pytest.mark.parametrize("limit", [8192, 9000, 12000, 20000, 1 << 16])
def test_stacks_that_are_too_small(
    there: Any, kernel: Any, n: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that has not enough ends before it changes anything, in each form of the adjoint."""
    monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)

    def work(device: Any) -> Any:
        with wp.ScopedDevice(device):
            x, counts = floats([0.3, 0.6]), wp.array([n, 1], dtype=int)
            y = floats([0, 0])
            with wp.Tape() as tape:
                wp.launch(kernel, dim=2, inputs=[x, counts, y])
            try:
                tape.backward(grads={y: wp.ones(2)})
            except wp.LaunchError as e:
                assert e.diagnostics[0].code == "E209"
                return x.grad.numpy()[0]
            return x.grad.numpy()

    found, expected = work(there), work("cpu")
    assert np.ndim(found) == np.ndim(expected)
    # The product of many slopes may be less than a float has digits for.
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=np.finfo(np.float32).tiny)


@wp.kernel
def kept(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    """Values of one, two, six, eight and twelve bytes on a stack that loops fill."""
    i = wp.tid()
    a = x[i]
    h = wp.float16(a)
    v = wp.vec3h(h, h, h)
    w = wp.vec3(a, a, a)
    d = wp.float64(a)
    flag = a > 0.0
    for k in range(n + i % 3):
        h = h * wp.float16(0.5) + v[1] * wp.float16(0.25)
        v = wp.vec3h(v[1] * h, v[2], v[0] * wp.float16(0.5) + h)
        w = wp.vec3(w[1] * a, w[2] * 0.5, w[0] + float(h))
        d = d * d * wp.float64(0.5) + wp.float64(w[0])
        if flag:
            a = a * 0.5 + float(h)
        flag = not flag or k % 3 == 0
        a = wp.sin(a) * a
    y[i] = a + float(v[0]) + w[1] + float(d)


@pytest.mark.parametrize("threads", [1, 31, 33, 700])
def test_values_of_all_sizes_on_stacks(there: Any, threads: int) -> None:
    def work(device: Any) -> list[Any]:
        with wp.ScopedDevice(device):
            x = floats(np.linspace(-0.9, 0.9, threads))
            y = floats(np.zeros(threads))
            with wp.Tape() as tape:
                wp.launch(kept, dim=threads, inputs=[x, 9, y])
            tape.backward(grads={y: floats(np.cos(np.arange(threads)))})
            return [y.numpy(), x.grad.numpy()]

    for found, expected in zip(work(there), work("cpu"), strict=True):
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_messages(there: Any, capsys: pytest.CaptureFixture[str]) -> None:
    wp.launch(says, dim=3, inputs=[floats([3, 1, 2.5])])
    lines = ["0: 0 has 3.000000", "1: 0 has 3.000000", "0: 2 has 2.500000", "1: 2 has 2.500000"]
    assert capsys.readouterr().out.splitlines() == lines
    with pytest.raises(wp.LaunchError) as e:
        wp.launch(says, dim=3, inputs=[floats([300, 1, 2.5])])
    assert code_of(e) == "E210"


def test_what_the_order_decides_is_refused(there: Any) -> None:
    x, y, z = floats([1, 2, 3]), floats([5.0]), floats([0, 0, 0])
    with wp.Tape() as tape:
        wp.launch(ordered, dim=3, inputs=[x], outputs=[y, z])
    with pytest.raises(wp.LaunchError) as e:
        tape.backward(grads={z: wp.ones(3)})
    assert code_of(e) == "E407" and "z[i] = wp.atomic_min(y, 0, x[i])" in str(e.value)
    at, z = wp.array([2, 0, 1], dtype=int), floats(np.zeros(3))
    with wp.Tape() as tape:  # a permutation, as far as anybody knows
        wp.launch(by_table, dim=3, inputs=[x, at], outputs=[z])
    tape.backward(grads={z: floats([1, 10, 100])})
    assert x.grad.numpy().tolist() == [200, 4, 60]


def test_a_grid_that_indices_cannot_count(there: Any) -> None:
    with pytest.raises(wp.LaunchError) as e:
        wp.launch(least, dim=2**31 - 5, inputs=[floats([1]), floats([0])])
    assert code_of(e) == "E205"


def test_devices_do_not_mix(there: Any) -> None:
    x, y = floats([1, 2]), wp.zeros(2, dtype=float, device="cpu")
    with pytest.raises(wp.LaunchError) as e:
        wp.launch(saxpy, dim=2, inputs=[1.0, x, y, x])
    assert code_of(e) == "E204" and str(there) in str(e.value) and "cpu" in str(e.value)


# ---- other libraries, which need a GPU


@pytest.mark.gpu
def test_cupy() -> None:
    cp = pytest.importorskip("cupy", reason="cupy is not installed")
    with place("cuda") as device, wp.ScopedDevice(device):
        x = floats(np.arange(10))
        c = cp.asarray(x)
        c += 1
        assert c.data.ptr == x.ptr and x.list()[0] == 1.0
        z = cp.zeros(10, np.float32)
        wp.launch(saxpy, dim=10, inputs=[2.0, x, cp.ones(10, np.float32)], outputs=[z])
        assert z.get().tolist() == (2 * np.arange(1, 11) + 1).tolist()
        assert cp.from_dlpack(x).data.ptr == x.ptr and wp.from_dlpack(z).ptr == z.data.ptr


@pytest.mark.gpu
def test_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with place("cuda") as device, wp.ScopedDevice(device):
        t, x = torch.arange(10.0, device="cuda"), floats(np.arange(10))
        wp.launch(saxpy, dim=10, inputs=[2.0, x, t], outputs=[t])
        assert t.cpu().tolist() == [3.0 * k for k in range(10)]
        assert torch.as_tensor(x, device="cuda").data_ptr() == x.ptr
        assert torch.from_dlpack(x).data_ptr() == x.ptr
        assert wp.from_torch(t).ptr == t.data_ptr()
        assert wp.device_from_torch(t.device) == device


@pytest.mark.gpu
def test_gradients_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with place("cuda") as device, wp.ScopedDevice(device):
        t = torch.arange(1.0, 4.0, device="cuda", requires_grad=True)
        for a in (wp.from_torch(t), t):  # as arrays, and as they are
            s = floats([0])
            with wp.Tape() as tape:
                wp.launch(total, dim=3, inputs=[a], outputs=[s])
            tape.backward(s)
        assert t.grad is not None and t.grad.tolist() == [4.0, 8.0, 12.0]
        assert wp.from_torch(t).grad.ptr == t.grad.data_ptr()
        x = floats([1, 2, 3])
        u = wp.to_torch(x)
        assert u.data_ptr() == x.ptr and u.grad.data_ptr() == x.grad.ptr
        (u * u).sum().backward()
        assert x.grad.numpy().tolist() == [2.0, 4.0, 6.0]
        v = wp.array(np.arange(6.0).reshape(2, 3), dtype=wp.vec3)
        assert wp.to_torch(v).tolist() == [[0, 1, 2], [3, 4, 5]]
        with pytest.raises(wp.LaunchError):
            wp.to_torch(x[::-1])


def test_commands_look_at_what_has_changed(there: Any) -> None:
    x = wp.array(np.arange(8, dtype=np.float32), device=there)
    y, z = wp.zeros(8, dtype=float, device=there), wp.zeros(8, dtype=float, device=there)
    command = wp.launch(saxpy, 8, [2.0, x, y], [z], device=there, record_cmd=True)
    for _ in range(3):
        command.launch()
    z.zero_()
    command.launch()
    np.testing.assert_array_equal(z.numpy(), 2 * np.arange(8))
    command.set_param_by_name("a", 3.0)
    command.launch()
    np.testing.assert_array_equal(z.numpy(), 3 * np.arange(8))
    with wp.Tape() as tape:  # nor is it recorded
        command.launch()
    assert not tape.records
    command.set_param_by_name("x", wp.zeros(8, dtype=float, device="cpu"))
    with pytest.raises(wp.LaunchError, match="E204"):
        command.launch()
    command.set_param_by_name("x", x)
    with wp.ScopedCapture(device=there) as capture:
        command.launch()
    z.zero_()
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(z.numpy(), 3 * np.arange(8))
