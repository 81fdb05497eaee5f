"""A stand-in for CuPy on machines without a GPU: devices in host memory.

It has what `engine.compile.cuda.gpu` calls, by the same names; machine code is the file name of a
library that `host.compile_text` made. Memory of a device is known, so that copies between the wrong
places, and use after the end, are errors; what is new holds no zeros.
"""

from __future__ import annotations

import bisect
import ctypes
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.backend.cuda.host import call

NEW = 0xCB  # every byte of new memory


class CUDARuntimeError(RuntimeError):
    """As CUDA reports errors."""


class OutOfMemoryError(MemoryError):
    """As CuPy's."""


class MemoryPointer:
    """Memory of a device."""

    def __init__(self, device: int, size: int) -> None:
        self._block = np.full(size + 512, NEW, np.uint8)
        at = self._block.ctypes.data
        self.ptr = at + -at % 512
        self.size = size
        self.device_id = device


class PinnedMemoryPointer:
    """Memory of the host that devices read by themselves: when they come to it."""

    def __init__(self, size: int) -> None:
        self._block = np.full(size, NEW, np.uint8)
        self.ptr = self._block.ctypes.data
        self.size = size

    def __del__(self) -> None:
        self._block[...] = 0xDD  # whoever reads it now reads that


class Graph:
    """What a stream captured."""

    def __init__(self, work: list[Callable[[], object]]) -> None:
        self.work = work

    def launch(self, stream: Stream | None = None) -> None:
        for one in self.work:
            one()


class Stream:
    """A queue, whose work is done at once, unless it is captured."""

    def __init__(self, cupy: FakeCupy, device: int, number: int) -> None:
        self._cupy = cupy
        self.device_id = device
        self.ptr = number
        self.captured: list[Callable[[], object]] | None = None
        # Copies from pinned memory, which are done when something else is.
        self.later: list[Callable[[], object]] = []

    @property
    def done(self) -> bool:
        return not self.later

    def catch_up(self) -> None:
        while self.later:
            self.later.pop(0)()

    def use(self) -> Stream:
        self._cupy.current[self.device_id] = self
        return self

    def synchronize(self) -> None:
        self._cupy.check(self.captured is None, "cudaErrorStreamCaptureUnsupported")
        self.catch_up()
        self._cupy.told.append(("synchronize", self.ptr))

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        event.synchronize()
        self._cupy.told.append(("wait", self.ptr, event.stream))

    def begin_capture(self, mode: int | None = None) -> None:
        self._cupy.check(self.captured is None and self.ptr != self.device_id)
        self.captured = []

    def is_capturing(self) -> bool:
        return self.captured is not None

    def end_capture(self) -> Graph:
        work, self.captured = self.captured, None
        assert work is not None
        return Graph(work)


