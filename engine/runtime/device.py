"""Devices: where arrays live and kernels run. Each kind has a backend, which does the work."""

from __future__ import annotations

import os
from contextvars import ContextVar, Token
from dataclasses import field
from functools import cache
from typing import Any

from engine import config
from engine.classes import dataclass
from engine.compile.backend import Backend, Properties
from engine.compile.cpu import CPU
from engine.diagnostics import LaunchError
from engine.lang.stand_ins import make_stand_in
from engine.runtime.launch_errors import fail

# They may be mentioned; what uses them is refused.
_ALLOCATORS = ("default_allocator", "pinned_allocator", "get_allocator")


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A place to compute. Prints and compares as its alias (`"cpu"`, `"cuda:0"`).

    backend: what does the work there. ordinal: which one of its kind it is.
    """

    alias: str
    backend: Backend = field(repr=False)
    ordinal: int = 0

    @property
    def is_cpu(self) -> bool:
        """True where memory is the host's."""
        return self.backend.on_host

    @property
    def is_cuda(self) -> bool:
        """True for a GPU."""
        return self.backend.kind == "cuda"

    @property
    def name(self) -> str:
        """A name for people: of a GPU, that of its maker."""
        found = self._properties
        return self.alias.upper() if found is None else found.name

    # ---- what programs ask of GPUs

    is_ipc_supported = is_managed_memory_supported = False
    is_concurrent_managed_access_supported = is_cpu_gpu_atomic_supported = False
    is_cpu_memory_access_from_gpu_supported = is_gpu_memory_access_from_cpu_supported = False
    context = null_stream = None

    @property
    def _properties(self) -> Properties | None:
        return self.backend.properties

    @property
    def arch(self) -> int:
        """The compute capability of a GPU as a number, such as 90; 0 of the CPU."""
        found = self._properties
        return 0 if found is None else int(found.arch.removeprefix("sm_"))

    @property
    def sm_count(self) -> int:
        """Multiprocessors of a GPU; 0 of the CPU."""
        found = self._properties
        return 0 if found is None else found.sm_count

    @property
    def max_shared_memory_per_block(self) -> int:
        """Bytes of memory that the threads of a block share; 0 of the CPU."""
        found = self._properties
        return 0 if found is None else found.shared_memory

    @property
    def uuid(self) -> str | None:
        """The GPU's own name for itself; None of the CPU."""
        found = self._properties
        return None if found is None else found.uuid

    @property
    def pci_bus_id(self) -> str | None:
        """Where the GPU is; None of the CPU."""
        found = self._properties
        return None if found is None else found.pci_bus_id

    @property
    def has_context(self) -> bool:
        """Whether it is a GPU: its context is made when it is first needed."""
        return self.is_cuda

    is_primary = is_uva = is_cubin_supported = has_context
    is_mempool_supported = is_mempool_enabled = has_context

    @property
    def is_capturing(self) -> bool:
        """Whether a graph is captured."""
        from engine.runtime import events

        return events.graph() is not None

    has_stream = True

    @property
    def stream(self) -> Any:
        """The stream that launches go to."""
        from engine.runtime.streams import get_stream

        return get_stream(self)

    @property
    def total_memory(self) -> int:
        """Bytes of memory that the device has; 0 where the machine does not tell."""
        found = self._properties
        return _pages("SC_PHYS_PAGES") if found is None else found.total_memory

    @property
    def free_memory(self) -> int:
        """Bytes of it that nobody uses; 0 where the machine does not tell."""
        found = self.backend.free_memory
        return _pages("SC_AVPHYS_PAGES") if found is None else found

    def can_access(self, other: Device) -> bool:
        """Whether kernels here can use memory of another device."""
        return self == other

    def __getattr__(self, name: str) -> Any:
        if name not in _ALLOCATORS:
            raise AttributeError(f"'Device' object has no attribute {name!r}")
        return make_stand_in(
            f"Device.{name}", "memory pools and allocators", "leave out the allocator"
        )

    def __str__(self) -> str:
        return self.alias

    def __repr__(self) -> str:
        return repr(self.alias)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return self.alias == other.alias
        return isinstance(other, str) and other in (self.alias, *_names(self))

    def __hash__(self) -> int:
        return hash(self.alias)


def _pages(name: str) -> int:
    try:
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def _names(device: Device) -> tuple[str, ...]:
    """What a device is called beside its alias: the kind alone stands for the first one."""
    kind = device.backend.kind
    return (f"{kind}:{device.ordinal}", *([kind] if device.ordinal == 0 else []))


