"""Messages of kernels and tests inside kernels: texts, order, errors, no repetition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.ir import interp
from engine.ir.messages import text_of


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Puts the settings back."""
    yield
    wp.config.expect = "raise"
    wp.config.mode = "release"


@wp.kernel
def values(x: wp.array(dtype=float)):
    i = wp.tid()
    print(i)
    print(x[i], wp.float64(0.1), wp.uint8(200), wp.int64(-5))
    print(True, i == 0)
    print(wp.vec3(1.0, 2.5, -3.0), wp.vec2i(1, 2))
    print(wp.mat22(1.0, 2.0, 3.0, 4.0))
    print("text", i, "more", sep="", end=" more\n")
    print()
    wp.print(1e20)


@wp.kernel
def formatted(x: wp.array(dtype=float)):
    i = wp.tid()
    printf("%d|%5d|%-5d|%05d|%+i\n", i, 42, 42, 42, 7)  # noqa: F821
    wp.printf("%f %.2f %8.3e %g %G\n", x[i], x[i], x[i], 1e-10, wp.float64(2.5))
    wp.printf("%u %x %X %o %hhu\n", -1, 255, 255, 8, wp.uint8(7))
    wp.printf("%lld\n", wp.int64(1) << wp.int64(40))
    wp.printf("%s %s %% %s|\n", "words", x[i], True)
    print(f"x[{i}] = {x[i]:.3f}, {wp.vec2(1.0, 2.0):+.1f} {{}}")
    print(f"{i:>4}", f"{x[i]}")


@wp.func
def spoken(x: float):
    print("in a function", x)
    return x * x


