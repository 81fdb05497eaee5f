"""`config.deterministic` on a GPU: the same bits each time, and gradients of ordered accesses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.backend.cuda import test_compounds
from tests.backend.cuda import test_overlaps as overlaps
from tests.backend.cuda import test_winners as winners
from tests.backend.cuda.emulated import PLACES, emulated, place
from tests.backend.cuda.fake_cupy import FakeCupy
from tests.corpus import compound
from tests.unit.compile import test_winners as cpu

F = wp.array(dtype=float)
D = wp.array(dtype=wp.float64)
G = wp.array(dtype=Any)
I = wp.array(dtype=int)
N = 700  # three blocks: of two it does not matter which comes first


@pytest.fixture(params=PLACES)
def gpu(request: pytest.FixtureRequest) -> Iterator[str]:
    with place(request.param) as device:
        yield device.alias


@pytest.fixture(autouse=True)
def setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "deterministic", True)


def values(n: int = N) -> Any:
    """Numbers whose sums round, of many sizes."""
    rng = np.random.default_rng(4)
    return rng.standard_normal(n) * 10.0 ** rng.integers(-4, 5, n)


# ---- sums


@wp.kernel
def total(x: G, y: G):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i] * x[i])


@wp.kernel
def scattered(x: F, at: I, y: F):
    i = wp.tid()
    y[at[i]] += x[i] * x[i]
    wp.atomic_sub(y, at[N - 1 - i], x[i])


@wp.kernel
def gathered(x: F, at: I, y: F):
    i = wp.tid()
    y[i] = x[at[i]] * x[at[N - 1 - i]] * 3.0


@wp.kernel
def looped(x: F, at: I, y: F):
    i = wp.tid()
    v = x[i]
    for k in range(at[i] * 40):
        v = v * 0.99 + x[(i + k) % 7] * 0.01
    y[i % 3] += v


@wp.kernel
def places(x: G, count: I, y: G):
    i = wp.tid()
    if x[i] > x.dtype(0.0):
        y[wp.atomic_add(count, 0, 1) % N] = x[i] * x[i]


@wp.kernel
def chained(x: G, at: I, y: G):
    i = wp.tid()
    y[i + 1] = wp.sin(y[i]) * x.dtype(0.5) + x[i]


@wp.kernel
def linear(x: G, at: I, y: G):
    i = wp.tid()
    y[i + 1] = y[i] * x.dtype(0.5) + x[i]


@wp.kernel
def stored(x: G, at: I, y: G):
    i = wp.tid()
    y[at[i]] = x[i] * x[i]


def run(device: str, kernel: Any, dtype: Any = float, times: int = 1) -> list[bytes]:
    """Values and gradients, by bits."""
    with wp.ScopedDevice(device):
        x = wp.array(values(), dtype=dtype, requires_grad=True)
        y = wp.array(np.linspace(0.0, 1.0, N + 1), dtype=dtype, requires_grad=True)
        at = wp.array(np.random.default_rng(1).integers(0, 9, N), dtype=int)
        count = wp.zeros(1, dtype=int)
        args = {total: [x, y], places: [x, count, y]}.get(kernel, [x, at, y])
        with wp.Tape() as tape:
            for _ in range(times):
                wp.launch(kernel, N, args)
        weights = np.random.default_rng(2).standard_normal(N + 1)
        tape.backward(grads={y: wp.array(weights, dtype=dtype)})
        return [a.numpy().tobytes() for a in (x, y, x.grad, y.grad, count)]


SUMS = [total, scattered, gathered, looped]
ORDERED = [places, chained, linear, stored]


@pytest.mark.parametrize("kernel", [*SUMS, *ORDERED], ids=lambda k: k.key)
def test_each_run_gives_the_same_bits(gpu: str, kernel: Any) -> None:
    """The fake of CuPy runs threads upwards and downwards by turns."""
    first = run(gpu, kernel)
    for _ in range(3):
        with wp.ScopedDevice(gpu):
            wp.launch(nothing, 1)  # so that another order comes
        assert run(gpu, kernel) == first
    close(first, run("cpu", kernel))


@wp.kernel
def nothing():
    wp.tid()


def close(found: list[bytes], right: list[bytes], kind: Any = np.float32) -> None:
    for a, b in zip(found[:4], right[:4], strict=True):
        np.testing.assert_allclose(
            np.frombuffer(a, kind), np.frombuffer(b, kind), rtol=1e-5, atol=1e-3
        )
    assert found[4] == right[4]


@pytest.mark.parametrize("kernel", [total, scattered, gathered], ids=lambda k: k.key)
def test_else_the_order_is_seen(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "deterministic", None)
    with place("emulated") as device:
        found = set()
        for _ in range(4):
            found.add(tuple(run(device.alias, kernel)))
            with wp.ScopedDevice(device):
                wp.launch(nothing, 1)
        assert len(found) > 1


# ---- gradients that depend on the order


@pytest.mark.parametrize("kernel", ORDERED, ids=lambda k: k.key)
def test_ordered_accesses_have_the_gradients_of_the_cpu(gpu: str, kernel: Any) -> None:
    for times in (1, 3):
        found = run(gpu, kernel, wp.float64, times)
        close(found, run("cpu", kernel, wp.float64, times), np.float64)


@pytest.mark.parametrize("name", overlaps.MEET)
def test_overlapping_arguments_have_the_gradients_of_the_cpu(gpu: str, name: str) -> None:
    kernel, parts, at = overlaps.MEET[name]
    for _ in range(2):
        found = overlaps.gradient(gpu, kernel, overlaps.dim_of(kernel), parts, at)
        right = overlaps.gradient("cpu", kernel, overlaps.dim_of(kernel), parts, at)
        np.testing.assert_allclose(found, right, rtol=1e-12)


def test_minima_have_the_gradients_of_the_cpu(gpu: str) -> None:
    """Also those that are refused else."""
    for kernel, args in (
        (winners.used, lambda: [winners.floats(1), winners.floats(cpu.N)]),
        (winners.both, lambda: [winners.floats(3)]),
        (winners.read_again, lambda: [winners.floats(3), winners.floats(cpu.N)]),
        (winners.two_names, winners.one_memory),
        (cpu.of_two_names, winners.overlapping),
        (cpu.of_two_names, lambda: [winners.floats(3), winners.floats(3)]),
        (winners.five, lambda: [winners.floats(3) for _ in range(5)]),
    ):
        expected = winners.on("cpu", lambda k=kernel, a=args: winners.slopes(k, *a()))
        for _ in range(2):
            assert winners.on(gpu, lambda k=kernel, a=args: winners.slopes(k, *a())) == expected


@pytest.mark.parametrize("name", ["returned_views", "struct_from_function_with_array"])
def test_compounds_that_are_refused_else(name: str) -> None:
    (case,) = (case for case in compound.CASES if case.name == name)
    assert name in test_compounds.REFUSED
    with place("emulated") as device:
        there = test_compounds.found(case, True, device)
    for got, expected in zip(there, test_compounds.found(case, True, "cpu"), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("limit", [0, 1 << 14, 1 << 20])
def test_threads_that_save_much_keep_their_place(
    gpu: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames grow, or another form goes on, from the thread that was abandoned."""
    monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)

    def gradients(device: str) -> list[bytes]:
        with wp.ScopedDevice(device):
            x = wp.array(values(9), dtype=wp.float64, requires_grad=True)
            y = wp.zeros(10, dtype=wp.float64, requires_grad=True)
            count = wp.array([3, 2000, 1, 500, 0, 4000, 7, 900, 2], dtype=int)
            with wp.Tape() as tape:
                wp.launch(long_chain, 9, [x, count, y])
            tape.backward(grads={y: wp.ones(10, dtype=wp.float64)})
            return [a.numpy() for a in (y, x.grad, y.grad)]

    for found, right in zip(gradients(gpu), gradients("cpu"), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9)


