"""Finds the baseline for a command line, and its entries for each target."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from adtool.accuracy.entries import Baseline, Expected
from adtool.accuracy.measuring import expected_of
from adtool.places import short

if TYPE_CHECKING:
    from adtool.job import Target


def expectations(file: str | None, factor: float) -> Callable[[Target], Expected | None]:
    """What a baseline says of a target; None of all where there is no file, or an empty name.

    Raises ToolError where the file cannot be read.
    """
    if not file:
        return lambda target: None
    from adtool.accuracy.store import read

    path = Path(short(file))
    baseline = read(path)
    return lambda target: expected(baseline, path, name_of(target), factor)


def expected(baseline: Baseline, path: Path, name: str, factor: float) -> Expected:
    """What a baseline says of a target, by its name."""
    folder = os.path.dirname(os.path.abspath(path))
    return expected_of(name, folder, baseline.entries, baseline.known, factor)


def name_of(target: Target) -> str:
    """A target's name; of a capture, that of the script that it is of."""
    if not target.capture or target.script is None:
        return target.name
    from adtool.captures.container import CaptureReader
    from adtool.captures.run import Run
    from adtool.exits import ToolError

    try:
        with CaptureReader(Path(target.script)) as reader:
            return Run(reader).head.script
    except ToolError:  # told where it is checked
        return target.name
