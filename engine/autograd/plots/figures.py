"""Plots of Jacobians. matplotlib is imported when one is drawn; no display is needed."""

from __future__ import annotations

import math
import sys
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.autograd.comparison.tolerance import flags
from engine.autograd.jacobians.collection import Jacobians
from engine.autograd.launch.call import argument_widths
from engine.autograd.plots.images import Panel, image_of
from engine.autograd.variables.metadata import FunctionMetadata
from engine.diagnostics import Diagnostic, GradcheckError
from engine.diagnostics.site import call_span
from engine.runtime.kernel import Kernel
from engine.runtime.launch_errors import fail

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES = 64  # more lines than these would hide what is between them
_SIDE = 2.9  # inches of one matrix, and of a whole figure
_LARGEST = 24.0
_LETTERS = 10  # of a title that an inch has room for
_TICKS = 8
_HIGHEST = 4e307  # a difference of two such is finite
_INFINITE = ("#ff00ff", "#8b008b")  # plus and minus infinity
_NO_WINDOW = frozenset({"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"})


def jacobian_plot(
    jacobians: Mapping[tuple[int, int], Any],
    kernel: FunctionMetadata | Kernel | None = None,
    inputs: Sequence[Any] | None = None,
    show_plot: bool = True,
    show_colorbar: bool = True,
    scale_colors_per_submatrix: bool = False,
    title: str | None = None,
    colormap: str = "coolwarm",
    log_scale: bool = False,
) -> Figure:
    """Draws Jacobians as a grid of images: a row for each output, a column for each input.

    Thick lines separate the elements of arrays, thin dashed ones the components of vectors.
    Large matrices are binned: a pixel shows the entry of largest magnitude that it covers.
    What was not evaluated, or is NaN, is hatched; what is infinite has a colour of its own.

    Args:
        jacobians: what `jacobian` or `jacobian_fd` returned, sparse or not.
        kernel: the kernel or the metadata that names come from; by default the result's own.
        inputs: the inputs that the Jacobians were taken with; they say how many of the
            kernel's parameters are inputs, where `kernel` is a kernel.
        show_plot: opens a window, where matplotlib's backend has one; where the program has
            loaded `pyplot`, the figure is its current one.
        show_colorbar: draws a colour bar.
        scale_colors_per_submatrix: gives each matrix a colour scale (and bar) of its own.
        title: the figure's title, by default "NAME kernel Jacobian", as in Warp.
        colormap: a name that matplotlib knows.
        log_scale: colours by the logarithm of magnitudes.

    Returns the figure: `savefig` writes it to a file. Raises GradcheckError (E404) for an
    empty dictionary, LaunchError (E202, E405) for other arguments that cannot be drawn.
    """
    _check(jacobians, kernel, inputs, colormap)
    flags(show_plot=show_plot, show_colorbar=show_colorbar, log_scale=log_scale,
          scale_colors_per_submatrix=scale_colors_per_submatrix)  # fmt: skip
    if not isinstance(title, str | None):
        raise fail("E202", f"title is a string, got {title!r:.80}")
    if not jacobians:
        raise GradcheckError(Diagnostic("E404", "there is no Jacobian to plot", call_span()))
    data = _names(jacobians, kernel, inputs)
    panels = [_panel(key, m, data) for key, m in jacobians.items()]
    shown = f"{data.key or 'unknown'} kernel Jacobian" if title is None else title
    return draw(
        panels, shown, show=show_plot, bar=show_colorbar,
        separate=scale_colors_per_submatrix, colormap=colormap, logarithmic=log_scale,
    )  # fmt: skip


plot_kernel_jacobians = jacobian_plot


def _check(jacobians: Any, kernel: Any, inputs: Any, colormap: Any) -> None:
    import matplotlib

    if not isinstance(jacobians, Mapping):
        raise fail("E202", "jacobians is a dictionary of matrices", f"got {jacobians!r:.80}",
                   help="pass the result of `jacobian` or `jacobian_fd`")  # fmt: skip
    for key in jacobians:
        if not (isinstance(key, tuple) and len(key) == 2
                and all(hasattr(k, "__index__") for k in key)):  # fmt: skip
            raise fail("E202", "the keys of jacobians are (input index, output index)",
                       f"got {key!r}")  # fmt: skip
    if kernel is not None and not isinstance(kernel, (Kernel, FunctionMetadata)):
        raise fail("E202", f"expected a kernel or FunctionMetadata, got {kernel!r:.80}")
    if inputs is not None and not isinstance(inputs, Sequence):
        raise fail("E202", f"inputs is a list of arguments, got {inputs!r:.80}",
                   help="write inputs=[x]")  # fmt: skip
    if not isinstance(colormap, str) or colormap not in matplotlib.colormaps:
        raise fail("E405", f"matplotlib has no colour map {colormap!r:.80}",
                   help="coolwarm, viridis and RdBu are some that it has")  # fmt: skip


