"""Error plots of a gradient check. matplotlib is imported when a plot is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from engine.autograd.comparison.block import EntryBlock
from engine.autograd.jacobians.collection import Jacobians
from engine.autograd.jacobians.difference import error_jacobians
from engine.autograd.plots.figures import draw
from engine.autograd.plots.images import Panel, image_of
from engine.autograd.results import LaunchResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_errors(
    launch: LaunchResult,
    blocks: Mapping[tuple[str, str], EntryBlock],
    *,
    relative: bool,
    absolute: bool,
) -> None:
    """Shows a grid of error images, outputs down and inputs across, for one launch."""
    inputs = list(dict.fromkeys(a for a, _ in blocks))
    outputs = list(dict.fromkeys(b for _, b in blocks))
    if not blocks:
        return
    for name, wanted in (("relative", relative), ("absolute", absolute)):
        if not wanted:
            continue
        panels = []
        for (a, b), block in blocks.items():
            error = np.abs(block.ad - block.reference)
            if name == "relative":
                with np.errstate(all="ignore"):
                    error = np.where(block.reference != 0, error / np.abs(block.reference), error)
            shape, image = image_of(error)
            panels.append(Panel(outputs.index(b), inputs.index(a), b, a, shape, 1, 1, image))
        title = f"{launch.kernel} kernel Jacobian {name} error (launch {launch.index})"
        draw(panels, title, show=True, colormap="viridis", signed=False, separate=True)


def plot_differences(
    ad: Jacobians, reference: Jacobians, *, relative: bool, absolute: bool
) -> None:
    """Shows how far two results for the same arguments are apart."""
    for name, wanted in (("relative", relative), ("absolute", absolute)):
        if wanted:
            error = error_jacobians(ad, reference, name == "relative")
            title = f"{error.metadata.key} kernel Jacobian {name} error"
            error_plot(error, title, show=True)


def error_plot(error: Jacobians, title: str, show: bool = False) -> Figure:
    """A figure of errors (see `error_jacobians`), which are not negative."""
    panels = [
        Panel(o, i, error.metadata.label(o, True), error.metadata.label(i, False), shape,
              error.metadata.width(o, True), error.metadata.width(i, False), image)
        for (i, o), (shape, image) in ((key, image_of(m)) for key, m in error.items())
    ]  # fmt: skip
    return draw(panels, title, show=show, colormap="viridis", signed=False, separate=True)
