"""A kernel that `adtool doctor` compiles and runs, with its gradient."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import engine


@engine.kernel
def squares(x: engine.array(dtype=float), y: engine.array(dtype=float)):  # type: ignore[no-untyped-def, valid-type]
    i = engine.tid()
    y[i] = x[i] * x[i]


def main() -> None:
    """Says `ok` where results and gradients are right."""
    given = np.arange(8, dtype=np.float32)
    x: Any = engine.array(given, dtype=float, requires_grad=True)
    y: Any = engine.zeros(8, dtype=float, requires_grad=True)
    with engine.Tape() as tape:
        engine.launch(squares, dim=8, inputs=[x], outputs=[y])
    tape.backward(grads={y: engine.ones(8, dtype=float)})
    if not (np.array_equal(y.numpy(), given**2) and np.array_equal(x.grad.numpy(), 2 * given)):
        sys.exit("a kernel gives wrong numbers")
    print("ok")
