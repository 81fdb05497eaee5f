"""`config.verify_autograd_array_access`: warned at once, in the reference's words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from tests.unit.tape.kernels import double, square, square_in_place, total

LATER = "but has already been read from in a previous launch"
WITHIN = "after it has been read from within the same kernel"


@wp.kernel
def first_of_two(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.struct
class Two:
    x: wp.array(dtype=float)
    y: wp.array(dtype=float)


@wp.kernel
def within_a_struct(s: Two):
    i = wp.tid()
    s.y[i] = s.x[i]


@pytest.fixture(autouse=True)
def _flag() -> Iterator[None]:
    config.verify_autograd_array_access = True
    yield
    config.verify_autograd_array_access = False


def arrays() -> list[Any]:
    return [wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True) for _ in range(3)]


def warned(program: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        program()
    assert all(w.category is UserWarning for w in seen)
    return list(seen)


@pytest.mark.parametrize(
    ("write", "words"),
    [(lambda x, z: wp.launch(double, 4, [z], [x]),
      "passed to argument y in kernel double at .*kernels.py:[0-9]+ is being written to"),
     (lambda x, z: wp.copy(x, z), "is being written to by an array copy"),
     (lambda x, z: x.assign(z), "is being written to by an array copy"),
     (lambda x, z: x.fill_(1.0), "is being written to by fill_"),
     (lambda x, z: x.zero_(), "is being written to by zero_"),
     (lambda x, z: x[1:].zero_(), "is being written to by zero_")],
)  # fmt: skip
def test_a_write_after_a_read(write: Any, words: str) -> None:
    def program() -> None:
        x, y, z = arrays()
        with wp.Tape():
            wp.launch(square, 4, [x], [y])
            write(x, z)

    (w,) = warned(program)
    assert w.filename == __file__ and LATER in str(w.message)
    with pytest.warns(UserWarning, match=words):
        program()


def test_a_kernel_that_writes_what_it_read() -> None:
    def program() -> None:
        x, *_ = arrays()
        with wp.Tape():
            wp.launch(square_in_place, 4, [x])

    (w,) = warned(program)
    text = str(w.message)
    assert text.startswith("Array passed to argument x in kernel square_in_place at ")
    assert WITHIN in text and w.filename == __file__


@pytest.mark.parametrize(
    "rest",
    [lambda x, y, z: wp.launch(square, 4, [y], [z]),
     lambda x, y, z: wp.launch(total, 4, [x], [z]),
     lambda x, y, z: wp.launch(square, 4, [x], [z]),
     lambda x, y, z: z.zero_()],
)  # fmt: skip
def test_programs_that_overwrite_nothing(rest: Any) -> None:
    def program() -> None:
        x, y, z = arrays()
        with wp.Tape():
            wp.launch(square, 4, [x], [y])
            rest(x, y, z)

    assert warned(program) == []


def test_elements_count() -> None:
    def program() -> None:
        x, y, _ = arrays()
        with wp.Tape():
            wp.launch(square, 2, [x[:2]], [y[:2]])
            x[2:].zero_()
            wp.launch(square, 2, [x[0::2]], [y[:2]])
            x[3:].zero_()

    assert warned(program) == []


def test_off_the_tape_nothing_is_read() -> None:
    def program() -> None:
        x, y, _ = arrays()
        wp.launch(square, 4, [x], [y])
        x.zero_()
        with wp.Tape():
            wp.launch(square, 4, [x], [y], record_tape=False)
            x.zero_()

    assert warned(program) == []


@pytest.mark.parametrize("used", ["backward", "reset"])
def test_marks_are_taken_away(used: str) -> None:
    def program() -> None:
        x, y, _ = arrays()
        with wp.Tape() as tape:
            wp.launch(square, 4, [x], [y])
        if used == "backward":
            tape.backward(grads={y: np.ones(4, np.float32)})
        else:
            tape.reset()
        with wp.Tape():
            x.zero_()

    assert warned(program) == []


@pytest.mark.parametrize("check", [wp.autograd.jacobian, wp.autograd.jacobian_fd])
def test_checks_leave_the_marks_of_other_tapes(check: Any) -> None:
    x, y, _ = arrays()

    def forward(x: Any) -> Any:
        out = wp.zeros_like(x)
        wp.launch(square, 4, [x], [out])
        return out

    def changing(x: Any) -> Any:
        wp.launch(square_in_place, 4, [x])
        return forward(x)

    def program() -> None:
        check(changing, inputs=[y])
        with wp.Tape():
            wp.launch(square, 4, [x], [y])
            found = check(forward, inputs=[x])[0, 0].numpy()
            np.testing.assert_allclose(found, np.diag(2.0 * x.numpy()), rtol=1e-3)
            x.zero_()

    said = [str(w.message) for w in warned(program)]
    assert [LATER in s for s in said].count(True) == 1
    assert "changes" not in said[-1]


def test_kernels_say_which_arguments_they_read_and_write() -> None:
    x, y = square.adj.args
    assert (x.is_read, x.is_write, y.is_read, y.is_write) == (True, False, False, True)
    (x,) = square_in_place.adj.args
    assert x.is_read and x.is_write
    (s,) = within_a_struct.adj.args
    assert s.is_read and s.is_write


def test_marks_can_be_taken_away() -> None:
    x, y, _ = arrays()

    def program() -> None:
        with wp.Tape():
            wp.launch(square, 4, [x], [y])
            x.mark_init()
            x.zero_()

    assert warned(program) == []


def test_functions_that_are_recorded_say_it_themselves() -> None:
    x, *_ = arrays()
    assert warned(x.mark_write) == []
    x.mark_read()
    (w,) = warned(lambda: x.mark_write(operation="a host step", filename="f.py", lineno=3))
    assert "is being written to by a host step at f.py:3 " + LATER in str(w.message)
    (w,) = warned(lambda: x.mark_write(arg_name="a", kernel_name="k", filename="f.py", lineno=3))
    assert "passed to argument a in kernel k at f.py:3 is being written to" in str(w.message)


def test_without_the_flag() -> None:
    config.verify_autograd_array_access = False

    def program() -> None:
        x, y, _ = arrays()
        with wp.Tape():
            wp.launch(square, 4, [x], [y])
            wp.launch(square_in_place, 4, [x])
            x.zero_()

    assert warned(program) == []
