"""CuPy: arrays in the memory of a GPU."""

from __future__ import annotations

from typing import Any

from engine.interop.base import Adapter
from engine.lang.foreign import Memory
from engine.runtime.cuda_interface import NAME, described


class CuPy(Adapter):
    """Arrays with `__cuda_array_interface__`, whose fields are checked."""

    package = "cupy"
    title = "CuPy"
    roots = ("cupy", "cupy_backends", "cupyx")

    def memory(self, value: Any) -> Memory | None:
        if not hasattr(value, NAME):
            return None
        device = getattr(getattr(value, "device", None), "id", 0)
        return described(value, f"cuda:{device}")

    def convert(self, scalar: str) -> str:
        return f"convert it first: x.astype({scalar!r})"


ADAPTER = CuPy()
