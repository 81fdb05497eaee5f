"""The API for GPUs, with the answers of a machine without one.

What only tells gets its answer; what would change something on a GPU is refused (E208), unless it
asks for what is so anyway.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TextIO

from engine.classes import dataclass
from engine.runtime.device import Device, DeviceLike, get_cuda_devices, get_device
from engine.runtime.kernel import Kernel
from engine.runtime.launch_errors import fail

__all__ = [
    "MemoryKind", "ScopedAllocator", "ScopedCudaProfiler", "ScopedMempool",
    "ScopedMempoolAccess", "ScopedPeerAccess", "TIMING_ALL", "TIMING_GRAPH", "TIMING_KERNEL",
    "TIMING_KERNEL_BUILTIN", "TIMING_MEMCPY", "TIMING_MEMSET", "TimingResult", "can_access",
    "cuda_profiler_start", "cuda_profiler_stop", "get_cuda_device", "get_cuda_devices",
    "get_cuda_driver_version", "get_cuda_max_cluster_dim", "get_cuda_supported_archs",
    "get_cuda_toolkit_version", "get_mempool_release_threshold", "get_mempool_used_mem_current",
    "get_mempool_used_mem_high", "get_suggested_block_size", "is_cubql_available",
    "is_mempool_access_enabled", "is_mempool_access_supported", "is_mempool_enabled",
    "is_mempool_supported", "is_peer_access_enabled", "is_peer_access_supported",
    "map_cuda_device", "set_cuda_allocator", "set_device_allocator",
    "set_mempool_access_enabled", "set_mempool_enabled", "set_mempool_release_threshold",
    "set_peer_access_enabled", "timing_begin", "timing_end", "timing_print", "unmap_cuda_device",
]  # fmt: skip

TIMING_KERNEL, TIMING_KERNEL_BUILTIN, TIMING_MEMCPY, TIMING_MEMSET, TIMING_GRAPH = 1, 2, 4, 8, 16
TIMING_ALL = 0xFFFFFFFF


class MemoryKind(IntEnum):
    """Warp's names for kinds of memory; arrays here are `HOST`."""

    UNKNOWN = 0
    HOST = 1
    PINNED = 2
    CUDA_DEVICE = 3
    CUDA_MEMPOOL = 4
    CUDA_MANAGED = 5


def _none(what: str) -> Exception:
    return fail("E208", f"{what}: no GPU can be used here", help='use device="cpu"')


# ---- devices


def get_cuda_device(ordinal: int | None = None) -> Device:
    """One of them, by its number. Raises LaunchError (E208) where there is none."""
    return get_device(f"cuda:{ordinal or 0}")


def get_cuda_supported_archs() -> list[int]:
    """Architectures that kernels can be compiled for."""
    return []


def get_cuda_toolkit_version() -> tuple[int, int] | None:
    """None: there is no CUDA toolkit."""
    return None


def get_cuda_driver_version() -> tuple[int, int] | None:
    """None: there is no driver."""
    return None


def get_cuda_max_cluster_dim(kernel: Any, *args: Any, **kwargs: Any) -> int:
    """1: there are no clusters of blocks."""
    del kernel, args, kwargs
    return 1


def get_suggested_block_size(kernel: Kernel, device: DeviceLike = None) -> tuple[int, int]:
    """Threads in a block, and the least number of blocks: one of each on the CPU.

    Raises LaunchError (E202) for what is no kernel.
    """
    if not isinstance(kernel, Kernel):
        raise fail("E202", f"get_suggested_block_size takes a kernel, got {kernel!r}")
    get_device(device)
    return 1, 1


def is_cubql_available() -> bool:
    """False: there is no cuBQL."""
    return False


def map_cuda_device(alias: str, context: Any = None) -> Device:
    """Raises LaunchError (E208)."""
    raise _none(f"map_cuda_device({alias!r})")


def unmap_cuda_device(alias: str) -> None:
    """Raises LaunchError (E208)."""
    raise _none(f"unmap_cuda_device({alias!r})")


def can_access(device: DeviceLike, resource: Any) -> bool:
    """Whether launches on a device can use an array, or memory of another device."""
    place = get_device(device)
    other = getattr(resource, "device", resource)
    return place == (get_device(other) if isinstance(other, str) else other)


# ---- access of one device to another, memory pools and allocators


