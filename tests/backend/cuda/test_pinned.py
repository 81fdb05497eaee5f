"""Pinned memory of the host, and asynchronous copies from it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import engine as wp
from engine.compile.cuda import pinned
from tests.backend.cuda.emulated import PLACES, emulated, place
from tests.backend.cuda.fake_cupy import FakeCupy


@wp.kernel
def doubled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


def test_without_a_gpu_it_is_memory_as_any() -> None:
    if wp.get_cuda_devices():
        pytest.skip("there is a GPU")
    x = wp.array([1.0, 2.0], dtype=float, pinned=True, requires_grad=True)
    assert not x.pinned and not wp.zeros(3, dtype=float, pinned=True).pinned
    assert x.grad is not None and x.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("where", PLACES)
def test_who_makes_it(where: str) -> None:
    with place(where) as device:
        x = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu", pinned=True, requires_grad=True)
        made = [
            x, x.grad, x[1:], wp.zeros(3, dtype=float, device="cpu", pinned=True),
            wp.empty((2, 2), dtype=wp.vec3, device="cpu", pinned=True),
            wp.ones(3, dtype=float, device="cpu", pinned=True),
            wp.full(3, 2.0, device="cpu", pinned=True),
            wp.array(shape=3, dtype=float, device="cpu", pinned=True),
            wp.empty(3, dtype=float, device="cpu", pinned=True, strides=(8,)),
            wp.zeros_like(x), wp.full_like(x, 5.0), wp.clone(x), wp.clone(x, pinned=True),
        ]  # fmt: skip
        assert all(a.pinned and a.device == "cpu" for a in made)
        assert x.grad.numpy().tolist() == made[3].numpy().tolist() == [0, 0, 0]
        plain = [
            wp.zeros(3, dtype=float, device="cpu"), wp.zeros(3, dtype=float, device=device),
            wp.zeros(3, dtype=float, device=device, pinned=True), wp.zeros_like(x, pinned=False),
            wp.clone(x, pinned=False), wp.clone(x, device=device), wp.zeros_like(x, device=device),
        ]  # fmt: skip
        assert not any(a.pinned for a in plain)
        y = wp.zeros(3, dtype=float, device="cpu", pinned=True)
        with wp.Tape() as tape:  # the CPU computes with it as with any
            wp.launch(doubled, dim=3, inputs=[x], outputs=[y], device="cpu")
        assert y.numpy().tolist() == [2, 4, 6]
        del tape


@pytest.mark.parametrize("where", PLACES)
def test_copies_have_gradients(where: str) -> None:
    with place(where) as device:
        x = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu", pinned=True, requires_grad=True)
        y, z = (wp.zeros(3, dtype=float, device=device, requires_grad=True) for _ in range(2))
        with wp.Tape() as tape:
            wp.copy(y, x)
            wp.launch(doubled, dim=3, inputs=[y], outputs=[z], device=device)
        tape.backward(grads={z: wp.array([1.0, 10.0, 100.0], dtype=float, device=device)})
        assert z.numpy().tolist() == [2, 4, 6] and x.grad.numpy().tolist() == [2, 20, 200]


def test_copies_are_on_their_way_and_keep_the_memory() -> None:
    cupy = FakeCupy()
    with emulated(cupy) as (device, *_):
        x = wp.array(np.arange(4.0), dtype=float, device="cpu", pinned=True)
        y, z = (wp.zeros(4, dtype=float, device=device) for _ in range(2))
        wp.copy(y, x)
        (stream,) = (s for s in cupy._streams.values() if s.later)
        x.numpy()[0] = 7.0  # too early: it is not copied yet
        assert stream.later and y.numpy().tolist() == [7, 1, 2, 3]
        wp.copy(y, x, dest_offset=1, src_offset=0, count=2)
        wp.copy(z, x[::-1])  # not side by side: copied by the host first
        assert z.numpy().tolist() == [3, 2, 1, 7] and y.numpy().tolist() == [7, 7, 1, 3]
        wp.copy(z, x)
        assert stream.later and not pinned._read
        del x
        gc.collect()
        assert len(pinned._read) == 1
        wp.zeros(1, dtype=float, device="cpu", pinned=True)
        assert len(pinned._read) == 1  # still on its way
        wp.synchronize_device(device)
        assert z.numpy().tolist() == [7, 1, 2, 3]
        wp.zeros(1, dtype=float, device="cpu", pinned=True)
        assert not pinned._read


def test_what_numpy_holds_is_copied_at_once() -> None:
    cupy = FakeCupy()
    with emulated(cupy) as (device, *_):
        x = wp.array(np.arange(4.0), dtype=float, device="cpu", pinned=True)
        y = wp.zeros(4, dtype=float, device=device)
        seen = x.numpy()
        for write in (lambda: y.assign(seen), lambda: y.__setitem__(slice(None), seen)):
            seen[...] = np.arange(4)
            write()
            seen[...] = 9.0
            assert y.numpy().tolist() == [0, 1, 2, 3]
            y.zero_()


def test_there_may_not_be_enough() -> None:
    with emulated(FakeCupy(memory=1 << 20)), pytest.raises(wp.LaunchError, match="E209"):
        wp.zeros(1 << 20, dtype=float, device="cpu", pinned=True)
