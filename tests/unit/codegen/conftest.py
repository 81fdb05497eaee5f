"""Runs hand-made IR natively."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.compile.backend import Entry
from engine.compile.cpu import runner
from engine.compile.cpu.compiler import compile_functions
from engine.compile.cpu.runner import LaunchState, new_launch, release
from engine.ir import interp
from engine.ir.nodes import Function
from engine.ir.verify import verify
from engine.lang.types import ArrayType, Type, scalar_of
from tests.unit.codegen.native_ir import copy_with_strides


def pack(value: Any, t: Type) -> bytes:
    if isinstance(t, ArrayType):
        assert value.dtype == scalar_of(t).numpy
        fields = [value.ctypes.data, *value.shape[: t.ndim], *value.strides[: t.ndim]]
        return np.array(fields, np.int64).tobytes()
    raw = np.asarray(value, scalar_of(t).numpy).tobytes()
    return raw + bytes(-len(raw) % 8)


def call(entry: Entry, fn: Function, args: Sequence[Any], launch: LaunchState) -> None:
    packed = b"".join(pack(a, p.type) for a, p in zip(args, fn.params, strict=True))
    runner.call(entry, packed, launch)


def run(fn: Function, args: Sequence[Any], dim: int | Sequence[int]) -> None:
    """Verifies, compiles and runs a kernel; arrays in `args` change in place."""
    verify(fn)
    (entry,) = compile_functions([fn])
    launch = new_launch((dim,) if isinstance(dim, int) else dim)
    try:
        call(entry, fn, args, launch)
        assert launch.error == 0, launch.error
        assert launch.stack.size == 0
    finally:
        release(launch)


@pytest.fixture(name="run", scope="session")
def _run() -> Any:
    return run


@pytest.fixture(name="call", scope="session")
def _call() -> Any:
    return call


@pytest.fixture
def same(run: Any) -> Any:
    """Runs a kernel natively and in the interpreter; both must leave the same bits."""

    def check(fn: Function, args: Sequence[Any], dim: int | Sequence[int]) -> None:
        mine = [copy_with_strides(a) for a in args]
        run(fn, mine, dim)
        interp.run(fn, args, dim)
        for p, a, m in zip(fn.params, args, mine, strict=True):
            if isinstance(a, np.ndarray) and isinstance(p.type, ArrayType):
                np.testing.assert_array_equal(m, a, err_msg=p.name)

    return check