def _names(
    jacobians: Mapping[tuple[int, int], Any], kernel: Any, inputs: Sequence[Any] | None
) -> FunctionMetadata:
    if isinstance(kernel, FunctionMetadata) and not kernel.is_empty:
        for name, value in vars(kernel).items():
            if name != "key" and not isinstance(value, (list, tuple, type(None))):
                raise fail("E202", f"{name} of the metadata is a list, got {value!r:.80}")
        return kernel
    if isinstance(jacobians, Jacobians):
        return jacobians.metadata
    if not isinstance(kernel, Kernel):
        return FunctionMetadata()
    count = len(inputs) if inputs is not None else max(i for i, _ in jacobians) + 1
    if kernel.is_generic:  # its outputs would tell the rest of its types, and they are not here
        labels = list(kernel.signature.types)
        widths = [_width(a) for a in inputs or ()]
        widths += [1] * (len(labels) - len(widths))
    else:
        labels, widths = argument_widths(kernel.plan)
    strides = [(w,) for w in widths]
    return FunctionMetadata(
        kernel.key, labels[:count], labels[count:], strides[:count], strides[count:]
    )


def _width(value: Any) -> int:
    """How many scalars an element of an argument has."""
    return math.prod(getattr(getattr(value, "dtype", None), "_shape_", ()))


def _panel(key: tuple[int, int], matrix: Any, data: FunctionMetadata) -> Panel:
    i, o = key
    try:
        shape, image = image_of(matrix)
    except (TypeError, ValueError):
        raise fail("E202", f"jacobians[{i}, {o}] is no matrix of numbers",
                   f"got {matrix!r:.80}") from None  # fmt: skip
    return Panel(
        o, i, data.label(o, True), data.label(i, False), shape, data.width(o, True),
        data.width(i, False), image,
    )  # fmt: skip


# ---- drawing


def draw(
    panels: Sequence[Panel], title: str, *, show: bool = False, bar: bool = True,
    separate: bool = False, colormap: str = "coolwarm", logarithmic: bool = False,
    signed: bool = True, label: str = "",
) -> Figure:  # fmt: skip
    """A figure of matrices. signed: colours run from minus to plus the largest magnitude."""
    rows = sorted({p.row for p in panels})
    cols = sorted({p.col for p in panels})
    size = (
        min(_LARGEST, 1.6 + _SIDE * len(cols)),
        min(_LARGEST, 1.2 + _SIDE * len(rows)),
    )
    fig = _figure(size, show)
    if title:
        fig.suptitle(textwrap.fill(title, max(16, int(_LETTERS * size[0]))))
    axes = fig.subplots(
        len(rows), len(cols), squeeze=False,
        width_ratios=_ratios([max(p.shape[1] for p in panels if p.col == c) for c in cols]),
        height_ratios=_ratios([max(p.shape[0] for p in panels if p.row == r) for r in rows]),
    )  # fmt: skip
    for line in axes:
        for ax in line:
            ax.set_visible(False)
            ax.set_axis_off()
    shared = _norm([p.image for p in panels], signed, logarithmic)
    mapped = None
    for p in panels:
        ax = axes[rows.index(p.row)][cols.index(p.col)]
        ax.set_visible(True)
        ax.set_axis_on()
        norm = _norm([p.image], signed, logarithmic) if separate else shared
        image = _image(ax, p, colormap, norm)
        if image is not None:
            mapped = image
            if bar and separate:
                fig.colorbar(image, ax=ax, label=label, ticks=_ticks(norm))
    if bar and not separate and mapped is not None:
        fig.colorbar(mapped, ax=axes.ravel().tolist(), label=label, shrink=0.9,
                     ticks=_ticks(shared))  # fmt: skip
    if show:
        _show()
    return fig


