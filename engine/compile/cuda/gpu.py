"""All calls of CuPy that run something: memory, streams and launches of one GPU.

Nothing else of the package imports CuPy for that, so that what stands in for it in tests is
small. Calls are those of CUDA's runtime and driver, on CuPy's memory pool and current stream.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.compile.backend import NotCaptured, Properties
from engine.compile.cuda.pinned import Pinned, release
from engine.lang.strided import byte_range

# Kinds of copies, as the runtime counts them.
_TO_DEVICE, _TO_HOST, _ON_DEVICE, _ANYWHERE = 1, 2, 3, 4
_PAGED = 0  # the kind of memory, of the host, that devices do not read by themselves


class Block:
    """Memory of CuPy's pool, which gives it to later work of the stream that it was taken on.

    Where other streams have work, that may use it, too, and the pool is told to wait.
    """

    __slots__ = ("__weakref__", "_gpu", "_memory", "_stream")

    def __init__(self, gpu: Gpu, memory: Any, stream: Any) -> None:
        self._gpu = gpu
        self._memory = memory
        self._stream = stream

    def __del__(self) -> None:
        gpu = self._gpu
        if gpu._taken is not None:
            gpu._taken.append(self._memory)
            return
        if len(gpu.streams) > 1 or (gpu.streams and self._stream.ptr not in gpu.streams):
            with suppress(Exception):  # at the end of the process nothing may be left of CuPy
                for number, stream in list(gpu.streams.items()):
                    if number != self._stream.ptr:
                        gpu.follow(self._stream, stream)


class Gpu:
    """One GPU, by its number."""

    def __init__(self, cupy: Any, ordinal: int) -> None:
        self.ordinal = ordinal
        self._cupy = cupy
        self._cuda = cupy.cuda
        self._runtime = cupy.cuda.runtime
        self._driver = cupy.cuda.driver
        self._ready = threading.local()
        # Streams that had work, by number, where there was ever more than one.
        self.streams: dict[int, Any] = {}
        # While work is captured: memory that has to stay, and the thread.
        self._taken: list[Any] | None = None
        self._capturing = 0
        self._properties: Properties | None = None

    @property
    def properties(self) -> Properties:
        """Asks once."""
        if self._properties is None:
            found = self._runtime.getDeviceProperties(self.ordinal)
            name = found["name"]
            uuid = found.get("uuid", b"")  # bytes, or a structure of them
            uuid = uuid.get("bytes", b"") if isinstance(uuid, dict) else uuid
            self._properties = Properties(
                name=name.decode() if isinstance(name, bytes) else str(name),
                arch=f"sm_{found['major']}{found['minor']}",
                sm_count=int(found["multiProcessorCount"]),
                total_memory=int(found["totalGlobalMem"]),
                shared_memory=int(found["sharedMemPerBlock"]),
                uuid=uuid[:16].hex() if isinstance(uuid, bytes) else "",
                pci_bus_id=str(self._runtime.deviceGetPCIBusId(self.ordinal)),
            )
        return self._properties

    @contextmanager
    def current(self) -> Iterator[None]:
        """Makes it the one that the runtime's calls are about, in this thread."""
        before = self.enter()
        try:
            yield
        finally:
            self.leave(before)

    def enter(self) -> int:
        """The same; `leave` takes what this gives."""
        before: int = self._runtime.getDevice()
        if before != self.ordinal or not getattr(self._ready, "done", False):
            self._runtime.setDevice(self.ordinal)
            self._runtime.free(0)  # makes its context, and the driver's calls see it
            self._ready.done = True
        return before

    def leave(self, before: int) -> None:
        """Makes another one current again."""
        if before != self.ordinal:
            self._runtime.setDevice(before)

    @property
    def stream(self) -> int:
        """CuPy's current stream on it."""
        return int(self._cuda.get_current_stream(self.ordinal).ptr)

    def new_stream(self, priority: int = 0) -> Any:
        """A stream of its own, which waits for no other one by itself."""
        with self.current():
            return self._cuda.Stream(non_blocking=True, priority=priority)

    def current_stream(self) -> Any:
        """CuPy's current stream on it, as CuPy has it."""
        return self._cuda.get_current_stream(self.ordinal)

    def use(self, stream: Any) -> None:
        """Makes a stream the current one of this thread."""
        with self.current():
            stream.use()

    def new_event(self, timing: bool) -> Any:
        """A mark for streams."""
        with self.current():
            return self._cuda.Event(disable_timing=not timing)

    def follow(self, stream: Any, other: Any) -> None:
        """Makes a stream wait for what another one has to do now."""
        with self.current():
            stream.wait_event(other.record(self._cuda.Event(disable_timing=True)))

    def captured(self, work: Callable[[], object]) -> Callable[[], None]:
        """See `Streams`. The work goes to a stream of its own, whose memory nobody else gets."""
        stream, before = self.new_stream(), self.current_stream()
        self._taken, self._capturing = [stream], threading.get_ident()
        try:
            self.use(stream)
            with self.current():
                stream.begin_capture()
                done = False
                try:
                    work()
                    done = True
                finally:
                    try:
                        graph = stream.end_capture()
                    except Exception as e:
                        if done:
                            raise NotCaptured(f"the device says: {e}") from None
        finally:
            kept, self._taken, self._capturing = self._taken, None, 0
            self.use(before)

        def launch() -> None:
            with self.current():
                graph.launch(self.current_stream())
            del kept[len(kept) :]  # which have to stay

        return launch

    def _by_host(self, what: str) -> None:
        if self._capturing == threading.get_ident():
            raise NotCaptured(what)

    def milliseconds(self, first: Any, last: Any) -> float:
        """The time from one event to another."""
        return float(self._cuda.get_elapsed_time(first, last))

    # ---- memory

    @property
    def free_memory(self) -> int:
        """Bytes that nobody has."""
        with self.current():
            return int(self._runtime.memGetInfo()[0])

    def allocate(self, nbytes: int) -> tuple[object, int]:
        """Memory of CuPy's pool: what keeps it, and its address. Raises MemoryError."""
        with self.current():
            memory = self._cuda.alloc(max(nbytes, 1))
            stream = self._cuda.get_current_stream(self.ordinal)
        return Block(self, memory, stream), int(memory.ptr)

    def clear(self, address: int, nbytes: int) -> None:
        """Sets bytes to zero."""
        if nbytes:
            with self.current():
                self._runtime.memsetAsync(address, 0, nbytes, self.stream)

    def write(self, address: int, data: NDArray[Any], pinned: Pinned | None = None) -> None:
        """Copies contiguous memory of the host to the device.

        pinned: what keeps the memory, where it may be read later. Else it may change afterwards.
        """
        self._by_host("the host gives values")
        if data.nbytes:
            with self.current():
                self._copy(address, data.ctypes.data, data.nbytes, _TO_DEVICE)
                if self._runtime.pointerGetAttributes(data.ctypes.data).type == _PAGED:
                    return  # of which the runtime has a copy by now
                if pinned is None:
                    self._runtime.streamSynchronize(self.stream)
                else:
                    event = self._cuda.Event(disable_timing=True)
                    pinned.read_until(self.current_stream().record(event))

    def allocate_pinned(self, nbytes: int, zero: bool) -> tuple[Pinned, int]:
        """Memory of CuPy's pool of pinned memory. Raises MemoryError."""
        release()
        with self.current():
            try:
                pages = self._cuda.alloc_pinned_memory(max(nbytes, 1))
            except self._runtime.CUDARuntimeError as e:
                raise MemoryError(str(e)) from None
        if zero:
            ctypes.memset(pages.ptr, 0, nbytes)
        return Pinned(pages), int(pages.ptr)

    def read(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """A copy on the host; waits for the stream."""
        self._by_host("the host reads values")
        out = np.empty(nbytes, np.uint8)
        if nbytes:
            with self.current():
                self._copy(out.ctypes.data, address, nbytes, _TO_HOST)
                self._runtime.streamSynchronize(self.stream)
        return out

    def move(self, to: int, of: int, nbytes: int, anywhere: bool = False) -> None:
        """Copies from address `of` to `to`. anywhere: one of them may be of another GPU."""
        if nbytes:
            before = self.enter()
            try:
                self._copy(to, of, nbytes, _ANYWHERE if anywhere else _ON_DEVICE)
            finally:
                self.leave(before)

    def _copy(self, to: int, of: int, nbytes: int, kind: int) -> None:
        stream = self._cuda.get_current_stream(self.ordinal)
        if self._taken is None:
            self.streams.setdefault(stream.ptr, stream)
        self._runtime.memcpyAsync(to, of, nbytes, kind, stream.ptr)

    def array(
        self, owner: object, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any
    ) -> Any:
        """Memory as an array of CuPy, which keeps the owner alive."""
        lo, hi = byte_range(address, tuple(shape), tuple(strides), np.dtype(dtype).itemsize)
        with self.current():
            memory = self._cuda.UnownedMemory(lo, max(hi - lo, 1), owner, self.ordinal)
            at = self._cuda.MemoryPointer(memory, address - lo)
            return self._cupy.ndarray(tuple(shape), np.dtype(dtype), at, tuple(strides))

    def taken(self, source: Any) -> Any:
        """An object with `__dlpack__` as an array of CuPy."""
        with self.current():
            return self._cupy.from_dlpack(source)

    def device_of(self, address: int) -> int:
        """Which GPU memory is on."""
        return int(self._runtime.pointerGetAttributes(address).device)

    # ---- launches

    def load(self, code: bytes) -> Any:
        """The module of some machine code, or PTX."""
        with self.current():
            return self._driver.moduleLoadData(code)

    def function(self, module: Any, symbol: str) -> Any:
        """A kernel of a module."""
        with self.current():
            return self._driver.moduleGetFunction(module, symbol)

    def launch(self, function: Any, blocks: int, threads: int, params: Any) -> None:
        """Launches a kernel. params: what `parameters` made."""
        before = self.enter()
        try:
            stream = self._cuda.get_current_stream(self.ordinal)
            number = stream.ptr
            if number not in self.streams and self._taken is None:
                self.streams[number] = stream
            self._driver.launchKernel(
                function, blocks, 1, 1, threads, 1, 1, 0, number, ctypes.addressof(params), 0
            )
        finally:
            self.leave(before)

    def wait(self, stream: int) -> None:
        """Waits for another stream, by its number as interfaces of arrays give it."""
        mine = self.stream
        if stream != (mine or 1):
            with self.current():
                self._runtime.streamSynchronize(stream)

    def synchronize(self) -> None:
        """Waits for all that the device has to do."""
        self._by_host("the host waits")
        with self.current():
            self._runtime.deviceSynchronize()


def parameters(*params: Any) -> Any:
    """Where the parameters of a launch are, as ctypes has them, which have to stay meanwhile."""
    return (ctypes.c_void_p * len(params))(*map(ctypes.addressof, params))


@cache
def gpus() -> tuple[Gpu, ...]:
    """The GPUs that CuPy sees; none where it is not installed, or there are none."""
    if find_spec("cupy") is None or not _has_driver():
        return ()
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except Exception:  # as many kinds as there are ways to lack a GPU
        return ()
    return tuple(Gpu(cupy, k) for k in range(count))


def _has_driver() -> bool:
    """Whether the machine has CUDA's driver, without which CuPy need not be loaded."""
    for name in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            continue
    return False


def version() -> tuple[int, int]:
    """The versions of CUDA that the driver and CuPy's runtime are of, as CUDA counts them."""
    import cupy

    runtime = cupy.cuda.runtime
    return int(runtime.driverGetVersion()), int(runtime.runtimeGetVersion())
