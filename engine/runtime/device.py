"""Devices: where arrays live and kernels run. The CPU is the only one so far."""

from __future__ import annotations

import importlib.util
from contextvars import ContextVar, Token
from dataclasses import dataclass

from engine.diagnostics import LaunchError
from engine.runtime.errors import fail


@dataclass(frozen=True, slots=True)
class Device:
    """A place to compute. Prints and compares as its alias (`"cpu"`)."""

    alias: str
    is_cpu: bool = True

    @property
    def is_cuda(self) -> bool:
        """True for a GPU."""
        return not self.is_cpu

    @property
    def name(self) -> str:
        """A name for people."""
        return self.alias.upper()

    def __str__(self) -> str:
        return self.alias

    def __repr__(self) -> str:
        return repr(self.alias)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return self.alias == other.alias
        return isinstance(other, str) and other in (self.alias, f"{self.alias}:0")

    def __hash__(self) -> int:
        return hash(self.alias)


DeviceLike = Device | str | None

CPU = Device("cpu")
_current: ContextVar[Device] = ContextVar("engine_device", default=CPU)


def get_device(ident: DeviceLike = None) -> Device:
    """The device that `ident` names, the current one for None. Raises LaunchError (E208)."""
    if ident is None:
        return _current.get()
    if isinstance(ident, Device):
        return ident
    name = ident.strip().lower() if isinstance(ident, str) else ""
    if name in ("cpu", "cpu:0"):
        return CPU
    if name == "cuda" or name.startswith("cuda:"):
        missing = (
            "CuPy is not installed" if not _has_cupy() else "this version runs kernels on the CPU"
        )
        raise fail("E208", f"device {ident!r} is not available", missing, help='use device="cpu"')
    raise fail("E208", f"unknown device {ident!r}", help='use "cpu"')


def set_device(ident: DeviceLike) -> None:
    """Makes a device the current one of this thread (or task)."""
    _current.set(get_device(ident))


def get_preferred_device() -> Device:
    """The best device there is."""
    return CPU


def get_devices() -> list[Device]:
    """Every device that can be used."""
    return [CPU]


def get_cuda_device_count() -> int:
    """How many GPUs can be used."""
    return 0


def is_cpu_available() -> bool:
    """True: the CPU is always there."""
    return True


def is_cuda_available() -> bool:
    """True where kernels can run on a GPU."""
    return False


def is_device_available(device: DeviceLike) -> bool:
    """True where `get_device(device)` finds a device."""
    try:
        get_device(device)
    except LaunchError:
        return False
    return True


def synchronize() -> None:
    """Waits for all launches to end. Launches on the CPU have ended when they return."""


def synchronize_device(device: DeviceLike = None) -> None:
    """Waits for all launches on a device to end."""
    get_device(device)


class ScopedDevice:
    """`with ScopedDevice("cpu"):` makes a device the current one inside the block."""

    def __init__(self, device: DeviceLike) -> None:
        self.device = get_device(device)
        self._tokens: list[Token[Device]] = []

    def __enter__(self) -> Device:
        self._tokens.append(_current.set(self.device))
        return self.device

    def __exit__(self, *exc: object) -> None:
        _current.reset(self._tokens.pop())


def _has_cupy() -> bool:
    return importlib.util.find_spec("cupy") is not None
