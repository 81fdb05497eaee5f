"""Prints the seconds from a fresh process's first launch to the end of a first backward pass.

Three kernels of one module, forward and backward. Run it twice on one cache folder: the first
run compiles (cold), the second finds everything compiled (warm).
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from benchmarks.frameworks.wp import load


def main() -> float:
    """Seconds for three launches on a tape and its backward pass."""
    wp, kernels = load("three_kernels")
    n = 64
    x = wp.array(np.linspace(0.1, 1.0, n), dtype=float, requires_grad=True)
    y, z = (wp.zeros(n, dtype=float, requires_grad=True) for _ in range(2))
    total = wp.zeros(1, dtype=float, requires_grad=True)
    start = time.perf_counter()
    tape = wp.Tape()
    with tape:
        wp.launch(kernels.wave, dim=n, inputs=[x], outputs=[y])
        wp.launch(kernels.blend, dim=n, inputs=[2.0, x, y], outputs=[z])
        wp.launch(kernels.energy, dim=n, inputs=[z], outputs=[total])
    tape.backward(total)
    seconds = time.perf_counter() - start
    if not np.all(np.isfinite(x.grad.numpy())):
        raise RuntimeError("the gradient is not finite")
    return seconds


if __name__ == "__main__":
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    own.write(f"{main()} 0\n")
    own.close()
    sys.exit(0)
