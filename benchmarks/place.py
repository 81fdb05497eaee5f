"""The device on which the frameworks of a run compute: $BENCH_DEVICE, or the CPU.

"cuda" is the first GPU, "emulated" one that tests put in its place, which only `engine` knows.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

VARIABLE = "BENCH_DEVICE"
DEVICE = os.environ.get(VARIABLE, "cpu")
ON_GPU = DEVICE != "cpu"
_kept = ExitStack()


def emulate() -> Any:
    """An emulated GPU, which stays."""
    from tests.backend.cuda.emulated import emulated

    return _kept.enter_context(emulated())[0]
