"""The exchange with JAX, by the name that programs written for Warp import: `engine.jax`."""

from __future__ import annotations

from engine.interop.jax import (
    device_from_jax,
    device_to_jax,
    dtype_from_jax,
    dtype_to_jax,
    from_jax,
    get_jax_device,
    to_jax,
)

__all__ = [
    "device_from_jax",
    "device_to_jax",
    "dtype_from_jax",
    "dtype_to_jax",
    "from_jax",
    "get_jax_device",
    "to_jax",
]
