"""Identities that gradients obey whatever the kernel, over the public API."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import engine as wp
from engine.autograd import jvp
from tests.emulated import are_same
from tests.property.launches import BINS, PROGRAMS, Program, kernels

Array = np.ndarray[Any, Any]

# Rounding, relative to numbers of about 1: every value below is kept there.
CLOSE = {wp.float32: 1e-4, wp.float64: 1e-12}
TYPES = pytest.mark.parametrize("T", [wp.float32, wp.float64], ids=lambda t: t.__name__)
EVERY = pytest.mark.parametrize("name", PROGRAMS)
# The same examples in every run; `ENGINE_EXAMPLES` sets how many.
EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "12"))
few = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> Iterator[None]:
    """Compiles the adjoints of all kernels together."""
    with wp.Tape() as tape:
        for T in (wp.float32, wp.float64):
            for program in PROGRAMS.values():
                program(array([1.0], T), array([1.0], T))
            square = [wp.zeros((1, 1), dtype=T, requires_grad=True) for _ in range(3)]
            wp.launch(kernels(T).crossed, dim=(1, 1), inputs=square)
    tape.backward(grads={})
    yield


def array(values: Any, T: Any) -> Any:
    return wp.array(values, dtype=T, requires_grad=True)


def numbers(shape: Any, bound: float = 1.0) -> st.SearchStrategy[Array]:
    """Arrays of floats that single precision holds."""
    return hnp.arrays(np.float64, shape, elements=st.floats(-bound, bound, width=32))


@st.composite
def cases(draw: st.DrawFn, name: str = "", seeds: int = 1) -> tuple[Array, ...]:
    """Inputs x and y of one length, and cotangents of a program's output."""
    n = draw(st.integers(1, 8))
    size = BINS if name == "scattered" else n
    return (draw(numbers(n)), draw(numbers(n)), *(draw(numbers(size, 4.0)) for _ in range(seeds)))


class Recorded:
    """A program that ran on a tape, to be differentiated as often as one likes."""

    def __init__(self, program: Program, x: Any, y: Any) -> None:
        self.x, self.y = x, y
        with wp.Tape() as self.tape:
            self.out = program(x, y)

    def gradient(self, seed: Array) -> list[Array]:
        self.tape.zero()
        self.tape.backward(grads={self.out: seed.astype(self.out.numpy().dtype)})
        return [self.x.grad.numpy().copy(), self.y.grad.numpy().copy()]


def record(program: Program, x: Array, y: Array, T: Any) -> Recorded:
    return Recorded(program, array(x, T), array(y, T))


def assert_close(got: list[Array], expected: list[Array], T: Any, scale: float = 1.0) -> None:
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=CLOSE[T], atol=CLOSE[T] * scale)


@EVERY
@TYPES
@few
@given(data=st.data())
def test_gradient_is_linear_in_the_cotangent(T: Any, name: str, data: st.DataObject) -> None:
    x, y, u, v = data.draw(cases(name, seeds=2))
    a, b = data.draw(st.tuples(*[st.floats(-4, 4, width=32)] * 2))
    recorded = record(PROGRAMS[name], x, y, T)
    gu, gv, both = (recorded.gradient(seed) for seed in (u, v, a * u + b * v))
    assert_close(both, [a * p + b * q for p, q in zip(gu, gv, strict=True)], T, scale=32)


@EVERY
@TYPES
@few
@given(data=st.data())
def test_forward_mode_is_the_transpose_of_reverse_mode(
    T: Any, name: str, data: st.DataObject
) -> None:
    x, y, seed = data.draw(cases(name))
    u, v = data.draw(numbers(len(x), 4.0)), data.draw(numbers(len(x), 4.0))
    recorded = record(PROGRAMS[name], x, y, T)
    gx, gy = recorded.gradient(seed)
    moved = jvp(recorded.tape, tangents={recorded.x: u, recorded.y: v})[recorded.out].numpy()
    sizes = [np.abs(a * b).sum() for a, b in ((moved, seed), (gx, u), (gy, v))]
    assert_close([moved @ seed], [gx @ u + gy @ v], T, scale=32 + sum(map(float, sizes)))


