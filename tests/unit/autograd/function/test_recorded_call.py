"""Functions that change their inputs get a warning, and the arrays are restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_function, gradcheck, jacobian, jacobian_fd

F = wp.array(dtype=float)


@wp.kernel
def square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def double(x: F):
    i = wp.tid()
    x[i] = 2.0 * x[i]


@wp.struct
class Pair:
    a: F
    b: F


def floats(*values: float) -> Any:
    return wp.array(list(values), dtype=float, requires_grad=True)


def spends(x: Any, fuel: Any) -> Any:
    """Gives x squared, and changes an argument that is no result."""
    y = wp.zeros_like(x)
    wp.launch(square, dim=x.size, inputs=[x], outputs=[y])
    wp.launch(double, dim=fuel.size, inputs=[fuel])
    return y


def in_place(x: Any) -> Any:
    wp.launch(double, dim=x.size, inputs=[x])
    return x


def into(x: Any, y: Any) -> Any:
    wp.launch(square, dim=x.size, inputs=[x], outputs=[y])
    return y


def quietly(*args: Any, **more: Any) -> Any:
    return gradcheck(*args, **more, show_summary=False)


DOORS = [quietly, jacobian, jacobian_fd]


@pytest.mark.parametrize("how", DOORS)
def test_a_changed_input_is_named_and_put_back(how) -> None:
    x, fuel = floats(1.0, 2.0), floats(3.0)
    fuel.grad.fill_(7.0)
    with pytest.warns(UserWarning, match="'spends' changes its input 'fuel'") as warned:
        how(spends, inputs=[x, fuel])
    assert len(warned) == 1 and warned[0].filename == __file__
    assert (x.numpy().tolist(), fuel.numpy().tolist()) == ([1.0, 2.0], [3.0])
    assert fuel.grad.numpy().tolist() == [7.0]


@pytest.mark.parametrize("how", DOORS)
def test_inputs_are_left_as_one_run_makes_them_where_that_is_asked_for(how) -> None:
    x, fuel = floats(1.0, 2.0), floats(3.0)
    fuel.grad.fill_(7.0)
    how(spends, inputs=[x, fuel], restore_inputs=False)
    assert (x.numpy().tolist(), fuel.numpy().tolist()) == ([1.0, 2.0], [6.0])
    assert fuel.grad.numpy().tolist() == [7.0]


@pytest.mark.parametrize("restore", [True, False])
def test_derivatives_are_those_at_the_values_from_before(restore) -> None:
    for how in (jacobian, jacobian_fd):
        x = floats(1.0, 2.0)
        found = how(in_place, inputs=[x], restore_inputs=restore)[0, 0].numpy()
        np.testing.assert_allclose(found, [[2.0, 0.0], [0.0, 2.0]], rtol=1e-4)
        assert x.numpy().tolist() == ([1.0, 2.0] if restore else [2.0, 4.0])


@pytest.mark.parametrize("how", DOORS)
def test_what_a_function_returns_it_may_write(how, recwarn) -> None:
    x, y = floats(1.0, 2.0), floats(0.0, 0.0)
    how(in_place, inputs=[x])
    how(into, inputs=[x, y], input_output_mask=[("x", 0)])
    assert not recwarn.list
    assert y.numpy().tolist() == [0.0, 0.0]


def test_the_result_of_the_check_names_it() -> None:
    x, fuel = floats(1.0, 2.0), floats(3.0)
    result = check_function(spends, inputs=[x, fuel])
    assert result.launches[0].changed_inputs == ("fuel",) and result.passed
    assert check_function(in_place, inputs=[x]).launches[0].changed_inputs == ()
    kernel = check_function(square, dim=2, inputs=[x], outputs=[floats(0.0, 0.0)])
    assert kernel.launches[0].changed_inputs == ()


def test_arrays_of_structs_and_writes_from_the_host_are_seen() -> None:
    def function(x: Any, p: Pair, count: Any) -> Any:
        wp.launch(double, dim=1, inputs=[p.b])
        count.assign(count.numpy() + 1)
        y = wp.zeros_like(x)
        wp.launch(square, dim=x.size, inputs=[x], outputs=[y])
        return y

    p = Pair()
    p.a, p.b = floats(1.0), floats(5.0)
    count = wp.zeros(1, dtype=int)
    with pytest.warns(UserWarning, match="inputs 'p', 'count'"):
        jacobian(function, inputs=[floats(1.0), p, count], input_output_mask=[("x", 0)])
    assert (p.b.numpy()[0], count.numpy()[0]) == (5.0, 0)


def test_nothing_is_left_behind_by_a_function_that_raises() -> None:
    fuel = floats(3.0)

    def breaks(x: Any, fuel: Any) -> Any:
        spends(x, fuel)
        raise RuntimeError("broken")

    for restore in (True, False):
        with pytest.raises(RuntimeError, match="broken"):
            jacobian(breaks, inputs=[floats(1.0), fuel], restore_inputs=restore)
        assert fuel.numpy().tolist() == [3.0]
