"""GPUs that are emulated: the CUDA backend whole, on what stands in for CuPy and NVRTC."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.compile.cache import open_cache
from engine.compile.cpu.toolchain import find_toolchain
from engine.compile.cuda import Cuda
from engine.compile.cuda.gpu import Gpu
from engine.runtime import device
from tests.backend.cuda.fake_cupy import FakeCupy
from tests.backend.cuda.host import FLAGS, SHIM, compile_text


def _compiled(text: str) -> tuple[bytes, str]:
    """The name of a library of the host, which is kept for later runs, and what was said."""
    said = (text, SHIM.read_text(), *find_toolchain().command, *FLAGS)
    key, cache = hashlib.sha256("\0".join(said).encode()).hexdigest(), open_cache()
    stored = cache.find(key)
    if stored is None:
        with cache.workspace() as folder:
            library, errors = compile_text(text, folder)
            if library is None:
                return b"", errors
            cache.add(library, {key: key})
        stored = cache.find(key)
        assert stored is not None
    return stored.path.encode(), ""


class EmulatedCuda(Cuda):
    """The backend of one emulated GPU."""

    keeps = False  # its machine code is the name of a file

    def _version(self) -> tuple[int, int]:
        return 0, 0

    def _known(self, arch: str) -> str:
        return arch

    def _compiled(self, text: str) -> tuple[bytes, str]:
        return _compiled(text)


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
        yield made
    finally:
        for one in made:
            device.unregister(one)


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
    yield gpus[0]
