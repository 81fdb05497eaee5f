"""Backward passes are compiled beside the launches that they follow, where nothing waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import compiler

pytestmark = pytest.mark.host("compilers of the CPU run side by side")

F = wp.array(dtype=float)
N = 5


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many forms of kernels were compiled at once, each time."""
    found: list[int] = []
    compile_all = compiler._compile

    def compiled(cache: Any, units: list[Any], toolchain: Any) -> None:
        found.append(len(units))
        compile_all(cache, units, toolchain)

    monkeypatch.setattr(compiler, "_compile", compiled)
    return found


def square() -> wp.Kernel:
    @wp.kernel(module="unique")
    def square(x: F, y: F):
        i = wp.tid()
        y[i] = x[i] * x[i]

    return square


def in_place() -> wp.Kernel:
    """Its adjoint reads a journal."""

    @wp.kernel(module="unique")
    def in_place(x: F, y: F):
        i = wp.tid()
        x[i] = wp.sin(x[i]) * x[i]
        y[i] = y[i] + x[i]

    return in_place


def made(requires_grad: bool = True) -> Any:
    return wp.array(np.linspace(0.5, 1.0, N), dtype=float, requires_grad=requires_grad)


def recorded(kernel: wp.Kernel, x: Any, y: Any) -> wp.Tape:
    with wp.Tape() as tape:
        wp.launch(kernel, N, [x], [y])
    return tape


def test_one_kernel_and_its_backward_pass(batches: list[int]) -> None:
    x, y = made(), made()
    tape = recorded(square(), x, y)
    assert batches == [2]
    tape.backward(grads={y: np.ones(N, np.float32)})
    assert batches == [2]
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy(), rtol=1e-6)


def test_with_a_journal(batches: list[int]) -> None:
    x, y = made(), made()
    before = x.numpy().copy()
    tape = recorded(in_place(), x, y)
    assert batches == [3]
    tape.backward(grads={y: np.ones(N, np.float32)})
    assert batches == [3]
    np.testing.assert_allclose(x.grad.numpy(), np.cos(before) * before + np.sin(before), rtol=1e-5)


def test_a_journal_that_is_asked_for_later(batches: list[int]) -> None:
    kernel, x, y = in_place(), made(), made()
    wp.launch(kernel, N, [x], [y])
    tape = recorded(kernel, x, y)
    tape.backward(grads={y: np.ones(N, np.float32)})
    assert batches == [1, 2]


def test_arguments_that_share_memory(batches: list[int]) -> None:
    x = made()
    before = x.numpy().copy()
    tape = recorded(square(), x, x)
    _, *others = batches
    assert others == [1]  # the form for any arrays, which is made when it is needed
    tape.backward(grads={x: np.ones(N, np.float32)})
    _, *others = batches
    assert others == [1, 1]  # that of the adjoint, which had been made
    np.testing.assert_allclose(x.grad.numpy(), 2 * before, rtol=1e-6)


@pytest.mark.parametrize("why", ["no tape", "no gradient", "not recorded", "switched off"])
def test_nothing_that_is_not_likely(
    why: str, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, kernel = made(why != "no gradient"), made(why != "no gradient"), square()
    if why == "switched off":
        monkeypatch.setattr(wp.config, "enable_backward", False)
    if why == "no tape":
        wp.launch(kernel, N, [x], [y])
    else:
        with wp.Tape():
            wp.launch(kernel, N, [x], [y], record_tape=why != "not recorded")
    assert batches == [1]


def test_kernels_of_one_module_are_compiled_with_each_other(batches: list[int]) -> None:
    module = wp.get_module("tests.compiled_ahead")

    def first(x: F, y: F):
        i = wp.tid()
        y[i] = x[i] * 3.0

    def second(x: F, y: F):
        i = wp.tid()
        y[i] = x[i] * x[i] * x[i]

    kernels = [wp.Kernel(f, module=module) for f in (first, second)]
    x, y = made(), made()
    with wp.Tape() as tape:
        for kernel in kernels:
            wp.launch(kernel, N, [x], [y])
    assert batches == [2]
    tape.backward(grads={y: np.ones(N, np.float32)})
    assert batches == [2, 2]


@wp.func_native("return x * x;", adj_snippet="this is no C++;")
def broken_behind(x: float) -> float: ...


def test_what_cannot_be_compiled_is_told_by_the_backward_pass(counted: Callable[[], int]) -> None:
    @wp.kernel(module="unique")
    def calls(x: F, y: F):
        i = wp.tid()
        y[i] = broken_behind(x[i])

    x, y = made(), made()
    tape = recorded(calls, x, y)
    assert counted() == 2  # what was compiled beside it is kept
    np.testing.assert_allclose(y.numpy(), x.numpy() ** 2, rtol=1e-6)
    for _ in range(2):
        with pytest.raises(wp.CompilerError) as e:
            tape.backward(grads={y: np.ones(N, np.float32)})
        assert e.value.diagnostics[0].code == "E304"


@pytest.mark.parametrize(
    ("given", "code"),
    [([], "E201"), ([1.0, 2.0], "E202"), (["x", None], "E202"), ([[1.0], [2.0]], "E202"),
     ([wp.zeros(N, dtype=int), wp.zeros(N, dtype=int)], "E202")],
)  # fmt: skip
def test_wrong_arguments_are_told_as_ever(given: list[Any], code: str) -> None:
    kernel = square()
    for _ in range(2):
        with wp.Tape(), pytest.raises(wp.LaunchError) as e:
            wp.launch(kernel, N, given)
        assert e.value.diagnostics[0].code == code
