"""Kernels made from IR on the backend of a device, with arrays that are put there by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.compile.backend import Entry, Limits, Outcome

FREE = Limits(0, 0)
Array = np.ndarray[Any, Any]


class Held:
    """A copy of an array of the host, on a device."""

    def __init__(self, device: Any, values: Array) -> None:
        self._gpu = device.backend.gpu
        self._values = np.ascontiguousarray(values)
        self._owner, self.address = device.backend.allocate(0, max(values.nbytes, 1), False)
        self._gpu.write(self.address, self._values)

    @property
    def argument(self) -> bytes:
        """As kernels take one of one dimension."""
        v = self._values
        return np.array([self.address, v.shape[0], v.strides[0]], np.int64).tobytes()

    def host(self) -> Array:
        """What it holds now."""
        read: Array = self._gpu.read(self.address, self._values.nbytes)
        return read.view(self._values.dtype).reshape(self._values.shape)


def hold(device: Any, arrays: Sequence[Array]) -> list[Held]:
    return [Held(device, a) for a in arrays]


def pack(*arguments: Any) -> bytes:
    """The arguments of a kernel: arrays that are held, and numbers as NumPy has them."""
    return b"".join(a.argument if isinstance(a, Held) else a.tobytes() for a in arguments)


def ran(device: Any, entry: Entry, count: int, *arguments: Any, **more: Any) -> Outcome:
    """One launch, which has to end well."""
    done: Outcome = device.backend.run(entry, (count,), pack(*arguments), FREE, **more)
    assert done.error == 0, done.error
    return done