def is_peer_access_supported(target_device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether one GPU can use the memory of another."""
    _look(target_device, peer_device)
    return False


def is_peer_access_enabled(target_device: DeviceLike, peer_device: DeviceLike) -> bool:
    """The same, whether it does."""
    _look(target_device, peer_device)
    return False


def set_peer_access_enabled(
    target_device: DeviceLike, peer_device: DeviceLike, enable: bool
) -> None:
    """Raises LaunchError (E208) for True."""
    _look(target_device, peer_device)
    if enable:
        raise _none("access of one GPU to another")


def is_mempool_access_supported(target_device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether one GPU can use the memory pool of another."""
    _look(target_device, peer_device)
    return False


def is_mempool_access_enabled(target_device: DeviceLike, peer_device: DeviceLike) -> bool:
    """The same, whether it does."""
    _look(target_device, peer_device)
    return False


def set_mempool_access_enabled(
    target_device: DeviceLike, peer_device: DeviceLike, enable: bool
) -> None:
    """Raises LaunchError (E208) for True."""
    _look(target_device, peer_device)
    if enable:
        raise _none("access of one GPU to the memory pool of another")


def is_mempool_supported(device: DeviceLike) -> bool:
    """Whether a device has memory pools."""
    _look(device)
    return False


def is_mempool_enabled(device: DeviceLike) -> bool:
    """Whether a device uses its memory pool."""
    _look(device)
    return False


def set_mempool_enabled(device: DeviceLike, enable: bool) -> None:
    """Raises LaunchError (E208) for True."""
    _look(device)
    if enable:
        raise _none("memory pools")


def set_mempool_release_threshold(device: DeviceLike, threshold: float) -> None:
    """Raises LaunchError (E208): there are no memory pools."""
    raise _none("memory pools")


def get_mempool_release_threshold(device: DeviceLike = None) -> int:
    """Raises LaunchError (E208): there are no memory pools."""
    raise _none("memory pools")


get_mempool_used_mem_current = get_mempool_used_mem_high = get_mempool_release_threshold


def set_cuda_allocator(allocator: Any) -> None:
    """Raises LaunchError (E208)."""
    raise _none("allocators of GPU memory")


def set_device_allocator(device: DeviceLike, allocator: Any) -> None:
    """Raises LaunchError (E208)."""
    raise _none("allocators of GPU memory")


def _look(*devices: DeviceLike) -> None:
    """Raises LaunchError (E208) for an unknown device."""
    for device in devices:
        get_device(device)


class _Scope:
    """A block in which something is switched on, if it can be."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class ScopedMempool(_Scope):
    """`with ScopedMempool(device, enable):` raises LaunchError (E208) for `enable=True`."""

    def __init__(self, device: DeviceLike, enable: bool) -> None:
        set_mempool_enabled(device, enable)


class ScopedMempoolAccess(_Scope):
    """The same for the access of one GPU to the pool of another."""

    def __init__(self, target_device: DeviceLike, peer_device: DeviceLike, enable: bool) -> None:
        set_mempool_access_enabled(target_device, peer_device, enable)


class ScopedPeerAccess(_Scope):
    """The same for the access of one GPU to another."""

    def __init__(self, target_device: DeviceLike, peer_device: DeviceLike, enable: bool) -> None:
        set_peer_access_enabled(target_device, peer_device, enable)


class ScopedAllocator(_Scope):
    """Raises LaunchError (E208): allocators are for GPU memory."""

    def __init__(self, device: DeviceLike, allocator: Any) -> None:
        set_device_allocator(device, allocator)


class ScopedCudaProfiler(_Scope):
    """A block that a profiler of GPUs would look at; nothing happens."""

    def __init__(self, device: DeviceLike = None, synchronize: bool = True) -> None:
        _look(device)


def cuda_profiler_start(device: DeviceLike = None) -> None:
    """Does nothing: there is no GPU to be profiled."""
    _look(device)


def cuda_profiler_stop(device: DeviceLike = None) -> None:
    """Does nothing: there is no GPU to be profiled."""
    _look(device)


# ---- times of single operations of GPUs


@dataclass(frozen=True, slots=True)
class TimingResult:
    """An operation of a GPU, and how long it took, in milliseconds."""

    device: Device
    name: str
    filter: int
    elapsed: float


def timing_begin(cuda_filter: int = TIMING_ALL, synchronize: bool = True) -> None:
    """Begins to time operations of GPUs; launches on the CPU are none."""


def timing_end(synchronize: bool = True) -> list[TimingResult]:
    """What was timed since `timing_begin`: nothing."""
    return []


def timing_print(
    results: Sequence[TimingResult], indent: str = "", file: TextIO | None = None
) -> None:
    """Prints what `timing_end` gave, and sums by name."""
    out = sys.stdout if file is None else file
    if not results:
        out.write(f"{indent}nothing was timed\n")
    for r in results:
        out.write(f"{indent}{r.elapsed:12.6f} ms  {r.device}  {r.name}\n")
    for name in sorted({r.name for r in results}):
        each = [r.elapsed for r in results if r.name == name]
        out.write(f"{indent}{sum(each):12.6f} ms  in all, {len(each)} of {name}\n")
