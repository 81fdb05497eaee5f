"""An emulated GPU's backend, and the device of `--device emulated-cuda`, for any process."""

from __future__ import annotations

import hashlib

from engine import config
from engine.compile.cache import open_cache
from engine.compile.cpu.toolchain import find_toolchain
from engine.compile.cuda import Cuda
from engine.compile.cuda.gpu import Gpu
from engine.runtime import device
from tests.backend.cuda.fake_cupy import FakeCupy
from tests.backend.cuda.host import FLAGS, SHIM, compile_text

NAME = "emulated-cuda"
# Which one it is as DLPack counts: the names of GPUs that tests have or miss stay theirs.
ORDINAL = 64


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


def register() -> FakeCupy:
    """Makes it the device of what names none, in this process."""
    for there in device.DEVICES:  # a conftest may have asked for it before the option is looked at
        if there.alias == NAME:
            found: FakeCupy = there.backend.gpu._cupy  # type: ignore[attr-defined]
            return found
    cupy = FakeCupy()
    device.register(device.Device(NAME, EmulatedCuda(gpu=Gpu(cupy, 0)), ORDINAL))
    config.device = NAME
    return cupy