@EVERY
@TYPES
@few
@given(data=st.data())
def test_second_backward_pass_gives_the_same(T: Any, name: str, data: st.DataObject) -> None:
    x, y, seed = data.draw(cases(name))
    recorded = record(PROGRAMS[name], x, y, T)
    first = recorded.gradient(seed)
    out = recorded.out.numpy().copy()
    recorded.tape.zero()
    for g in recorded.tape.gradients.values():
        assert not g.numpy().any()
    for p, q in zip(first, recorded.gradient(seed), strict=True):
        assert are_same(q, p)
    np.testing.assert_array_equal(recorded.out.numpy(), out)
    np.testing.assert_array_equal(recorded.x.numpy(), x.astype(first[0].dtype))


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ("composed", "fused"),
        ("composed_neighbours", "fused_neighbours"),
        ("in_place", "fused_in_place"),
    ],
)
@TYPES
@few
@given(data=st.data())
def test_gradient_of_several_launches_is_that_of_one(
    T: Any, parts: str, whole: str, data: st.DataObject
) -> None:
    x, y, seed = data.draw(cases())
    one, two = record(PROGRAMS[whole], x, y, T), record(PROGRAMS[parts], x, y, T)
    np.testing.assert_array_equal(one.out.numpy(), two.out.numpy())
    assert_close(two.gradient(seed), one.gradient(seed), T, scale=32)


# ---- nothing to do


@EVERY
@TYPES
def test_empty_arrays_have_empty_gradients(T: Any, name: str) -> None:
    recorded = record(PROGRAMS[name], np.zeros(0), np.zeros(0), T)
    for g in recorded.gradient(np.ones(len(recorded.out))):
        assert g.shape == (0,)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@TYPES
def test_empty_grids_in_two_dimensions(T: Any, shape: tuple[int, int]) -> None:
    a, b, out = (wp.zeros(s, dtype=T, requires_grad=True) for s in (shape, shape[::-1], shape))
    with wp.Tape() as tape:
        wp.launch(kernels(T).crossed, dim=shape, inputs=[a, b], outputs=[out])
    tape.backward(grads={out: wp.zeros(shape, dtype=T)})
    assert a.grad.shape == shape and b.grad.shape == shape[::-1]


@TYPES
@few
@given(case=cases())
def test_launch_without_threads_does_nothing(T: Any, case: tuple[Array, ...]) -> None:
    x, y, seed = (array(values, T) for values in case)
    out = array(case[0], T)
    with wp.Tape() as tape:
        wp.launch(kernels(T).fused, dim=0, inputs=[x, y], outputs=[out])
    np.testing.assert_array_equal(out.numpy(), x.numpy())
    tape.backward(grads={out: seed})
    np.testing.assert_array_equal(out.grad.numpy(), seed.numpy())  # nothing wrote `out`
    assert not x.grad.numpy().any() and not y.grad.numpy().any()


# ---- memory layout


class Laid:
    """Values at some places of a larger array: the array that owns the memory, and the view."""

    def __init__(self, values: Array, T: Any, shape: tuple[int, ...], place: Any) -> None:
        numpy = np.full(shape, 0.5)
        numpy[place] = values
        self.place = place
        self.owner = array(numpy, T)
        self.view = self.owner[place]
        np.testing.assert_array_equal(self.view.numpy(), values.astype(self.view.numpy().dtype))

    def gradient(self) -> Array:
        """The view's gradient, after a look at the owner's: the same there, zero elsewhere."""
        view, whole = self.view.grad.numpy(), self.owner.grad.numpy()
        np.testing.assert_array_equal(whole[self.place], view)
        assert np.count_nonzero(whole) == np.count_nonzero(view)
        return view.copy()


