"""`engine.torch`: exchange of arrays with PyTorch, under the name of Warp's module."""

from engine.interop.torch import (
    device_from_torch,
    device_to_torch,
    dtype_from_torch,
    dtype_is_compatible,
    dtype_to_torch,
    from_torch,
    stream_from_torch,
    stream_to_torch,
    to_torch,
)

__all__ = [
    "device_from_torch",
    "device_to_torch",
    "dtype_from_torch",
    "dtype_is_compatible",
    "dtype_to_torch",
    "from_torch",
    "stream_from_torch",
    "stream_to_torch",
    "to_torch",
]
