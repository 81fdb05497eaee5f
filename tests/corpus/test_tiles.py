"""Tiles of blocks of one thread: what Warp's tiled kernels do on a CPU."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import engine as wp
from engine.diagnostics import EngineError, KernelError, LaunchError


@wp.kernel
def bounds(x: wp.array2d(dtype=wp.vec3), w: wp.array(dtype=float), out: wp.array2d(dtype=wp.vec3)):
    row, lane = wp.tid()
    low = wp.vec3(1.0e9)
    total = wp.vec3(0.0)
    for k in range(lane, x.shape[1], wp.block_dim()):
        low = wp.min(low, x[row, k])
        total += w[row] * x[row, k]
    low = wp.tile_reduce(wp.min, wp.tile(low, preserve_type=True))[0]
    t = wp.tile_sum(wp.tile(total, preserve_type=True))
    one = wp.tile_max(wp.tile(w[row]))
    if lane == 0:
        out[row, 0] = low
        out[row, 1] = t[0] * one[0] * wp.untile(wp.tile(w[row]))


def test_values_and_gradients() -> None:
    rng = np.random.default_rng(3)
    data, weights = rng.normal(size=(4, 6, 3)), rng.normal(size=4) + 2.0
    x = wp.array(data, dtype=wp.vec3, requires_grad=True)
    w = wp.array(weights, dtype=float, requires_grad=True)
    out = wp.zeros((4, 2), dtype=wp.vec3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch_tiled(bounds, dim=4, inputs=[x, w], outputs=[out], block_dim=64)
    np.testing.assert_allclose(out.numpy()[:, 0], data.min(1), rtol=1e-6)
    sums = data.sum(1)
    np.testing.assert_allclose(out.numpy()[:, 1], sums * weights[:, None] ** 3, rtol=2e-6)
    seed = rng.normal(size=(4, 2, 3))
    tape.backward(grads={out: wp.array(seed, dtype=wp.vec3)})
    expected = 3.0 * weights**2 * (sums * seed[:, 1]).sum(1)
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-5)
    least = data == data.min(1, keepdims=True)
    gx = seed[:, 1][:, None, :] * weights[:, None, None] ** 3 + least * seed[:, 0][:, None, :]
    np.testing.assert_allclose(x.grad.numpy(), gx, rtol=1e-5)
    assert wp.autograd.gradcheck_tape(tape)


SCALARS = [wp.float16, wp.float32, wp.float64, wp.int8, wp.uint16, wp.int32, wp.uint64]
TYPES = [*SCALARS, wp.vec2h, wp.vec3i, wp.mat22d]


@wp.kernel
def sums(x: wp.array2d(dtype=Any), out: wp.array2d(dtype=Any)):
    row, lane = wp.tid()
    v = wp.tile(x[row, lane], preserve_type=True)
    out[row, 0] = wp.tile_sum(v)[0] + wp.tile_reduce(wp.add, v)[0]
    out[row, 1] = wp.untile(v)


@wp.kernel
def extremes(x: wp.array2d(dtype=Any), out: wp.array2d(dtype=Any)):
    row, lane = wp.tid()
    out[row, 0] = wp.tile_min(wp.tile(x[row, lane]))[0]
    out[row, 1] = wp.tile_max(wp.tile(x[row, lane]))[0]


@pytest.mark.parametrize(
    ("kernel", "dtype"), [*((sums, t) for t in TYPES), *((extremes, t) for t in SCALARS)]
)
def test_types(kernel: wp.Kernel, dtype: Any) -> None:
    """A block of one thread: sums and extremes are its value, their derivative one."""
    shape = (2, 1, *getattr(dtype, "_shape_", ()))
    data = np.arange(1, 1 + np.prod(shape), dtype=int).reshape(shape)
    smooth = dtype not in (wp.vec3i, *SCALARS[3:])
    x = wp.array(data, dtype=dtype, requires_grad=smooth)
    out = wp.zeros((2, 2), dtype=dtype, requires_grad=smooth)
    with wp.Tape() as tape:
        wp.launch_tiled(kernel, dim=2, inputs=[x], outputs=[out], block_dim=32)
    first = data[:, 0] * (2 if kernel is sums else 1)
    np.testing.assert_array_equal(out.numpy(), np.stack([first, data[:, 0]], 1))
    if smooth:
        seed = np.stack([data[:, 0], 3 * data[:, 0]], 1)
        tape.backward(grads={out: wp.array(seed, dtype=dtype)})
        np.testing.assert_array_equal(x.grad.numpy(), (5 if kernel is sums else 4) * data)


@wp.kernel
def by_components(x: wp.array(dtype=wp.vec3)):
    wp.tile(x[0])
    x[0] = x[1]


@wp.kernel
def of_no_tile(x: wp.array(dtype=float)):
    x[0] = wp.tile_sum(x[0])[0]


@wp.kernel
def of_no_function(x: wp.array(dtype=float)):
    x[0] = wp.tile_reduce(x[0], wp.tile(x[0]))[0]


@wp.kernel
def shared(x: wp.array(dtype=float)):
    x[0] = wp.tile_load(x, shape=4)[0]


@pytest.mark.parametrize(
    ("kernel", "code"),
    [(by_components, "E112"), (of_no_tile, "E104"), (of_no_function, "E104"), (shared, "E112")],
)
def test_what_is_refused(kernel: wp.Kernel, code: str) -> None:
    dtype = wp.vec3 if kernel is by_components else float
    x = wp.ones(4, dtype=dtype)
    with pytest.raises(KernelError) as e:
        wp.launch_tiled(kernel, dim=1, inputs=[x], block_dim=32)
    assert [d.code for d in e.value.diagnostics] == [code]
    np.testing.assert_array_equal(x.numpy(), 1.0)


@pytest.mark.parametrize("options", [{}, {"block_dim": 0}, {"block_dim": 2.5}])
def test_the_block_is_named(options: dict[str, object]) -> None:
    with pytest.raises(LaunchError, match=r"E205.*block"):
        wp.launch_tiled(bounds, dim=4, inputs=[None] * 3, **options)
    with pytest.raises(LaunchError, match="E205"):
        wp.launch_tiled(bounds, dim=(1, 1, 1, 1), inputs=[None] * 3, block_dim=4)


@wp.func
def passed(t: wp.tile[float, Literal[8], Literal[4]]) -> wp.tile(dtype=float, shape=(8, 4)):
    return t


@wp.kernel
def passes_a_tile(x: wp.array(dtype=float)):
    x[0] = passed(x[0])


def test_types_of_tiles_may_be_mentioned() -> None:
    with pytest.raises(EngineError, match="parameter `t`: `tile`: tiles are not supported") as e:
        wp.launch(passes_a_tile, 1, inputs=[wp.zeros(1, dtype=float)])
    assert {d.code for d in e.value.diagnostics} == {"E112"}
    with pytest.raises(TypeError, match="builtin sin> is not subscriptable"):
        wp.sin[float]
