"""Plots of Jacobians into files."""

from __future__ import annotations

from pathlib import Path

from engine.autograd import Jacobians, error_plot, jacobian_plot

DPI = 150


def save(jacobians: Jacobians, path: Path, kind: str, title: str, error: str) -> None:
    """Writes a plot of that kind (png, svg or pdf). error: what kind of errors these are."""
    import matplotlib

    # Whatever the script asked of matplotlib is meant for its own plots.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # The same Jacobian gives the same file.
        matplotlib.rcParams["svg.hashsalt"] = "adtool"
        if error:
            figure = error_plot(jacobians, f"{title}: {error} error of the gradient")
        else:
            figure = jacobian_plot(
                jacobians, title=title, show_plot=False, scale_colors_per_submatrix=True
            )
        if len(jacobians) > 1:
            figure.supxlabel("each matrix has a scale of colours of its own", fontsize="small")
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(path, format=kind, dpi=DPI, metadata=dated.get(kind))
