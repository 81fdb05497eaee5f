"""Error plots of a gradient check. matplotlib is imported when a plot is drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.autograd.launch_check import Block, Pair
from engine.autograd.results import LaunchResult


def plot_errors(
    launch: LaunchResult, blocks: Mapping[Pair, Block], *, relative: bool, absolute: bool
) -> None:
    """Shows a grid of error images, outputs down and inputs across, for one launch."""
    import matplotlib.pyplot as plt

    inputs = list(dict.fromkeys(a for a, _ in blocks))
    outputs = list(dict.fromkeys(b for _, b in blocks))
    if not blocks:
        return
    for name, wanted in (("relative", relative), ("absolute", absolute)):
        if not wanted:
            continue
        fig, axes = plt.subplots(len(outputs), len(inputs), squeeze=False, constrained_layout=True)
        fig.suptitle(f"{launch.kernel} (launch {launch.index}): {name} error of the gradient")
        for (a, b), block in blocks.items():
            ax = axes[outputs.index(b)][inputs.index(a)]
            error = np.abs(block.ad - block.oracle)
            if name == "relative":
                with np.errstate(all="ignore"):
                    error = np.where(block.oracle != 0, error / np.abs(block.oracle), error)
            image = ax.imshow(error, interpolation="nearest", aspect="auto")
            ax.set_xlabel(f"{a} (input)")
            ax.set_ylabel(f"{b} (output)")
            fig.colorbar(image, ax=ax)
    plt.show()
