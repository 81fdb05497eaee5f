"""Plots of Jacobians: what is drawn, at any size, without a display."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import (
    FunctionMetadata,
    SparseJacobian,
    error_jacobians,
    error_plot,
    gradcheck,
    jacobian,
    jacobian_fd,
    jacobian_plot,
    plot_kernel_jacobians,
)
from engine.autograd.plots.images import MOST, image_of
from tests.unit.autograd import jacobian_kernels as k
from tests.unit.autograd.jacobian_kernels import bodies_arguments, mixed_arguments


def drawn(figure) -> list:
    return [ax for ax in figure.axes if ax.get_visible() and ax.get_title()]


def mixed(**more):
    inputs, outputs = mixed_arguments()
    return jacobian(k.mixed, dim=2, inputs=inputs, outputs=outputs, **more)


def lines_of(ax, dashed: bool) -> int:
    return sum((line.get_linestyle() == "--") == dashed for line in ax.lines)


def test_a_grid_of_outputs_and_inputs() -> None:
    assert plot_kernel_jacobians is jacobian_plot
    jacs = mixed()
    figure = jacobian_plot(jacs, k.mixed, title="a title")
    axes = drawn(figure)
    assert [ax.get_title() for ax in axes] == [
        "out1 by a", "out1 by b", "out2 by a", "out2 by b",
    ]  # fmt: skip
    image = axes[3].images[0].get_array()
    np.testing.assert_array_equal(image, jacs[2, 1].numpy().reshape(8, 6).astype(float))
    # Elements: one line down, one across; components: three rows of quaternions, two columns.
    assert lines_of(axes[3], False) == 2 and lines_of(axes[3], True) == 6 + 4
    assert len(figure.axes) == 5  # the colour bar
    assert figure.get_suptitle() == "a title"
    same = {ax.images[0].norm.vmax for ax in axes}
    assert same == {max(np.abs(j.numpy()).max() for j in jacs.values())}


def test_options() -> None:
    jacs = mixed(input_output_mask=[("a", "out1"), ("b", "out2")])
    figure = jacobian_plot(jacs, show_colorbar=False, scale_colors_per_submatrix=True)
    axes = drawn(figure)
    assert [ax.get_title() for ax in axes] == ["out1 by a", "out2 by b"]
    assert axes[0].images[0].norm.vmax > 5 * axes[1].images[0].norm.vmax
    assert len(figure.axes) == 4 and sum(ax.get_visible() for ax in figure.axes) == 2
    figure = jacobian_plot(jacs, log_scale=True, colormap="viridis")
    assert type(drawn(figure)[0].images[0].norm).__name__ == "SymLogNorm"
    assert drawn(figure)[0].images[0].cmap.name == "viridis"
    with pytest.raises(ValueError, match="E404"):
        jacobian_plot({}, k.mixed)


def test_names_of_plain_dictionaries() -> None:
    inputs, _ = mixed_arguments()
    plain = dict(mixed())
    for figure in (jacobian_plot(plain, k.mixed, inputs=inputs), jacobian_plot(plain, k.mixed)):
        axes = drawn(figure)
        assert axes[3].get_title() == "out2 by b" and lines_of(axes[3], True) == 10
    named = FunctionMetadata("f", ["p", "q", "r"], ["s", "t"])
    assert drawn(jacobian_plot(plain, named))[3].get_title() == "t by r"
    assert drawn(jacobian_plot(plain))[3].get_title() == "output_1 by input_2"


@wp.kernel
def scaled_of_any(v: wp.array(dtype=Any), c: Any, out: wp.array(dtype=Any)):
    i = wp.tid()
    out[i] = v[i] * c


def test_generic_kernels_give_their_names() -> None:
    v = wp.zeros(2, dtype=wp.vec3, requires_grad=True)
    (ax,) = drawn(jacobian_plot({(0, 0): np.eye(6)}, scaled_of_any, inputs=[v, 2.0]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("v", "out")
    assert lines_of(ax, True) == 4  # of components, between two elements of three


def test_unevaluated_empty_and_zero_matrices_say_so() -> None:
    nan = np.full((3, 2), np.nan)
    said = {}
    for name, matrix in {
        "not evaluated": nan, "all zero": np.zeros((3, 2)), "no entries": np.zeros((0, 2)),
    }.items():  # fmt: skip
        (ax,) = drawn(jacobian_plot({(0, 0): matrix}))
        said[name] = [t.get_text() for t in ax.texts]
        jacobian_plot({(0, 0): matrix}).savefig(io.BytesIO(), format="png")
    assert said == {name: [name] for name in said}
    infinite = np.array([[np.inf, 1.0], [np.nan, -np.inf]])
    for scale in (False, True):
        jacobian_plot({(0, 0): infinite}, log_scale=scale).savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize("shape", [(5000, 700), (3, 100_000), (299, 301)])
def test_large_matrices_are_binned_and_lose_no_entry(shape) -> None:
    rng = np.random.default_rng(0)
    dense = np.zeros(shape)
    places = rng.integers(0, shape, (5, 2))
    dense[tuple(places.T)] = [1.0, -2.0, 3.0, -4.0, 5.0]
    rows, cols = np.nonzero(dense)
    sparse = SparseJacobian(shape, rows, cols, dense[rows, cols])
    for matrix in (dense, sparse):
        found, image = image_of(matrix)
        assert found == shape and max(image.shape) <= MOST
        assert set(image[image != 0]) == set(dense[dense != 0])
    (ax,) = drawn(jacobian_plot({(0, 0): sparse}))
    assert ax.images[0].get_extent() == [0, shape[1], shape[0], 0]
    buffer = io.BytesIO()
    jacobian_plot({(0, 0): sparse}).savefig(buffer, format="png")
    assert buffer.getvalue()[:4] == b"\x89PNG"


def test_binned_nan_does_not_hide_what_is_known() -> None:
    dense = np.full((1000, 2), np.nan)
    dense[1, 0] = 7.0
    image = image_of(dense)[1]
    assert image[0, 0] == 7.0 and np.isnan(image[0, 1]) and np.isnan(image[-1]).all()


def test_structs() -> None:
    inputs, outputs = bodies_arguments()
    jacs = jacobian(k.bodies, dim=2, inputs=inputs, outputs=outputs)
    axes = drawn(jacobian_plot(jacs))
    assert [ax.get_title() for ax in axes] == ["out by a", "out by box"]
    assert lines_of(axes[0], False) == 2  # elements of four scalars


def test_errors() -> None:
    inputs, outputs = mixed_arguments()
    given = {"dim": 2, "inputs": inputs, "outputs": outputs}
    ad, fd = jacobian(k.mixed, **given), jacobian_fd(k.mixed, **given)
    sparse = [how(k.mixed, **given, sparse=True) for how in (jacobian, jacobian_fd)]
    for relative in (False, True):
        dense = error_jacobians(ad, fd, relative)
        same = error_jacobians(*sparse, relative)
        for key in ad:
            np.testing.assert_allclose(same[key].toarray(), dense[key], rtol=1e-3, atol=1e-8)
            assert dense[key].max() < 1e-6
        figure = error_plot(dense, "errors")
        assert drawn(figure)[0].images[0].norm.vmin == 0.0


def test_gradcheck_and_jacobian_draw(monkeypatch) -> None:
    from engine.autograd.plots import differences, figures

    shown = []
    original = figures.draw

    def draw(panels, title, **more):
        shown.append(title)
        return original(panels, title, **more)

    for module in (differences, figures):
        monkeypatch.setattr(module, "draw", draw)
    inputs, outputs = mixed_arguments()
    given = {"dim": 2, "inputs": inputs, "outputs": outputs}
    jacobian(k.mixed, **given, plot_jacobians=True)
    jacobian_fd(k.mixed, **given, plot_jacobians=True)
    gradcheck(k.mixed, **given, show_summary=False, plot_relative_error=True,
              plot_absolute_error=True)  # fmt: skip
    assert shown == [
        "mixed kernel Jacobian", "mixed kernel Jacobian",
        "mixed kernel Jacobian relative error", "mixed kernel Jacobian absolute error",
    ]  # fmt: skip


def test_figures_of_a_program_with_pyplot() -> None:
    code = (
        "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as plt, numpy as np\n"
        "from engine.autograd import jacobian_plot\n"
        "jacs = {(0, 1): np.eye(2), (1, 0): np.ones((4, 6))}\n"
        "figure = jacobian_plot(jacs)\n"
        "assert plt.gcf() is figure and figure.get_suptitle() == 'unknown kernel Jacobian'\n"
        "axes = figure.axes[:4]\n"
        "assert [ax.axison for ax in axes] == [False, True, True, False]\n"
        "assert axes[0].get_gridspec().get_width_ratios() == [2, 6]\n"
        "assert axes[0].get_gridspec().get_height_ratios() == [4, 2]\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_matplotlib_is_loaded_only_to_draw() -> None:
    code = (
        "import sys, engine.autograd; assert 'matplotlib' not in sys.modules;"
        "import numpy as np; engine.autograd.jacobian_plot({(0, 0): np.eye(2)});"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_arrays_of_the_engine_are_taken() -> None:
    (ax,) = drawn(jacobian_plot({(0, 0): wp.array(np.eye(3), dtype=float)}))
    np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(3))


def test_infinite_entries_are_seen() -> None:
    figure = jacobian_plot({(0, 0): np.array([[np.inf, 1.0], [np.nan, -np.inf]])}, show_plot=False)
    (drawn,) = figure.axes[0].images
    shown = drawn.to_rgba(drawn.get_array(), bytes=True)
    assert tuple(shown[0, 0]) == (255, 0, 255, 255)  # infinite
    assert shown[1, 0, 3] == 0  # NaN: the hatching shows
    assert len({tuple(shown[i, j]) for i in (0, 1) for j in (0, 1)}) == 4
    assert "infinite" in figure.axes[0].get_title()


@pytest.mark.parametrize("logarithmic", [False, True])
def test_the_largest_numbers_of_all(logarithmic, tmp_path) -> None:
    """Drawing them overflows nowhere: a warning would be an error."""
    entries = np.array([[1e308, -1e308], [1e-308, 0.0]])
    figure = jacobian_plot({(0, 0): entries}, show_plot=False, log_scale=logarithmic)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(tmp_path / "a.png")
    (shown,) = figure.axes[0].images
    colours = shown.norm(shown.get_array())
    assert (colours[0, 0], colours[0, 1]) == (1.0, 0.0)  # the ends of the scale
    assert 0.0 < colours[1, 1] < 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"jacobians": 5}, "is a dictionary"),
        ({"jacobians": {"a": np.ones((2, 2))}}, "keys of jacobians"),
        ({"jacobians": {(0, 0): np.ones((2, 2))}, "kernel": "k"}, "expected a kernel"),
        ({"jacobians": {(0, 0): np.ones((2, 2))}, "colormap": "no"}, "no colour map 'no'"),
    ],
)
def test_what_cannot_be_plotted(given, said) -> None:
    with pytest.raises(ValueError, match=said):
        jacobian_plot(**given, show_plot=False)