@wp.kernel
def differentiated(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for k in range(2):
        s += spoken(x[i]) * float(k + 1)
        if s > 5.0:
            print("large", s)
    y[i] = s
    y[i] = y[i] * s


@wp.kernel
def expecting(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.expect_eq(i, i)
    wp.expect_near(x[i], 1.0, 0.5)
    wp.expect_near(wp.vec2(x[i], 1.0), wp.vec2(x[i], 1.0))
    wp.expect_eq(wp.vec2(x[i], 2.0), wp.vec2(1.0, 2.0))
    wp.expect_neq(i, 1)
    y[i] = x[i] * x[i]


@wp.kernel
def near(a: wp.float64, b: wp.float64, tolerance: wp.float64):
    wp.expect_near(a, b, tolerance)


@wp.kernel
def asserting(x: wp.array2d(dtype=float)):
    i, j = wp.tid()
    assert x[i, j] < 3.5, "too large"
    assert i >= 0
    x[i, j] = 0.0


@wp.func
def checked(x: float):
    assert x > 0.0
    return wp.sqrt(x)


@wp.kernel(module="unique", module_options={"mode": "debug"})
def through_a_function(x: wp.array(dtype=float)):
    x[wp.tid()] = checked(x[wp.tid()])


@wp.kernel
def without_assertions(x: wp.array(dtype=float)):
    x[wp.tid()] = checked(x[wp.tid()])


def launch(kernel: Any, *args: Any, dim: Any = None) -> None:
    wp.launch(kernel, dim=len(args[0]) if dim is None else dim, inputs=list(args))


def array(*numbers: float) -> Any:
    return wp.array(numbers, dtype=float, requires_grad=True)


def test_values(capsys: Any) -> None:
    print("before")
    launch(values, array(1.5, 2.0))
    print("after")
    one = ["0", "1.5 0.1 200 -5", "True True", "1 2.5 -3 1 2", "1 2", "3 4", "text0more more", "",
           "1e+20"]  # fmt: skip
    two = ["1", "2 0.1 200 -5", "True False", "1 2.5 -3 1 2", "1 2", "3 4", "text1more more", "",
           "1e+20"]  # fmt: skip
    assert capsys.readouterr().out.splitlines() == ["before", *one, *two, "after"]


def test_formats(capsys: Any) -> None:
    launch(formatted, array(2.25))
    assert capsys.readouterr().out.splitlines() == [
        "0|   42|42   |00042|+7",
        "2.250000 2.25 2.250e+00 1e-10 2.5",
        "4294967295 ff FF 10 7",
        "1099511627776",
        "words 2.25 % True|",
        "x[0] = 2.250, +1.0 +2.0 {}",
        "   0 2.25",
    ]


def test_the_interpreter_says_the_same(capsys: Any) -> None:
    for kernel in (values, formatted):
        x = array(1.5, 2.0)
        launch(kernel, x)
        printed = capsys.readouterr().out
        said: list[str] = []
        interp.run(kernel.plan.variants.ir, [x.numpy()], 2,
                   messages=lambda m, thread, v: said.append(text_of(m, v)))  # fmt: skip
        assert "".join(said) == printed


def test_nothing_is_said_twice(capsys: Any) -> None:
    """Not by the backward pass, and not by checks, which run the launch many times."""
    x, y = array(1.0, 2.0), wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        launch(differentiated, x, y)
    said = capsys.readouterr().out.splitlines()
    assert said == ["in a function 1"] * 2 + ["in a function 2"] * 2 + ["large 12"]
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(x.grad.numpy(), 36 * x.numpy() ** 3)
    assert capsys.readouterr().out == ""
    wp.autograd.gradcheck_tape(tape, show_summary=False)
    moved = wp.autograd.jvp(tape, tangents={x: np.float32([1, 1])})
    np.testing.assert_allclose(np.asarray(moved[y]), 36 * x.numpy() ** 3, rtol=1e-6)
    assert capsys.readouterr().out == ""


def test_failed_expectations(capsys: Any) -> None:
    x, y = array(1.0, 2.0, 1.25), wp.zeros(3, dtype=float, requires_grad=True)
    with pytest.raises(wp.LaunchError) as caught, wp.Tape() as tape:
        launch(expecting, x, y)
    assert capsys.readouterr().out.splitlines() == [
        "Error, expect_near() failed with tolerance 0.5", "\t Expected: 1", "\t Actual: 2",
        "Error, expect_eq() failed:", "\t Expected: 1 2", "\t Actual: 2 2",
        "Error, expect_neq() failed:", "\t Expected: 1", "\t Actual: 1",
        "Error, expect_eq() failed:", "\t Expected: 1 2", "\t Actual: 1.25 2",
    ]  # fmt: skip
    (d,) = caught.value.diagnostics
    assert d.code == "E210" and "'expecting'" in d.message
    assert d.span is not None and d.span.file == __file__
    assert d.span.line == expecting.span.line + 3
    assert d.notes[0] == "thread 1 of a grid of 3"
    assert d.notes[1] == "expect_near() failed with tolerance 0.5; Expected: 1; Actual: 2"
    assert d.notes[2] == "3 more failed in the same launch"
    assert __file__ in d.notes[3]
    # The launch ran to its end, and is on the tape.
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy())


def test_expectations_that_only_print(capsys: Any) -> None:
    wp.config.expect = "print"
    launch(expecting, array(1.0, 2.0), wp.zeros(2, dtype=float))
    assert capsys.readouterr().out.count("Error") == 3


@pytest.mark.parametrize(
    ("a", "b", "tolerance", "holds"),
    [(1.0, 1.5, 0.5, True), (1.0, 1.5, 0.49, False), (np.inf, np.inf, 0.0, True),
     (np.nan, np.nan, 1.0, False), (np.inf, -np.inf, np.inf, True), (0.0, np.inf, 1.0, False)],
)  # fmt: skip
def test_near(a: float, b: float, tolerance: float, holds: bool, capsys: Any) -> None:
    wp.config.expect = "print"
    launch(near, a, b, tolerance, dim=1)
    assert (capsys.readouterr().out == "") == holds


def test_assertions_mean_nothing_in_release(capsys: Any) -> None:
    x = wp.full((2, 2), 9.0, dtype=float)
    launch(without_assertions, array(-1.0))
    wp.launch(wp.kernel(asserting.func, name="released"), dim=(2, 2), inputs=[x])
    assert not x.numpy().any() and capsys.readouterr().out == ""


@pytest.mark.host("the order of threads")
def test_failed_assertion(capsys: Any) -> None:
    wp.config.mode = "debug"
    x = wp.array([[1.0, 2, 3], [4, 5, 6]], dtype=float)
    with pytest.raises(wp.LaunchError) as caught:
        wp.launch(asserting, dim=(2, 3), inputs=[x])
    (d,) = caught.value.diagnostics
    assert d.code == "E210" and d.message == "kernel 'asserting': an assertion failed"
    assert d.notes[0] == "thread (1, 0) of a grid of (2, 3)"
    assert d.notes[1] == "Assertion failed: too large"
    assert d.span is not None and d.span.line == asserting.span.line + 2
    assert capsys.readouterr().out == "Assertion failed: too large\n"
    np.testing.assert_array_equal(x.numpy(), [[0, 0, 0], [4, 5, 6]])


@pytest.mark.host("the order of threads")
def test_an_assertion_in_a_function_ends_the_launch(capsys: Any) -> None:
    x = array(4.0, -1.0, 9.0)
    with pytest.raises(wp.LaunchError, match="x > 0"):
        launch(through_a_function, x)
    np.testing.assert_array_equal(x.numpy(), [2, -1, 9])
    launch(without_assertions, x)  # the same function, compiled without
    assert capsys.readouterr().out.count("failed") == 1


def test_the_interpreter_stops_at_an_assertion() -> None:
    launch_it = array(4.0)
    launch(through_a_function, launch_it)
    with pytest.raises(interp.InterpError, match="assertion"):
        interp.run(through_a_function.plan.variants.ir, [np.float32([-1.0])], 1)


def test_many_messages(capsys: Any) -> None:
    x = wp.zeros(5000, dtype=float)
    launch(values, x)
    assert len(capsys.readouterr().out.splitlines()) == 5000 * 9


def test_on_the_host(capsys: Any) -> None:
    wp.print("a", 1)
    wp.printf("%d %5.2f %lld\n", 1, 2.5, 3)
    assert capsys.readouterr().out == "a 1\n1  2.50 3\n"
    wp.expect_eq(1, 1)
    with pytest.raises(wp.LaunchError, match=r"E210.*expect_eq"):
        wp.expect_eq(1, 2)
    with pytest.raises(wp.EngineError, match="outside a kernel"):
        wp.tid()
