"""`engine` and Warp: the same programs, whose module is named by $BENCH_FRAMEWORK."""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

from benchmarks.case import Case, Ready
from benchmarks.cases import CASES
from benchmarks.frameworks import Rows
from benchmarks.place import DEVICE, ON_GPU, emulate


def wait(result: Any) -> None:
    """For the device that is measured."""
    importlib.import_module(os.environ["BENCH_FRAMEWORK"]).synchronize_device()


def load(kernels: str) -> tuple[Any, Any]:
    """The framework's module and a module of kernels written for it."""
    wp = importlib.import_module(os.environ["BENCH_FRAMEWORK"])
    if wp.__name__ == "warp":
        wp.config.quiet = True
        wp.config.kernel_cache_dir = os.environ["WARP_CACHE_PATH"]
        wp.init()
    if DEVICE == "emulated":
        wp.set_device(emulate())
    elif ON_GPU:
        wp.set_device(DEVICE)
    autograd = importlib.import_module(f"{wp.__name__}.autograd")
    # What is asked for here the engine loads here, as Warp does when it is imported.
    autograd.gradcheck, wp.Tape, wp.launch  # noqa: B018
    if wp.__name__ == "engine":
        settle()
    return wp, importlib.import_module(f"benchmarks.{kernels}")


def settle() -> None:
    """Makes what the engine compiles once on a machine, beside launches, and Warp ships."""
    try:
        from engine.accel import launcher
    except ImportError:  # as without what makes launches fast
        return

    launcher.maker.asked = True
    launcher.maker.make()


def rows() -> Rows:
    """Every case; those with other frameworks too."""
    wp, kernels = load("kernels")

    def make(case: Case, size: int) -> Ready:
        return case.make(wp, kernels, size)

    cases = [c for c in CASES if wp.__name__ == "engine" or not c.alone]
    if ON_GPU:
        from benchmarks.gpu.cases import GPU_CASES

        able = [c for c in GPU_CASES if wp.__name__ == "engine" or c.name != "graph"]
        return {c.name: functools.partial(make, c) for c in able}
    from benchmarks.interop_cases import INTEROP
    from benchmarks.scaling import CURVES

    return {c.name: functools.partial(make, c) for c in (*cases, *CURVES, *INTEROP)}