@wp.kernel
def long_chain(x: D, count: I, y: D):
    i = wp.tid()
    v = y[i]
    for _ in range(count[i]):
        v = wp.sin(v) + x[i] * wp.float64(1e-4)
    y[i + 1] = v


# ---- when it is asked for


def recorded(gpu: str) -> Any:
    y = wp.zeros(5, dtype=float, requires_grad=True, device=gpu)
    x = wp.array(values(4), dtype=float, requires_grad=True, device=gpu)
    with wp.Tape() as tape:
        wp.launch(chained, 4, [x, wp.zeros(4, dtype=int, device=gpu), y], device=gpu)
    return tape, x, {y: wp.ones(5, dtype=float, device=gpu)}


def test_the_launch_has_to_have_an_order(gpu: str) -> None:
    tape, x, ones = recorded(gpu)
    right = recorded("cpu")
    right[0].backward(grads=right[2])
    wp.config.deterministic = False
    tape.backward(grads=ones)
    np.testing.assert_allclose(x.grad.numpy(), right[1].grad.numpy(), rtol=1e-5)
    for _ in range(3):  # short ways come later
        tape, x, ones = recorded(gpu)
        wp.config.deterministic = True
        with pytest.raises(wp.LaunchError, match=r"deterministic = True. before the launch"):
            tape.backward(grads=ones)
        wp.config.deterministic = False


