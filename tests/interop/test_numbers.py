"""Numbers of other libraries, where kernels take a number: as a conversion by Python gives it."""

from __future__ import annotations

import decimal
import fractions
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.interop.drivers import Driver, drivers, says_what_to_do

pytestmark = [
    pytest.mark.filterwarnings("ignore:No ccache found:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|paddle|jax|google).*"),
    pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning"),
]


@wp.kernel
def as_float(s: float, y: wp.array(dtype=float)):
    y[wp.tid()] = s


@wp.kernel
def as_int(s: int, y: wp.array(dtype=float)):
    y[wp.tid()] = float(s)


@wp.kernel
def as_bool(s: bool, y: wp.array(dtype=float)):
    if s:
        y[wp.tid()] = 1.0
    else:
        y[wp.tid()] = 2.0


@wp.kernel
def as_vector(s: wp.vec2, y: wp.array(dtype=float)):
    y[wp.tid()] = s[0] + 10.0 * s[1]


def run(kernel: Any, value: Any) -> float:
    y = wp.zeros(1, dtype=float)
    wp.launch(kernel, 1, [value], [y])
    return float(y.numpy()[0])


FLOATS = ("float16", "float32", "float64")
WHOLE = ("uint8", "int16", "int32", "int64")


@drivers(lambda d: d.package in ("torch", "jax", "paddle"))
def test_an_array_of_one_number_is_a_number(d: Driver) -> None:
    for shape in ((), (1,), (1, 1)):
        for kind in (*FLOATS, *WHOLE, "bool"):
            x = d.make(np.ones(shape, kind))
            assert run(as_float, x) == run(as_bool, x) == 1.0
            if kind in FLOATS:
                with pytest.raises(wp.LaunchError, match=r"E202.*'s' expects int32") as e:
                    run(as_int, x)
                says_what_to_do(e.value)
            else:
                assert run(as_int, x) == 1.0
    with pytest.raises(wp.LaunchError, match=r"E202.*of shape \(2,\)") as e:
        run(as_float, d.make(np.ones(2, np.float32)))
    says_what_to_do(e.value)
    assert run(as_vector, d.make(np.array([1, 2], np.float64))) == 21.0


@drivers(lambda d: d.package in ("torch", "paddle"))
def test_it_is_read_at_each_launch(d: Driver) -> None:
    x = d.make(np.zeros((), np.float32))
    for value in (1.5, -2.5):
        x.fill_(value)
        assert run(as_float, x) == value


def test_what_python_converts_is_a_number() -> None:
    for half in (fractions.Fraction(1, 2), decimal.Decimal("0.5")):
        assert run(as_float, half) == 0.5
        with pytest.raises(wp.LaunchError, match="E202"):
            run(as_int, half)
    for bad in ("1.5", None, 1j, object(), [1.0], np.ones(1)):
        with pytest.raises(wp.LaunchError, match="E202"):
            run(as_float, bad)


def test_a_gradient_that_ends_at_a_number_is_told() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.tensor(3.0, requires_grad=True)
    assert run(as_float, t) == 3.0
    with wp.Tape(), pytest.warns(UserWarning, match="one element"):
        assert run(as_float, t) == 3.0


def test_operators_refuse_tensors_as_numbers_that_would_have_no_gradient() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    number = wp.torch_kernel(as_float, launch_dims=1)
    vector = wp.torch_kernel(as_vector, launch_dims=1)
    one = torch.tensor(1.0, requires_grad=True)
    for op, value in ((number, one), (number, one.detach()), (vector, torch.ones(2)),
                      (vector, [one, 2.0])):  # fmt: skip
        with pytest.raises(wp.LaunchError, match=r"E202.*'s' expects .* a tensor") as e:
            op(value)
        says_what_to_do(e.value)
    for value in (wp.vec2(1.0, 2.0), (1, 2.0), np.array([1, 2]), np.array([[1.0, 2.0]])[0]):
        assert vector(value).tolist() == [21.0]
    assert number(np.float64(1.5)).tolist() == [1.5]


def test_settings_of_operators_are_checked() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    for bad in ({"num_outputs": "1"}, {"num_outputs": True}, {"in_out_argnames": 5},
                {"in_out_argnames": ["y", "y"]}, {"name": 5}, {"name": "height"},
                {"name": "a::b c"}, {"name": "aten::add"}, {"launch_dims": "3"},
                {"output_dims": 2.5}, {"order": 1.0}):  # fmt: skip
        with pytest.raises(wp.LaunchError, match=r"E20[125]"):
            wp.torch_kernel(as_float, **bad)


@drivers(lambda d: d.package in ("torch", "jax", "paddle"))
def test_a_grid_of_one_number(d: Driver) -> None:
    y = wp.zeros(3, dtype=float)
    for dim in (d.make(np.array(3)), d.make(np.array([3])), np.array(3), [d.make(np.array(3))]):
        y.zero_()
        wp.launch(as_float, dim, [1.0], [y])
        assert y.list() == [1.0] * 3
    if d.package == "paddle":  # which takes its floats for indices
        return
    with pytest.raises(wp.LaunchError, match="E205"):
        wp.launch(as_float, d.make(np.array(3.0, np.float32)), [1.0], [y])


@drivers(lambda d: d.package in ("torch", "jax", "paddle"))
def test_wrong_types_are_told_at_their_place(d: Driver) -> None:
    x = d.make(np.ones(3, np.float32))
    for bad in ("float", object, 5):
        with pytest.raises(wp.LaunchError, match="E202") as e:
            d.take(x, dtype=bad)
        says_what_to_do(e.value)
    for bad in (None, 3.0, [1.0]):
        for more in ({}, {"return_ctype": True}) if d.package != "jax" else ({},):
            with pytest.raises(wp.LaunchError, match="E202") as e:
                d.take(bad, **more)
            says_what_to_do(e.value)
