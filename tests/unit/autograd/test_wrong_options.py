"""Options of checks and Jacobians are accepted, or refused with a diagnostic."""

import contextlib
import inspect
import warnings

import matplotlib as mpl
import numpy as np
import pytest

import engine as wp
from engine import autograd
from engine.diagnostics import EngineError


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if i < y.shape[0]:
        y[i] = x[i] * x[i]


X = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
TAPE = wp.Tape()
with TAPE:
    wp.launch(square, 2, inputs=[X], outputs=[wp.zeros(2, dtype=float, requires_grad=True)])


def squared(x):
    y = wp.zeros(2, dtype=float, requires_grad=True)
    wp.launch(square, 2, inputs=[x], outputs=[y])
    return y


JUNK = [3, -1, 2.5, "x", b"x", None, True, float("nan"), [], ["a"], [3], [(0, 0, 0)], [(0, "q")],
        (1, 2), {}, {"square": 3}, {"square": [3]}, {3: "a"}, {(0,): 1}, object(), np.zeros(2),
        wp.float32]  # fmt: skip

ON_KERNEL = {"function": square, "dim": 2, "inputs": [X], "outputs": [wp.zeros_like(X)]}
ON_FUNCTION = {"function": squared, "inputs": [X]}
CALLS = [
    (autograd.gradcheck_tape, {"tape": TAPE}),
    (autograd.jacobian_plot, {"jacobians": autograd.jacobian(**ON_KERNEL)}),
    *(
        (call, given)
        for call in (autograd.gradcheck, autograd.jacobian, autograd.jacobian_fd)
        for given in (ON_KERNEL, ON_FUNCTION)
    ),
]


@pytest.mark.parametrize(
    ("call", "given"), CALLS, ids=[f"{c.__name__}, {len(g)} given" for c, g in CALLS]
)
def test_nothing_but_errors_of_the_engine(call, given, capsys):
    mpl.use("Agg")
    before = X.numpy()
    for name in inspect.signature(call).parameters:
        if name.startswith("plot_") or (name == "function" and given is ON_FUNCTION):
            continue
        for value in JUNK:
            if name == "function" and value is wp.float32:
                continue  # callable, so it is called
            with warnings.catch_warnings(), contextlib.suppress(EngineError):
                warnings.simplefilter("ignore")
                call(**{**given, name: value})
    capsys.readouterr()
    assert X.numpy().tolist() == before.tolist()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("skip_to_launch_index", "x", "skip_to_launch_index must be a whole number, got 'x'"),
        ("max_inputs_per_var", 1.5, "max_inputs_per_var must be a whole number, got 1.5"),
        ("blacklist_kernels", 3, "blacklist_kernels takes names of kernels, got 3"),
        ("input_output_masks", 3, "input_output_masks has a list of pairs for each kernel, got 3"),
        ("input_output_masks", {"square": 3}, "input_output_mask is a list of pairs, got 3"),
        ("order", 3, "order must be 1 or 2, got 3"),
        ("order", "x", "order must be 1 or 2, got 'x'"),
        ("rtol", np.zeros(2), "rtol must be 0 or a positive number"),
        ("show_summary", np.zeros(2), "show_summary is True or False"),
    ],
)
def test_messages_name_the_option_and_what_it_got(option, value, words):
    with pytest.raises(wp.LaunchError) as error:
        autograd.gradcheck_tape(TAPE, **{option: value})
    found = error.value.diagnostics[0]
    assert found.code == "E405"
    assert words in found.message


@pytest.mark.parametrize(
    ("matrix", "names", "words"),
    [
        (3, {}, "jacobians[0, 1] is no matrix of numbers"),
        ("x", {}, "jacobians[0, 1] is no matrix of numbers"),
        (None, {}, "jacobians[0, 1] is no matrix of numbers"),
        ([[1.0], [1.0, 2.0]], {}, "jacobians[0, 1] is no matrix of numbers"),
        ([[1.0]], {"input_labels": 3}, "input_labels of the metadata is a list, got 3"),
        ([[1.0]], {"output_strides": 1.5}, "output_strides of the metadata is a list, got 1.5"),
    ],
)
def test_what_cannot_be_drawn(matrix, names, words):
    with pytest.raises(wp.LaunchError) as error:
        autograd.jacobian_plot({(0, 1): matrix}, autograd.FunctionMetadata(key="f", **names))
    (found,) = error.value.diagnostics
    assert (found.code, found.span.file) == ("E202", __file__)
    assert words in found.message


def test_a_mask_of_none_means_all_pairs(capsys):
    assert autograd.gradcheck_tape(TAPE, input_output_masks={"square": None})
    assert "square" in capsys.readouterr().out
