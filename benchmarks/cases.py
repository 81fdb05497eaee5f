"""All cases, by name."""

from __future__ import annotations

from benchmarks.case import Case
from benchmarks.check_cases import CHECKS
from benchmarks.kernel_cases import KERNELS
from benchmarks.launch_cases import LAUNCHES

CASES: list[Case] = [*LAUNCHES, *KERNELS, *CHECKS]


def case_named(name: str) -> Case:
    """The case of that name; those with other frameworks are loaded where they are asked for."""
    for case in CASES:
        if case.name == name:
            return case
    from benchmarks.gpu.cases import GPU_CASES
    from benchmarks.interop_cases import INTEROP
    from benchmarks.scaling import CURVES

    return next(c for c in (*CURVES, *INTEROP, *GPU_CASES) if c.name == name)
