"""NaN or Inf in an input hides no wrong gradient beside it, nor accuses a right one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck

F: Any = wp.array(dtype=float)
N = 9
AT = 4


@wp.func
def right(a: float, b: float):
    return a * a * b


@wp.func
def wrong(a: float, b: float):
    return a * a * b


@wp.func_grad(right)
def adj_right(a: float, b: float, g: float):
    wp.adjoint[a] += 2.0 * a * b * g
    wp.adjoint[b] += a * a * g


@wp.func_grad(wrong)
def adj_wrong(a: float, b: float, g: float):
    wp.adjoint[a] += 2.2 * a * b * g
    wp.adjoint[b] += a * a * g


def kernels(f: Any) -> dict[str, tuple[Any, int]]:
    """Each with how many threads it runs in."""

    @wp.kernel(module="unique")
    def own(x: F, s: F, y: F):
        i = wp.tid()
        y[i] = f(x[i], 1.5)

    @wp.kernel(module="unique")
    def neighbours(x: F, s: F, y: F):
        i = wp.tid()
        y[i] = f(x[i], x[i + 1])

    @wp.kernel(module="unique")
    def shared(x: F, s: F, y: F):
        i = wp.tid()
        y[i] = f(x[i], s[0])

    @wp.kernel(module="unique")
    def left_out(x: F, s: F, y: F):
        i = wp.tid()
        if wp.isfinite(x[i]):
            wp.atomic_add(y, i % 2, f(x[i], s[0]))

    return {
        "own": (own, N), "neighbours": (neighbours, N - 1), "shared": (shared, N),
        "left out": (left_out, N),
    }  # fmt: skip


KERNELS = {"right": kernels(right), "wrong": kernels(wrong)}


def verdicts(kernel: Any, threads: int, x: Any) -> dict[tuple[str, str], str]:
    arrays = [wp.array(x, dtype=float, requires_grad=True), wp.full(1, 1.5, requires_grad=True)]
    y = wp.zeros(N, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, threads, inputs=arrays, outputs=[y])
    (launch,) = check_tape(tape).launches
    return {(p.input, p.output): p.verdict for p in launch.pairs}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", sorted(KERNELS["right"]))
def test_finite_rows_are_judged(name: str, bad: float) -> None:
    x = np.linspace(0.5, 2.0, N)
    x[AT] = bad
    assert verdicts(*KERNELS["right"][name], x)["x", "y"] == "pass"
    assert verdicts(*KERNELS["wrong"][name], x)["x", "y"] == "fail"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_they_reach_wholly_is_not_judged(bad: float) -> None:
    x = np.linspace(0.5, 2.0, N)
    x[AT] = bad
    assert verdicts(*KERNELS["right"]["shared"], x)["s", "y"] == "inconclusive"
    assert verdicts(*KERNELS["right"]["left out"], x)["s", "y"] == "pass"


@wp.kernel
def roots(x: F, s: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i]) * s[0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_pole_of_the_launch_is_told_beside_them(bad: float) -> None:
    x = np.linspace(0.0, 2.0, N)
    x[AT] = bad
    assert verdicts(roots, N, x)["x", "y"] == "nan"
    x[0] = 0.5
    assert verdicts(roots, N, x)["x", "y"] == "pass"


@wp.kernel
def scaled(x: F, w: F, y: F):
    i = wp.tid()
    y[i] = x[i] * w[i]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_tape_that_reads_such_constants_is_not_judged(bad: float) -> None:
    x = wp.array([1.0, -2.0, 3.0], dtype=float, requires_grad=True)
    w, y = wp.array([2.0, bad, 1.0], dtype=float), wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scaled, 3, inputs=[x, w], outputs=[y])
    result = check_tape(tape)
    assert result.whole is not None and result.whole.verdict == "inconclusive"
    assert [p.verdict for p in result.launches[0].pairs] == ["pass"]


@wp.kernel
def guarded(x: F, y: F):
    i = wp.tid()
    if wp.isfinite(x[i]):
        wp.atomic_add(y, 0, x[i] * x[i])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_functions_of_guarded_values(bad: float) -> None:
    def function(x: Any) -> Any:
        y = wp.zeros(1, dtype=float, requires_grad=True)
        wp.launch(guarded, x.shape, inputs=[x], outputs=[y])
        return y

    x = wp.array([1.0, bad, 3.0, 4.0], dtype=float, requires_grad=True)
    assert gradcheck(function, inputs=[x], show_summary=False)
