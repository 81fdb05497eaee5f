"""Nothing of a framework is loaded by the engine itself; what is there shares memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

import engine as wp
from engine.interop.base import names

FRAMEWORKS = ("torch", "jax", "paddle", "cupy", "numba", "warp")


def test_no_framework_is_imported_by_itself() -> None:
    """By a program that launches a kernel on NumPy's arrays, and on what has only DLPack."""
    program = """
import sys
import numpy as np
import engine as wp

class Foreign:
    def __init__(self, a): self.a = a
    def __dlpack__(self, **kw): return self.a.__dlpack__(**kw)
    def __dlpack_device__(self): return self.a.__dlpack_device__()

a, b = np.ones(3, np.float32), Foreign(np.full(3, 2.0, np.float32))
wp.copy(wp.array(a, copy=False), wp.from_dlpack(b))
assert a.tolist() == [2.0, 2.0, 2.0]
print([m for m in sys.argv[1:] if m in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *FRAMEWORKS], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_adapters_import_no_framework() -> None:
    """They are loaded where an object is there, and must not be what loads the framework."""
    program = """
import sys
from engine.interop.base import load
frameworks, files = (a.split() for a in sys.argv[1:])
for name in files:
    load(name)
print([m for m in frameworks if m in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, " ".join(FRAMEWORKS), " ".join(names())],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "[]", done.stderr


@wp.kernel
def add_one(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


def test_launches_take_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.zeros(4)
    wp.launch(add_one, dim=4, inputs=[t])
    assert (t == 1.0).all()
    assert wp.array(t).numpy().tolist() == [1.0] * 4
