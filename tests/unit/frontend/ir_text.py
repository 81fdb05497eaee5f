"""Helpers of tests that look at IR as text."""

from __future__ import annotations

import textwrap
from typing import Any

import engine as wp
from engine.frontend import lower_kernel
from engine.ir.nodes import Function
from engine.ir.verify import verify

Floats = wp.array(dtype=float)
Vectors = wp.array(dtype=wp.vec3)
Matrices = wp.array2d(dtype=wp.mat22)


def lowered(kernel: Any) -> Function:
    fn = lower_kernel(kernel.func)
    verify(fn)
    return fn


def body(kernel: Any) -> str:
    """The statements of a kernel, without its first and last line."""
    lines = str(lowered(kernel)).splitlines()
    return textwrap.dedent("\n".join(lines[1:-1]))


def check(kernel: Any, expected: str) -> None:
    assert body(kernel) == textwrap.dedent(expected).strip()
