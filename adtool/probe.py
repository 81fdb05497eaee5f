"""What `adtool doctor` tries in a process of its own: a kernel with its gradient, frameworks."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

import numpy as np

import engine


@engine.kernel
def squares(x: engine.array(dtype=float), y: engine.array(dtype=float)):  # type: ignore[no-untyped-def, valid-type]
    i = engine.tid()
    y[i] = x[i] * x[i]


def main(path: list[str]) -> None:
    """Tries what the command line names: a framework, else a kernel. path: that of programs."""
    if len(sys.argv) > 2:
        framework(sys.argv[2], path)
    else:
        kernel()


def framework(name: str, path: list[str]) -> None:
    """Says the version of a framework, and what of it cannot be watched, a line each, or `ok`.

    name: its module.

    path: where programs find it, which may be in another order than that of the tool.
    """
    from adtool.doctor import VERSION
    from engine.foreign import FRAMEWORKS, examined, version_of

    told = next(told for module, _, told in FRAMEWORKS if module == name)
    sys.path[:] = path
    with contextlib.redirect_stdout(sys.stderr):  # of what the framework itself has to say
        module = importlib.import_module(name)
        failed = examined(told, module)
    print(VERSION + version_of(module))
    print("\n".join(f"{s.seam}: {s.why}" for s in failed) or "ok")


def kernel() -> None:
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