def test_modules_and_modes(gpu: str) -> None:
    wp.config.deterministic = None
    options = {"deterministic": True}

    @wp.kernel(module="unique", module_options=options)
    def own(x: F, at: I, y: F):
        i = wp.tid()
        y[i + 1] = wp.sin(y[i]) * 0.5 + x[i]

    def backward(kernel: Any) -> None:
        y = wp.zeros(5, dtype=float, requires_grad=True, device=gpu)
        x = wp.ones(4, dtype=float, requires_grad=True, device=gpu)
        with wp.Tape() as tape:
            wp.launch(kernel, 4, [x, None, y], device=gpu)
        tape.backward(grads={y: wp.ones(5, dtype=float, device=gpu)})

    modes = wp.DeterministicMode
    for setting in (None, False, modes.NOT_GUARANTEED):
        wp.config.deterministic = setting
        backward(own)
        with pytest.raises(wp.LaunchError, match="E407"):
            backward(chained)
    wp.config.deterministic = modes.RUN_TO_RUN
    backward(chained)
    wp.set_module_options({"deterministic": False}, own.module)
    with pytest.raises(wp.LaunchError, match="E407"):
        backward(own)


def test_adjoints_that_are_launched(gpu: str) -> None:
    def gradients(device: str) -> list[Any]:
        with wp.ScopedDevice(device):
            arrays = [wp.array(values(n), dtype=float) for n in (4, 5)]
            grads = [wp.zeros(4, dtype=float), wp.ones(5, dtype=float)]
            at = wp.zeros(4, dtype=int)
            wp.launch(linear, 4, [arrays[0], at, arrays[1]], adjoint=True,
                      adj_inputs=[grads[0], None, grads[1]])  # fmt: skip
            return [g.numpy() for g in grads]

    for found, right in zip(gradients(gpu), gradients("cpu"), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5)


def test_graphs(gpu: str) -> None:
    def step(device: str) -> list[bytes]:
        with wp.ScopedDevice(device):
            x = wp.array(values(), dtype=wp.float64, requires_grad=True)
            y = wp.zeros(N + 1, dtype=wp.float64, requires_grad=True)
            s = wp.zeros(1, dtype=wp.float64, requires_grad=True)
            at = wp.zeros(N, dtype=int)
            with wp.ScopedCapture() as capture:
                tape = wp.Tape()
                y.zero_(), s.zero_()
                with tape:
                    wp.launch(linear, N, [x, at, y])
                    wp.launch(total, N, [y, s])
                tape.backward(s)
            out = []
            for _ in range(4):
                wp.capture_launch(capture.graph)
                out.append([a.numpy().copy() for a in (s, x.grad)])
                tape.zero()
            assert device == "cpu" or capture.graph.left_to_python == ""
            return out

    found, right = step(gpu), step("cpu")
    for one in found:
        for a, first, b in zip(one, found[0], right[0], strict=True):
            assert a.tobytes() == first.tobytes()
            np.testing.assert_allclose(a, b, rtol=1e-9)


# ---- how launches run


def test_only_what_needs_an_order_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    cupy = FakeCupy()
    with emulated(cupy) as (device, *_), wp.ScopedDevice(device):
        x = wp.array(values(), dtype=float)
        y, n = wp.zeros(N, dtype=float), wp.zeros(1, dtype=int)
        wp.config.deterministic_debug = True
        try:
            for kernel, args in ((own, [x, y]), (counted, [x, n]), (highest, [x, y])):
                for _ in range(3):
                    wp.launch(kernel, N, args)
                    assert cupy.grids[-1][:2] == (3, 256)
            assert capsys.readouterr().out == ""
            found = set()
            for k in range(3):
                y.zero_()
                wp.launch(total, N, [x, y], block_dim=64, max_blocks=k)
                assert cupy.grids[-1][:2] == (1, 256)  # a block adds up by a tree
                found.add(y.numpy().tobytes())
            assert capsys.readouterr().out == "" and len(found) == 1
            for _ in range(3):
                wp.launch(total, N - 1, [x[1:], y[::2]], block_dim=64)
                assert cupy.grids[-1][:2] == (1, 1)
            said = capsys.readouterr().out
            assert said.count("\n") and "several threads add floats to an element of 'y'" in said
            assert "test_in_order.py" in said
        finally:
            wp.config.deterministic_debug = False


@wp.kernel
def own(x: F, y: F):
    i = wp.tid()
    y[i] += x[i]


@wp.kernel
def counted(x: F, n: I):
    i = wp.tid()
    if x[i] > 0.0:
        wp.atomic_add(n, 0, 1)


@wp.kernel
def highest(x: F, y: F):
    i = wp.tid()
    wp.atomic_max(y, i % 3, x[i])


@wp.kernel
def extremes(x: G, y: G):
    i = wp.tid()
    wp.atomic_max(y, 0, x[i])
    wp.atomic_min(y, 1, x[i])


@pytest.mark.parametrize("dtype", [float, wp.float64, wp.float16, wp.bfloat16])
def test_zeros_of_both_signs(gpu: str, dtype: Any) -> None:
    for zeros in ([0.0, -0.0], [-0.0, 0.0, -0.0]):
        for _ in range(2):
            with wp.ScopedDevice(gpu):
                x = wp.array(zeros, dtype=dtype)
                y = wp.array([-0.0, 0.0], dtype=dtype)
                wp.launch(extremes, len(zeros), [x, y])
                signs = np.signbit(y.numpy().astype(np.float32)).tolist()
                assert signs == [False, True]
