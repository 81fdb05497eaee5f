"""`register_ffi_callback`: any Python function as a target of `jax.ffi.ffi_call`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.interop.ffi.library import numbers_at, register, text_at
from engine.interop.ffi.signature import require_jax
from engine.lang.strided import row_major
from engine.lang.types import BFLOAT16
from engine.runtime import events
from engine.runtime.device import HOST
from engine.runtime.launch_errors import fail

# NumPy's types by XLA's numbers.
_TYPES: dict[int, Any] = {
    1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.uint8, 7: np.uint16,
    8: np.uint32, 9: np.uint64, 10: np.float16, 11: np.float32, 12: np.float64, 15: np.complex64,
    18: np.complex128,
}  # fmt: skip
_BFLOAT16 = 16
_ARRAY, _SCALAR, _STRING = 1, 3, 4  # kinds of attributes
_EXECUTE = 3


@dataclass(frozen=True)
class ExecutionContext:
    """Where a call runs. stage: XLA's number of it. stream: of a GPU, 0 on the CPU."""

    stage: int = _EXECUTE
    stream: int = 0


def register_ffi_callback(
    name: str, func: Callable[[list[Any], list[Any], dict[str, Any], Any], None],
    graph_compatible: bool = True,
) -> None:  # fmt: skip
    """Registers `func(inputs, outputs, attrs, ctx)` as what `jax.ffi.ffi_call(name, ...)` calls.

    Args:
        name: of the target; none may have it yet.
        func: gets lists of NumPy arrays over the memory of JAX (inputs are read-only, and none
            may be kept), the attributes of the call by name, and an `ExecutionContext`. Launches
            take these arrays.
        graph_compatible: accepted for GPUs.

    What `func` raises arrives as an error of JAX with the message. Raises LaunchError (E202) for
    what is no function, CompilerError as a launch does.
    """
    del graph_compatible
    require_jax()
    if not isinstance(name, str) or not callable(func):
        raise fail("E202", "register_ffi_callback takes a name and a function, got "
                   f"{name!r:.40} and {func!r:.40}")  # fmt: skip

    def called(words: list[int]) -> None:
        inputs, outputs, attrs, stage = _read(words)
        before = events.without_recording()
        try:
            func(inputs, outputs, attrs, ExecutionContext(stage))
        finally:
            events.restore(before)

    register(name, called)


def _read(words: list[int]) -> tuple[list[Any], list[Any], dict[str, Any], int]:
    """A call as the handler wrote it down."""
    left = iter(words)
    count_in, count_out, count_attrs, stage = (next(left) for _ in range(4))

    def buffer(writable: bool) -> Any:
        number, address, rank = next(left), next(left), next(left)
        shape = tuple(next(left) for _ in range(rank))
        return _array(number, address, shape, writable)

    inputs = [buffer(False) for _ in range(count_in)]
    outputs = [buffer(True) for _ in range(count_out)]
    attrs: dict[str, Any] = {}
    for _ in range(count_attrs):
        kind, number, name, length, address, count = (next(left) for _ in range(6))
        key = text_at(name, length).decode()
        if kind == _STRING:
            attrs[key] = text_at(address, count).decode()
        elif kind in (_SCALAR, _ARRAY):
            values = numbers_at(address, count, _type(number))
            attrs[key] = values if kind == _ARRAY else values[0].item()
    return inputs, outputs, attrs, stage


def _type(number: int) -> Any:
    if number == _BFLOAT16:
        return np.dtype(BFLOAT16.numpy)
    if number not in _TYPES:
        raise fail("E202", f"a buffer has a type that NumPy has not (XLA's number {number})")
    return np.dtype(_TYPES[number])


def _array(number: int, address: int, shape: tuple[int, ...], writable: bool) -> Any:
    """Memory of XLA as a NumPy array."""
    dtype = _type(number)
    steps = (
        np.empty((0,) * len(shape), dtype).strides
        if 0 in shape
        else row_major(shape, dtype.itemsize)
    )
    raw = f"V{dtype.itemsize}" if number == _BFLOAT16 else dtype
    found = HOST.backend.view(None, address, shape, steps, raw, writable)
    return found.view(dtype)
