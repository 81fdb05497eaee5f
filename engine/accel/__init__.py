"""What makes launches, passes and captured graphs fast; nothing that they need to be right.

`engine.accelerator` is the one door to it: what is imported here puts itself there, and no other
code imports anything of this folder. `docs/design/speed.md` says which benchmark needs which part.

launcher        makes the native functions (`native/`), once; slots has what they know of CPython
recipes         what they are told of kernels
backward        passes, each as a few native calls
arrays          arrays like others
batch           launches as one native call
graphs          captured graphs in a few such calls: graph_steps off tapes, graph_records on them
fused_graphs    graphs that make, run and forget their tapes: one call without records
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.accel import arrays, recipes
from engine.accelerator import accelerator


# What only passes or captured graphs need is imported when they come.
def expect_passes() -> None:
    from engine.accel import backward

    accelerator.install(try_reverse=backward.try_reverse)


def try_reverse(tape: Any, loss: Any, grads: Any) -> bool:
    expect_passes()
    return accelerator.try_reverse(tape, loss, grads)


def graph_steps(operations: Sequence[Any]) -> list[Any]:
    from engine.accel.graphs import gathered

    return gathered(operations)


def fused_graph(
    operations: Sequence[Any], steps: Sequence[Any], fresh: Sequence[Callable[[], None]]
) -> Callable[[], bool] | None:
    from engine.accel.fused_graphs import fused

    return fused(operations, steps, fresh)


# `try_run` comes when `launcher.maker` has compiled it.
accelerator.install(
    expect_passes=expect_passes, try_reverse=try_reverse, try_zeros=arrays.try_zeros,
    graph_steps=graph_steps, fused_graph=fused_graph, compiled=recipes.compiled,
    repeated=recipes.repeated,
)  # fmt: skip
