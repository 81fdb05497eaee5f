"""Gradients of a tape's arrays, and of structs that hold arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np

from engine.runtime import events, transfer
from engine.runtime.array import array
from engine.runtime.device import HOST
from engine.runtime.structs import Struct
from engine.tape.records import Record


class Gradients(dict[Any, Any]):
    """Gradients by array, and by struct where one is asked for. former: arrays of old records."""

    def __init__(self, former: Collection[array]) -> None:
        self._former = former

    def __missing__(self, key: Any) -> Any:
        arrays = list(_arrays_in(key))
        if not any(a in self or a in self._former for a in arrays):
            if events.everywhere and isinstance(key, array):
                events.asked(key)
            raise KeyError(key)
        return gradient_of(key)

    def __contains__(self, key: Any) -> bool:
        arrays = _arrays_in(key) if isinstance(key, Struct) else ()
        return super().__contains__(key) or any(a in self for a in arrays)

    def get(self, key: Any, default: Any = None) -> Any:
        if key in self:
            return self[key]
        if events.everywhere and isinstance(key, array) and not key.requires_grad:
            events.asked(key)
        return default


def _arrays_in(value: Any) -> Iterator[array]:
    if isinstance(value, array):
        yield value
    elif isinstance(value, Struct):
        for item in vars(value).values():
            yield from _arrays_in(item)


def gradient_of(value: Any) -> Any:
    """The gradient of an array; of a struct, one with gradients for its arrays; else None."""
    if isinstance(value, array):
        return value.grad
    if not isinstance(value, Struct):
        return None
    out = copy(value)
    for name, item in vars(value).items():
        if isinstance(item, (array, Struct)):
            setattr(out, name, gradient_of(item))
    return out


def clear(records: Iterable[Record], more: Iterable[array]) -> None:
    """Sets the gradients of arrays of records, and of others, to zero, each once."""
    done: set[int] = set()
    for r in records:
        for a in r.graded:
            if a is not None:
                _clear(a, done)
    for a in more:
        _clear(a, done)


def _clear(a: array, done: set[int]) -> None:
    grad = a._grad
    if grad is None and (a._origin is not None or a._shared is not None):
        grad = a.existing_grad
    if grad is not None and id(grad) not in done:
        done.add(id(grad))
        transfer.zero(grad)


def seed(a: array, cotangent: Any) -> None:
    """Writes a cotangent over an array's gradient: an array, a NumPy array, or 1.0 for one number.

    Raises LaunchError (E206).
    """
    if cotangent.__class__ is array:
        cotangent = cotangent._parts
    grad = a.grad
    assert grad is not None
    storage = grad.storage
    if not grad.is_contiguous or storage.guard is not None or not storage.writable:
        transfer.check_writable(grad)
    storage.before_write(grad.lo, grad.hi)
    if cotangent.__class__ is float:
        transfer.put_one(grad)
    elif (
        storage.device is HOST and cotangent.nbytes < transfer.VAST
        and cotangent.dtype is grad._parts.dtype
    ):  # fmt: skip
        grad._parts[...] = cotangent  # as `_put` does, without a question
    else:
        grad._put(cotangent)


def one_of(a: array) -> bytes | None:
    """The bytes of the number 1 as an element; None for types that NumPy does not have."""
    info = a._info
    if info.one is None and not info.opaque:
        info.one = np.ones((), info.numpy).tobytes()
    return info.one
