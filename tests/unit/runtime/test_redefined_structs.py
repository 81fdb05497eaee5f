"""Diagnostics of kernels in places where a notebook or a class leads to."""

import pytest

import engine as wp
from engine import KernelError, LaunchError


def _struct():
    @wp.struct
    class Body:
        mass: float

    return Body


Body = _struct()


@wp.kernel
def one(b: Body, y: wp.array(dtype=float)):
    y[0] = b.mass


@wp.kernel
def many(b: wp.array(dtype=Body), y: wp.array(dtype=float)):
    y[0] = b[0].mass


class Model:
    @wp.kernel
    def step(self, y: wp.array(dtype=float)):
        y[0] = 1.0


def told(action, error):
    with pytest.raises(error) as caught:
        action()
    return str(caught.value)


def test_a_struct_that_was_defined_anew_is_told() -> None:
    y, again = wp.zeros(1, dtype=float), _struct()
    text = told(lambda: wp.launch(one, 1, [again(2.0), y]), LaunchError)
    assert "got a value of another struct of the name Body" in text
    assert "where Body was defined anew, define the kernel anew, too" in text
    text = told(lambda: wp.launch(many, 1, [wp.zeros(1, dtype=again), y]), LaunchError)
    assert "got an array of another struct of that name" in text
    assert "where Body was defined anew" in text


def test_a_kernel_that_is_a_method_is_told() -> None:
    y = wp.zeros(1, dtype=float)
    text = told(lambda: wp.launch(Model().step, 1, [y]), KernelError)
    assert "E103" in text and "a kernel cannot be a method" in text