class Transposed(Laid):
    def __init__(self, values: Array, T: Any) -> None:
        super().__init__(values.T, T, values.shape[::-1], ...)
        self.view = self.owner.transpose()

    def gradient(self) -> Array:
        np.testing.assert_array_equal(self.owner.grad.numpy().T, self.view.grad.numpy())
        return self.view.grad.numpy().copy()


class Fortran(Laid):
    """Shares the memory of a NumPy array in column-major order."""

    def __init__(self, values: Array, T: Any) -> None:
        numpy = np.asfortranarray(values, dtype=wp.dtype_to_numpy(T))
        self.view = self.owner = wp.array(numpy, dtype=T, copy=False, requires_grad=True)
        self.place = ...
        assert self.view.ptr == numpy.ctypes.data


def line(kind: str, values: Array, T: Any) -> Laid:
    n = len(values)
    shape, place = {
        "whole": ((n,), slice(None)),
        "steps": ((2 * n,), slice(None, None, 2)),
        "reversed": ((n,), slice(None, None, -1)),
        "offset": ((n + 3,), slice(2, 2 + n)),
        "column": ((n, 3), (slice(None), 1)),
    }[kind]
    return Laid(values, T, shape, place)


def grid(kind: str, values: Array, T: Any) -> Laid:
    if kind == "transposed" or (kind == "fortran" and not wp.get_device().is_cpu):
        return Transposed(values, T)
    if kind == "fortran":
        return Fortran(values, T)
    m, n = values.shape
    shape, place = {
        "whole": ((m, n), (slice(None), slice(None))),
        "block": ((m + 2, n + 3), (slice(1, 1 + m), slice(2, 2 + n))),
        "steps": ((m, 3 * n), (slice(None, None, -1), slice(None, None, 3))),
        "plane": ((m, 2, n), (slice(None), 1)),
    }[kind]
    return Laid(values, T, shape, place)


LINES = st.sampled_from(["whole", "steps", "reversed", "offset", "column"])
GRIDS = st.sampled_from(["whole", "block", "steps", "plane", "transposed", "fortran"])


@EVERY
@TYPES
@few
@given(data=st.data(), kinds=st.tuples(LINES, LINES))
def test_layout_of_lines_does_not_matter(
    T: Any, name: str, data: st.DataObject, kinds: tuple[str, str]
) -> None:
    x, y, seed = data.draw(cases(name))
    expected = record(PROGRAMS[name], x, y, T)
    laid = [line(kind, values, T) for kind, values in zip(kinds, (x, y), strict=True)]
    got = Recorded(PROGRAMS[name], *(one.view for one in laid))
    assert are_same(got.out.numpy(), expected.out.numpy())
    assert_close(got.gradient(seed), expected.gradient(seed), T)
    assert_close([one.gradient() for one in laid], expected.gradient(seed), T)


@TYPES
@few
@given(
    data=st.data(),
    kinds=st.tuples(GRIDS, GRIDS, GRIDS),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_layout_of_grids_does_not_matter(
    T: Any, data: st.DataObject, kinds: tuple[str, str, str], shape: tuple[int, int]
) -> None:
    values = [data.draw(numbers(s)) for s in (shape, shape[::-1], shape, shape)]
    *inputs, seed = values

    def differentiate(kinds: tuple[str, str, str]) -> list[Array]:
        laid = [grid(kind, v, T) for kind, v in zip(kinds, inputs, strict=True)]
        a, b, out = (one.view for one in laid)
        with wp.Tape() as tape:
            wp.launch(kernels(T).crossed, dim=shape, inputs=[a, b], outputs=[out])
        tape.backward(grads={out: seed.astype(out.numpy().dtype)})
        return [out.numpy().copy(), *(one.gradient() for one in laid)]

    assert_close(differentiate(kinds), differentiate(("whole", "whole", "whole")), T)
