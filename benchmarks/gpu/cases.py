"""Rows of the GPU: those of the CPU, at sizes that fill a GPU, with targets of their own.

What a pass moves is counted in arrays of `size` float32 values, all of it: backward, the seed is
put in place (2), the adjoint reads and clears it (2), reads what derivatives need, and adds to
gradients (2 for each).
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

from benchmarks.case import Case, Ready
from benchmarks.data import CAPTURED
from benchmarks.kernel_cases import KERNELS
from benchmarks.launch_cases import LAUNCHES
from benchmarks.targets import Target, at_most

# By row: how many elements, and what the passes move where memory bounds them.
SIZES: dict[str, tuple[int, tuple[float, float] | None]] = {
    "saxpy": (1 << 26, (3, 8)),
    "elementwise": (1 << 26, (2, 7)),
    "nbody": (1 << 13, None),
    "stencil": (1 << 26, (2, 6)),
    "springs": (1 << 23, None),
    "random_springs": (1 << 23, None),
    "loop": (1 << 24, None),
    "cross": (1 << 24, (9, 30)),
    "sum": (1 << 26, (1, 3)),
    "maximum": (1 << 24, None),
}
_COPY = (Target("bandwidth", 0.9),)
_REPLAYED = {"captured": ((at_most(3e-6),), (at_most(3e-6),))}
# What has no row: a cell of one size for each framework, or nothing that a GPU is asked for.
_OMITTED = ("arrays",)


def _of(case: Case) -> Case:
    if case.name in SIZES:
        size, moved = SIZES[case.name]
        targets = ((), ()) if moved is None else (_COPY, _COPY)
        return replace(case, size=size, moved=moved, targets=targets, note="")
    notes = {"captured": case.note, "trajectory": case.note}
    found = _REPLAYED.get(case.name, ((), ()))
    return replace(case, targets=found, note=notes.get(case.name, ""))


def make_graph(wp: Any, kernels: Any, size: int) -> Ready:
    """The same launches in a CUDA graph, which a stream of CuPy captures."""
    cupy = importlib.import_module("cupy")
    x, y = wp.full(1, 3.0, dtype=float), wp.zeros(1, dtype=float)
    wp.launch(kernels.tiny, dim=1, inputs=[x], outputs=[y])
    wp.synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for _ in range(CAPTURED):
            wp.launch(kernels.tiny, dim=1, inputs=[x], outputs=[y])
        graph = stream.end_capture()
    now = cupy.cuda.get_current_stream()
    return Ready(lambda: graph.launch(now), None, [y])


GRAPH = Case(
    "graph", "100 launches, captured by a stream of CuPy", 1, 1, make_graph, inner=5, per=CAPTURED,
    group="launches", passes=("replay", ""), targets=((at_most(3e-6),), ()),
    note="figures for each launch",
)  # fmt: skip
GPU_CASES = [_of(c) for c in (*KERNELS, *LAUNCHES) if c.name not in _OMITTED]
GPU_CASES.append(GRAPH)
