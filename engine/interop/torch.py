"""PyTorch: tensors as arrays and back, in one memory, with one gradient."""

from __future__ import annotations

from functools import cache
from typing import Any

from engine.interop.base import Adapter
from engine.lang.foreign import Memory
from engine.lang.types import BY_NAME, ScalarType
from engine.runtime.pack import Mismatch


@cache
def _scalars() -> dict[Any, ScalarType]:
    """The types that both have, by PyTorch's."""
    import torch

    return {getattr(torch, n): t for n, t in BY_NAME.items() if hasattr(torch, n)}


class Torch(Adapter):
    """Tensors on the CPU that are plain blocks of memory."""

    package = "torch"
    title = "PyTorch"
    thing = "tensor"

    def memory(self, value: Any) -> Memory | None:
        import torch

        if not isinstance(value, torch.Tensor):
            return None
        scalar = _scalars().get(value.dtype)
        if scalar is None:
            raise Mismatch("E202", f"a PyTorch tensor of {str(value.dtype)[6:]}",
                           "convert it to a type that arrays have")  # fmt: skip
        size = scalar.size
        block = value.untyped_storage()
        return Memory(value.data_ptr(), tuple(value.shape), tuple(s * size for s in value.stride()),
                      scalar, block, True, str(value.device), block.data_ptr(),
                      block.nbytes())  # fmt: skip


ADAPTER = Torch()