def _ratios(sizes: Sequence[int]) -> list[int]:
    """Sizes of matrices as those of their images; none is too small to be seen."""
    return [max(n, -(-max(sizes) // 8), 1) for n in sizes]


def _figure(size: tuple[float, float], show: bool) -> Figure:
    if show and (_windows() or "matplotlib.pyplot" in sys.modules):
        import matplotlib.pyplot as plt

        return plt.figure(figsize=size, layout="constrained")
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _windows() -> bool:
    import matplotlib

    return matplotlib.get_backend().lower() not in _NO_WINDOW


def _show() -> None:
    if _windows() or "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "FigureCanvas.* is non-interactive")
            plt.show()


def _norm(images: Sequence[Any], signed: bool, logarithmic: bool) -> Any:
    from matplotlib.colors import LogNorm, Normalize, SymLogNorm

    magnitudes = [np.abs(x[np.isfinite(x)]) for x in images]
    every = np.concatenate([m.ravel() for m in magnitudes]) if magnitudes else np.zeros(0)
    top = min(float(every.max(initial=0.0)), _HIGHEST) or 1.0
    if not logarithmic:
        return Normalize(-top if signed else 0.0, top)
    smallest = float(every[every > 0].min(initial=top))
    least = max(smallest, 1e-12 * top)
    if signed:
        return SymLogNorm(linthresh=least, vmin=-top, vmax=top, base=10)
    return LogNorm(vmin=min(least, 0.1 * top), vmax=top, clip=True)


def _ticks(norm: Any) -> Any:
    """Few enough ticks for a logarithmic colour bar; None leaves them to matplotlib."""
    from matplotlib.colors import SymLogNorm
    from matplotlib.ticker import SymmetricalLogLocator

    if not isinstance(norm, SymLogNorm):
        return None
    locator = SymmetricalLogLocator(base=10, linthresh=norm.linthresh)
    locator.set_params(numticks=_TICKS)
    return locator


def _image(ax: Axes, p: Panel, colormap: str, norm: Any) -> Any:
    """Draws one matrix; None where it has no entries."""
    import matplotlib

    ax.set_title(f"{p.row_label} by {p.col_label}", fontsize="medium")
    ax.set_xlabel(p.col_label)
    ax.set_ylabel(p.row_label)
    if not p.image.size:
        ax.set_xticks([])
        ax.set_yticks([])
        _say(ax, "no entries")
        return None
    rows, cols = p.shape
    cmap = matplotlib.colormaps[colormap].with_extremes(
        bad=(0, 0, 0, 0), over=_INFINITE[0], under=_INFINITE[1]
    )
    ax.patch.set(facecolor="white", edgecolor="0.7", hatch="////")  # seen where nothing is known
    image = ax.imshow(
        _drawn(p.image, norm.vmax),
        cmap=cmap, norm=norm, interpolation="nearest", aspect="auto",
        extent=(0, cols, rows, 0),
    )  # fmt: skip
    _grid(ax, rows, p.row_width, vertical=False)
    _grid(ax, cols, p.col_width, vertical=True)
    known = p.image[~np.isnan(p.image)]
    if not known.size:
        _say(ax, "not evaluated")
    elif not known.any():
        _say(ax, "all zero")
    elif np.isinf(known).any():
        ax.set_title(f"{p.row_label} by {p.col_label} (infinite: magenta)", fontsize="medium")
    return image


def _drawn(image: Any, top: float) -> Any:
    """The values to draw: NaN masked, infinite ones just beyond the colours' range."""
    finite = np.where(np.isinf(image), np.sign(image) * 2.0 * top, np.clip(image, -top, top))
    return np.ma.masked_where(np.isnan(image), finite)


def _say(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color="0.35",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8})  # fmt: skip


def _grid(ax: Axes, count: int, width: int, vertical: bool) -> None:
    """Lines between elements and components, and numbers of elements."""
    line = ax.axvline if vertical else ax.axhline
    elements = -(-count // width)
    if elements <= _LINES:
        for e in range(1, elements):
            line(e * width, color="0.25", linewidth=0.9 if elements <= 16 else 0.4)
    if width > 1 and count <= _LINES:
        for s in range(1, count):
            if s % width:
                line(s, color="0.5", linewidth=0.4 if count <= 24 else 0.2, linestyle="--")
    most = max(2, 26 // len(str(elements))) if vertical else _TICKS
    step = max(1, -(-elements // min(most, _TICKS)))
    step = next(s for k in range(12) for s in (10**k, 2 * 10**k, 5 * 10**k) if s >= step)
    numbers = np.arange(0, elements, step)
    places = (numbers + 0.5) * width if elements <= _LINES else numbers * width
    axis = ax.xaxis if vertical else ax.yaxis
    axis.set_ticks(places, [str(k) for k in numbers])
