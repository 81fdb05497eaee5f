"""Nothing of a framework is loaded by the engine itself."""

from __future__ import annotations

import subprocess
import sys

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
