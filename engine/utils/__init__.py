"""Operations on whole arrays: sums, scans, sorts, casts, colours of graphs.

Gradients flow where they can: through `array_sum` and `array_inner` with `out=`, through
`array_scan`, `array_cast` between floats, and to what a sort has put in order. What gives a
Python number (`array_sum` without `out`) is a constant to everything that uses it.
"""

from __future__ import annotations

from engine.runtime.timer import ScopedTimer
from engine.utils.colouring import (
    GraphColoringAlgorithm,
    graph_coloring_assign,
    graph_coloring_balance,
    graph_coloring_get_groups,
)
from engine.utils.common import UtilityError, transform_expand
from engine.utils.functions import create_warp_function
from engine.utils.reductions import array_inner, array_sum
from engine.utils.sorting import radix_sort_pairs, runlength_encode, segmented_sort_pairs
from engine.utils.streams import array_cast, array_scan

__all__ = [
    "GraphColoringAlgorithm", "ScopedTimer", "UtilityError", "transform_expand", "array_cast",
    "array_inner", "array_scan", "array_sum", "create_warp_function", "graph_coloring_assign",
    "graph_coloring_balance", "graph_coloring_get_groups", "radix_sort_pairs", "runlength_encode",
    "segmented_sort_pairs",
]  # fmt: skip