class Event:
    """A mark in a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.timed = not disable_timing
        self.stream: int | None = None
        self._of: Stream | None = None

    @property
    def done(self) -> bool:
        return self._of is None or self._of.done

    def record(self, stream: Stream | None = None) -> None:
        assert stream is not None  # the engine says which one
        self.stream, self._of = stream.ptr, stream

    def synchronize(self) -> None:
        if self._of is not None:
            self._of.catch_up()


@dataclass
class FakeCupy:
    """A machine with `count` GPUs, of `memory` bytes each."""

    count: int = 1
    memory: int = 1 << 33
    launches: int = 0
    copies: list[tuple[int, int]] = field(default_factory=list)  # kind and bytes
    grids: list[tuple[int, int, int]] = field(default_factory=list)  # blocks, threads, stream
    told: list[tuple[Any, ...]] = field(default_factory=list)  # what streams were told
    turns: bool = True  # whether the order of threads turns round with each launch

    def __post_init__(self) -> None:
        self._of_thread = threading.local()
        self._lock = threading.RLock()  # threads of the host take turns
        self._streams = {k: Stream(self, k, k) for k in range(self.count)}
        self.current = dict(self._streams)
        # What is there, by address; where each begins, in order; and how much it is.
        self._blocks: dict[int, weakref.ref[MemoryPointer]] = {}
        self._starts: list[int] = []
        self._used = 0
        self._pinned: weakref.WeakSet[PinnedMemoryPointer] = weakref.WeakSet()
        self._handles: list[Any] = [None]
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(**{
                name: getattr(self, name) for name in (
                    "getDevice", "setDevice", "getDeviceCount", "getDeviceProperties", "free",
                    "deviceGetPCIBusId", "memGetInfo", "memcpyAsync", "memsetAsync",
                    "streamSynchronize", "deviceSynchronize", "pointerGetAttributes",
                )
            }, CUDARuntimeError=CUDARuntimeError),
            driver=SimpleNamespace(**{
                name: getattr(self, name)
                for name in ("moduleLoadData", "moduleGetFunction", "launchKernel")
            }),
            alloc=self.alloc, alloc_pinned_memory=self.alloc_pinned_memory,
            get_current_stream=self.get_current_stream,
            Stream=self.new_stream, Event=Event, get_elapsed_time=self.get_elapsed_time,
        )  # fmt: skip

    # ---- devices

    @property
    def _device(self) -> int:
        return getattr(self._of_thread, "device", 0)

    def getDevice(self) -> int:
        return self._device

    def setDevice(self, device: int) -> None:
        if not 0 <= device < self.count:
            raise CUDARuntimeError("cudaErrorInvalidDevice")
        self._of_thread.device = device

    def getDeviceCount(self) -> int:
        return self.count

    def getDeviceProperties(self, device: int) -> dict[str, Any]:
        self.check(0 <= device < self.count)
        return {"name": b"Emulated GPU", "major": 9, "minor": 0, "multiProcessorCount": 4,
                "totalGlobalMem": self.memory, "sharedMemPerBlock": 49152,
                "uuid": bytes([device]) * 16}  # fmt: skip

    def deviceGetPCIBusId(self, device: int) -> str:
        return f"0000:{device:02x}:00.0"

    def streamSynchronize(self, stream: int) -> None:
        self._of_device(stream).synchronize()

    def deviceSynchronize(self) -> None:
        for stream in self._streams.values():
            if stream.device_id == self._device:
                stream.catch_up()

    def get_current_stream(self, device_id: int = -1) -> Stream:
        return self.current[self._device if device_id < 0 else device_id]

    def new_stream(self, *, non_blocking: bool = False, priority: int | None = None) -> Stream:
        number = 100 + len(self._streams)
        made = self._streams[number] = Stream(self, self._device, number)
        return made

    def get_elapsed_time(self, start_event: Event, end_event: Event) -> float:
        self.check(start_event.timed and end_event.timed)
        return 1.0

    def _of_device(self, stream: int) -> Stream:
        """A stream of the current device."""
        found = self._streams[stream]
        self.check(found.device_id == self._device)
        return found

    def _do(self, stream: int, work: Callable[[], object]) -> None:
        """Does some work, or captures it."""
        on = self._of_device(stream)
        with self._lock:
            if on.captured is None:
                on.catch_up()
                work()
            else:
                on.captured.append(work)

    # ---- memory

    def memGetInfo(self) -> tuple[int, int]:
        return self.memory - self._used, self.memory

    def free(self, ptr: int) -> None:
        self.check(ptr == 0)

    def alloc(self, size: int) -> MemoryPointer:
        if self._used + size > self.memory:
            raise OutOfMemoryError
        made = MemoryPointer(self._device, size)
        at = made.ptr
        with self._lock:
            self._blocks[at] = weakref.ref(made, lambda ref: self._end(at, size, ref))
            bisect.insort(self._starts, at)
            self._used += size
        return made

    def _end(self, at: int, size: int, ref: object) -> None:
        """A block is given back."""
        with self._lock:
            self._used -= size
            if self._blocks.get(at) is ref:
                del self._blocks[at]
                del self._starts[bisect.bisect_left(self._starts, at)]

    def alloc_pinned_memory(self, size: int) -> PinnedMemoryPointer:
        self.check(size <= self.memory, "cudaErrorMemoryAllocation")
        made = PinnedMemoryPointer(size)
        self._pinned.add(made)
        return made

    def pointerGetAttributes(self, ptr: int) -> Any:
        pinned = any(p.ptr <= ptr < p.ptr + p.size for p in self._pinned)
        device = self._owner(ptr, 0)
        kind = 1 if pinned else 0 if device is None else 2
        return SimpleNamespace(device=-2 if device is None else device, type=kind)

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        to, of = self._owner(dst, size), self._owner(src, size)
        if kind != 4:
            self.check((of is None, to is None) == {1: (True, False), 2: (False, True),
                                                      3: (False, False)}[kind])  # fmt: skip
            self.check({self._device}.issuperset({to, of} - {None}))
        self.copies.append((kind, size))
        on = self._of_device(stream)
        on.catch_up()
        if kind == 1 and on.captured is None and self.pointerGetAttributes(src).type == 1:
            on.later.append(lambda: ctypes.memmove(dst, src, size))
            return
        self._do(stream, lambda: ctypes.memmove(dst, src, size))

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:
        self.check(self._device == self._owner(ptr, size))
        self._do(stream, lambda: ctypes.memset(ptr, value, size))

    def _owner(self, at: int, size: int) -> int | None:
        """The device that memory is of; None of the host."""
        with self._lock:
            k = bisect.bisect_right(self._starts, at) - 1
            found = self._blocks[self._starts[k]]() if k >= 0 else None
        if found is not None and at < found.ptr + max(found.size, 1):
            self.check(at + size <= found.ptr + found.size)
            return found.device_id
        return None

    def check(self, holds: bool, what: str = "cudaErrorInvalidValue") -> None:
        if not holds:
            raise CUDARuntimeError(what)

    # ---- kernels

    def moduleLoadData(self, image: bytes) -> int:
        path = Path(image.decode())
        self._handles.append(ctypes.CDLL(str(path)))
        return len(self._handles) - 1

    def moduleGetFunction(self, module: int, funcname: str) -> int:
        function = self._handles[module][f"run_{funcname}"]
        asked = self._handles[module][f"sizes_{funcname}"]
        sizes = (ctypes.c_int * 64)()
        function.sizes = sizes[: asked(sizes)]
        self._handles.append(function)
        return len(self._handles) - 1

    def launchKernel(
        self, f: int, grid_dim_x: int, grid_dim_y: int, grid_dim_z: int, block_dim_x: int,
        block_dim_y: int, block_dim_z: int, shared_mem_bytes: int, stream: int, kernel_params: int,
        extra: int,
    ) -> None:  # fmt: skip
        self.check(not (shared_mem_bytes or extra))
        self.check(grid_dim_y == grid_dim_z == block_dim_y == block_dim_z == 1)
        self.check(0 < block_dim_x <= 1024 and 0 < grid_dim_x < 1 << 31)
        self.launches += 1
        self.grids.append((grid_dim_x, block_dim_x, stream))
        function, down = self._handles[f], self.turns and self.launches % 2 == 0
        sizes = function.sizes
        given = (ctypes.c_void_p * len(sizes)).from_address(kernel_params)
        # Parameters are taken when a launch is asked for.
        kept = [ctypes.create_string_buffer(ctypes.string_at(at, n), n)
                for at, n in zip(given, sizes, strict=True)]  # fmt: skip

        def work() -> None:
            params = (ctypes.c_void_p * len(kept))(*map(ctypes.addressof, kept))
            call(function, ctypes.addressof(params), grid_dim_x, block_dim_x, down)

        self._do(stream, work)
