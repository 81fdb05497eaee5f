"""`engine.paddle`: exchange of arrays with Paddle, under the name of Warp's module."""

from engine.interop.paddle import (
    device_from_paddle,
    device_to_paddle,
    dtype_from_paddle,
    dtype_is_compatible,
    dtype_to_paddle,
    from_paddle,
    stream_from_paddle,
    to_paddle,
)

__all__ = [
    "device_from_paddle",
    "device_to_paddle",
    "dtype_from_paddle",
    "dtype_is_compatible",
    "dtype_to_paddle",
    "from_paddle",
    "stream_from_paddle",
    "to_paddle",
]