DeviceLike = Device | str | None

# The one whose memory Python and NumPy see. The others are registered beside it.
HOST = Device("cpu", CPU)
DEVICES: list[Device] = [HOST]
others: list[Device] = []  # all that were ever registered
_current: ContextVar[Device | None] = ContextVar("engine_device", default=None)


def register(device: Device) -> None:
    """Makes a device available by its name. Raises ValueError where the name is taken."""
    if device.alias in {d.alias for d in DEVICES}:
        raise ValueError(f"there is a device {device.alias!r} already")
    DEVICES.append(device)
    others.append(device)


def unregister(device: Device) -> None:
    """Forgets a device; arrays that live there stay as they are."""
    DEVICES.remove(device)


def get_device(ident: DeviceLike = None) -> Device:
    """The device that `ident` names, the current one for None. Raises LaunchError (E208).

    The current one is that of `set_device` or `ScopedDevice`, else `config.device`.
    """
    if ident is None:
        found = _current.get()
        if found is not None:
            return found
        ident = config.device
        if ident is HOST.alias:
            return HOST
    if isinstance(ident, Device):
        return ident
    if isinstance(ident, str):  # others may compare to anything
        for device in DEVICES:
            if device.alias == ident:
                return device
    name = ident.strip().lower() if isinstance(ident, str) else ""
    is_gpu = name == "cuda" or name.startswith("cuda:")
    if is_gpu:
        look_for_gpus()
    for device in DEVICES:
        if device == name:
            return device
    if is_gpu:
        raise fail(
            "E208", f"device {ident!r} is not available", _missing(), help='use device="cpu"'
        )
    raise fail("E208", f"unknown device {ident!r}", help='use "cpu"')


def set_device(ident: DeviceLike) -> None:
    """Makes a device the current one of this thread (or task)."""
    _current.set(get_device(ident))


def set_current(device: Device) -> Token[Device | None]:
    """Makes a device the current one; the token takes it back."""
    return _current.set(device)


@cache
def look_for_gpus() -> None:
    """Registers the GPUs that there are, once: where somebody asks for them.

    Programs that do not ask need not wait for CuPy.
    """
    if not _has_cupy():
        return
    from engine.compile.cuda import Cuda
    from engine.compile.cuda.gpu import gpus

    for gpu in gpus():
        register(Device(f"cuda:{gpu.ordinal}", Cuda(gpu=gpu), gpu.ordinal))


def _missing() -> str:
    found = get_cuda_device_count()
    if found:
        return f"there {'is one GPU' if found == 1 else f'are {found} GPUs'}"
    return "CuPy sees no GPU" if _has_cupy() else "CuPy is not installed"


def get_preferred_device() -> Device:
    """The best device there is: the first GPU, else the CPU."""
    return next(iter(get_cuda_devices()), HOST)


def get_devices() -> list[Device]:
    """Every device that can be used."""
    look_for_gpus()
    return list(DEVICES)


def get_cuda_devices() -> list[Device]:
    """The GPUs that can be used."""
    return [d for d in get_devices() if d.is_cuda]


def get_cuda_device_count() -> int:
    """How many GPUs can be used."""
    return len(get_cuda_devices())


def is_cpu_available() -> bool:
    """True: the CPU is always there."""
    return True


def is_cuda_available() -> bool:
    """True where kernels can run on a GPU."""
    return get_cuda_device_count() > 0


def is_device_available(device: DeviceLike) -> bool:
    """True where `get_device(device)` finds a device."""
    try:
        get_device(device)
    except LaunchError:
        return False
    return True


def synchronize() -> None:
    """Waits for all launches to end. Launches on the CPU have ended when they return."""
    for device in DEVICES:
        device.backend.synchronize()


def synchronize_device(device: DeviceLike = None) -> None:
    """Waits for all launches on a device to end."""
    get_device(device).backend.synchronize()


class ScopedDevice:
    """`with ScopedDevice("cpu"):` makes a device the current one inside the block."""

    def __init__(self, device: DeviceLike) -> None:
        self.device = get_device(device)
        self._tokens: list[Token[Device | None]] = []

    def __enter__(self) -> Device:
        self._tokens.append(_current.set(self.device))
        return self.device

    def __exit__(self, *exc: object) -> None:
        _current.reset(self._tokens.pop())


def _has_cupy() -> bool:
    from importlib.util import find_spec

    return find_spec("cupy") is not None
