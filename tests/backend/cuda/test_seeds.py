"""Cotangents that lie on a GPU, real or emulated: backward passes take them there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cuda.gpu import Gpu
from tests.backend.cuda.emulated import PLACES, place
from tests.backend.cuda.test_running import saxpy


@pytest.fixture(params=PLACES)
def there(request: Any) -> Iterator[Any]:
    with place(request.param) as device, wp.ScopedDevice(device):
        yield device


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what the host reads and writes, one after the other."""
    sizes: list[int] = []
    reads, writes = Gpu.read, Gpu.write
    monkeypatch.setattr(Gpu, "read", lambda g, at, n: (sizes.append(n), reads(g, at, n))[1])
    monkeypatch.setattr(
        Gpu, "write", lambda g, at, x, *p: (sizes.append(x.nbytes), writes(g, at, x, *p))
    )
    return sizes


def floats(values: Any, device: Any = None) -> Any:
    return wp.array(np.asarray(values, np.float32), requires_grad=True, device=device)


def record(device: Any = None) -> tuple[Any, Any, Any, wp.Tape]:
    """z = 2 x + y."""
    x, y, z = (floats(np.ones(5), device) for _ in range(3))
    with wp.Tape() as tape:
        wp.launch(saxpy, dim=5, inputs=[2.0, x, y], outputs=[z], device=device)
    return x, y, z, tape


def test_nothing_goes_over_the_host(there: Any, read: list[int]) -> None:
    x, y, z, tape = record()
    seeds = floats([1, 2, 3, 4, 5]), floats([0, 1, 0, 2, 0, 3, 0, 4, 0, 5])[1::2]
    for k, seed in enumerate(seeds, 1):
        read.clear()
        tape.backward(grads={z: seed})
        assert not read
        assert x.grad.numpy().tolist() == [2 * k, 4 * k, 6 * k, 8 * k, 10 * k]
        assert y.grad.numpy().tolist() == [k, 2 * k, 3 * k, 4 * k, 5 * k]
        assert seed.numpy().tolist() == [1, 2, 3, 4, 5]
    assert z.grad.numpy().tolist() == [0] * 5


def test_cotangents_are_those_from_before_the_pass(there: Any) -> None:
    wide, other = floats([1, 2, 3, 4, 5, 6]), floats([7, 8, 9, 10, 11])
    got = []
    for device in (there, "cpu"):
        x, y, z, tape = record(device)
        z.grad.assign([1, 2, 3, 4, 5])
        y.grad.assign([10, 20, 30, 40, 50])
        tape.backward(grads={z: y.grad, y: z.grad})  # each over the other
        found = [x.grad.numpy().tolist(), y.grad.numpy().tolist()]
        z.grad.assign([1, 2, 3, 4, 5])
        tape.backward(grads={z: z.grad})
        found.append(x.grad.numpy().tolist())
        base = floats(wide.numpy(), device)
        z.grad = base[1:]
        tape.backward(grads={z: base[:5]})  # onto itself, one further
        found.append(x.grad.numpy().tolist())
        z.grad.assign([5, 4, 3, 2, 1])
        tape.backward(grads={z: z.grad[::-1]})
        found.append(x.grad.numpy().tolist())
        tape.backward(grads={z: floats(other.numpy(), device), x: z.grad})
        got.append([*found, x.grad.numpy().tolist(), y.grad.numpy().tolist()])
    assert got[0] == got[1]


def test_cotangents_of_other_places_and_kinds_are_taken(there: Any) -> None:
    x, y, z, tape = record()
    for seed in (wp.ones(5, dtype=float, device="cpu"), np.ones(5), [1.0] * 5):
        tape.zero()
        tape.backward(grads={z: seed})
        assert x.grad.numpy().tolist() == [2] * 5
    with wp.ScopedDevice("cpu"):
        x, y, z, tape = record()
        tape.backward(grads={z: wp.ones(5, dtype=float, device=there)})
        assert y.grad.numpy().tolist() == [1] * 5


def test_captured_passes_run_on_the_device(there: Any) -> None:
    x, y, z = (floats(np.ones(5)) for _ in range(3))
    seed = floats(np.ones(5))
    with wp.ScopedCapture() as capture:
        with wp.Tape() as tape:
            for _ in range(3):
                wp.launch(saxpy, dim=5, inputs=[2.0, x, y], outputs=[z])
        tape.backward(grads={z: seed})
    for k in range(1, 5):
        seed.assign([k] * 5)
        wp.capture_launch(capture.graph)
        assert x.grad.numpy().tolist() == [k * (k + 1)] * 5
    assert capture.graph.left_to_python == ""
