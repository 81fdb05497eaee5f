"""A second kind of device, to keep the seam honest: the processor again, under another name.

Its memory counts as foreign. Python sees it through arrays that, as those of a GPU's library,
are mixed with NumPy's only by `put` and `to_host`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from engine.compile.backend import Backend, Entry, Journal, Limits, Outcome
from engine.compile.cpu import Cpu
from engine.runtime import device


class Foreign(np.ndarray):
    """An array of the device. Raises TypeError where it meets an array of the host."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        outputs = named.pop("out", ())
        _check(*inputs, *outputs)
        if outputs:
            named["out"] = tuple(_plain(x) for x in outputs)
        found = getattr(ufunc, method)(*map(_plain, inputs), **named)
        return outputs[0] if outputs else _foreign(found)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        _check(*args, *kwargs.values())
        return super().__array_function__(func, types, args, kwargs)

    def __setitem__(self, index: Any, value: Any) -> None:
        _check(self, value)
        super().__setitem__(index, value)


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Foreign) else x


def _foreign(x: Any) -> Any:
    return x.view(Foreign) if isinstance(x, np.ndarray) and x.ndim else x


def _check(*values: Any) -> None:
    hosts = [x for x in values if type(x) is np.ndarray and x.ndim]
    if hosts and any(isinstance(x, Foreign) for x in values):
        raise TypeError("an array of the host meets one of the device")


class Mirror(Cpu):
    """Computes as the CPU does. runs: how many kernels ran here."""

    kind = "mirror"
    on_host = False

    def __init__(self) -> None:
        self.runs = 0

    def view(
        self, owner: object, address: int, shape: Sequence[int],
        strides: Sequence[int] | None,
        dtype: Any, writable: bool,
    ) -> Any:  # fmt: skip
        return super().view(owner, address, shape, strides, dtype, writable).view(Foreign)

    def to_host(self, view: Any) -> Any:
        return np.array(view.view(np.ndarray))

    reader = Backend.reader  # not the host's, which reads its own memory

    def put(self, view: Any, values: Any) -> None:
        super().put(view.view(np.ndarray), _plain(values))

    def run(
        self,
        entry: Entry,
        dim: tuple[int, ...],
        args: bytes,
        limits: Limits,
        threads: tuple[int, int] | None = None,
        journal: Journal | None = None,
        spare: Callable[[], Entry] | None = None,
    ) -> Outcome:
        self.runs += 1
        return super().run(entry, dim, args, limits, threads, journal, spare)


@contextmanager
def mirror() -> Iterator[device.Device]:
    """The device `mirror:0`, registered meanwhile."""
    made = device.Device("mirror:0", Mirror())
    device.register(made)
    try:
        yield made
    finally:
        device.unregister(made)
