"""`expect_eq` and its like on the host: what they test in kernels, tested at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span

EXPECTATIONS = ("expect_eq", "expect_neq", "expect_near")


def expect(name: str, a: Any, b: Any, tolerance: float = 1e-6) -> None:
    """Raises LaunchError: E210 where the test fails, E104 where shapes or kinds differ."""
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape or x.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        raise LaunchError(Diagnostic("E104", f"{name}() cannot compare {a!r} and {b!r}",
                                     call_span()))  # fmt: skip
    if name == "expect_near":
        with np.errstate(invalid="ignore"):
            holds = bool(((np.abs(x - y) <= tolerance) | (x == y)).all())
    else:
        holds = bool((x == y).all()) == (name == "expect_eq")
    if not holds:
        raise LaunchError(Diagnostic("E210", f"{name}() failed", call_span(),
                                     notes=(f"expected {b!r}, got {a!r}",)))  # fmt: skip
