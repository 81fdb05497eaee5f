"""GPUs that are emulated: the CUDA backend whole, on what stands in for CuPy and NVRTC."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.compile.cuda import runner
from engine.compile.cuda.gpu import Gpu
from engine.runtime import device
from tests.backend.cuda.device import EmulatedCuda
from tests.backend.cuda.fake_cupy import FakeCupy


@contextmanager
def looked_at() -> Iterator[None]:
    """Launches take their forms by how arrays lie, however few threads they have."""
    before, runner.FEW = runner.FEW, 0
    try:
        yield
    finally:
        runner.FEW = before


@contextmanager
def emulated(cupy: FakeCupy | None = None) -> Iterator[list[device.Device]]:
    """Devices `cuda:0` and on, registered meanwhile."""
    cupy = cupy or FakeCupy()
    taken = {d.alias for d in device.DEVICES}  # beside real ones they have numbers of their own
    first = 100 if "cuda:0" in taken else 0
    made = [
        device.Device(f"cuda:{first + k}", EmulatedCuda(gpu=Gpu(cupy, k)), first + k)
        for k in range(cupy.count)
    ]
    for one in made:
        device.register(one)
    try:
        with looked_at():
            yield made
    finally:
        for one in made:
            device.unregister(one)
        # Nothing is left of them: native launches, which a GPU turns off for good, are on again.
        device.others[:] = [d for d in device.others if d not in made]


# Where tests of GPUs run: on an emulated one anywhere, and on a real one where there is one.
PLACES = ("emulated", pytest.param("cuda", marks=pytest.mark.gpu))


@contextmanager
def place(name: str) -> Iterator[device.Device]:
    """One of `PLACES`; skips the test where that is not there."""
    if name == "emulated":
        with emulated() as (found, *_):
            yield found
        return
    gpus = device.get_cuda_devices()
    if not gpus:
        pytest.skip("no GPU that CuPy sees")
    with looked_at():
        yield gpus[0]
