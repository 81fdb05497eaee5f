"""Modules that launches need, loaded with the first kernel instead of its first launch.

The first launch of a program is one that somebody times, or waits for. Tapes stay out: they come
with the first array that has a gradient, where there is a kernel.
"""

from __future__ import annotations

import contextlib
import sys

from engine.classes import complete
from engine.compile import sources
from engine.compile.backend import Entry
from engine.compile.cache import Stored
from engine.compile.cpu import libraries, runner, toolchain
from engine.compile.facts import Facts
from engine.frontend import prepare
from engine.itself import load
from engine.runtime import launch, plans
from engine.runtime.plan_parts import Selection

try:
    load("engine.accel")  # which puts itself at `engine.accelerator`
except ModuleNotFoundError as e:
    if e.name != "engine.accel":
        raise
    # All is right without it, and slower.

__all__ = ["launch", "libraries", "plans", "runner"]

prepare()
complete(Entry, Facts, Selection, Stored, toolchain.Toolchain)
if sys.platform.startswith("linux"):  # elsewhere a program is asked
    toolchain.cpu_features()
with contextlib.suppress(OSError):  # told by what launches
    sources.prepare()
