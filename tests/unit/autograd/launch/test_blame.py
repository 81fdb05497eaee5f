"""The wrong piece among native adjoints, replays and handwritten gradients is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape


@wp.func_native("return x * x;", "adj_x += 3.0f * x * adj_ret;")  # should be 2
def square(x: float) -> float: ...


@wp.func_native("return x * x * x;", "adj_x += 3.0f * x * x * adj_ret;")
def cube(x: float) -> float: ...


@wp.func_native("return v[0] * v[1] + s;", "adj_v[0] += v[1] * adj_ret; adj_s += adj_ret;")
def area(v: wp.vec2, s: float) -> float: ...  # forgets v[1]


@wp.func
def ripple(x: float):
    return wp.sin(3.0 * x)


@wp.func_grad(ripple)
def adj_ripple(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * wp.cos(3.0 * x) * adj_ret


@wp.func
def doubled(buf: wp.array(dtype=float), i: int):
    return buf[i] * 2.0


@wp.func_replay(doubled)
def replay_doubled(buf: wp.array(dtype=float), i: int):
    return buf[i] * 3.0


@wp.func
def next_free(counter: wp.array(dtype=int), kept: wp.array(dtype=int), i: int):
    k = wp.atomic_add(counter, 0, 1)
    kept[i] = k
    return k


@wp.func_replay(next_free)
def replay_next_free(counter: wp.array(dtype=int), kept: wp.array(dtype=int), i: int):
    return kept[i]


@wp.func
def slope(x: float):
    return x * x


@wp.func_grad(slope)
def adj_slope(x: float, adj_ret: float):
    wp.adjoint[x] += 1.9 * x * adj_ret


@wp.func
def laplace(u: wp.array(dtype=float), w: wp.array(dtype=float), i: int):
    return w[i] * (u[i - 1] - 2.0 * u[i] + u[i + 1])


@wp.func_grad(laplace)
def adj_laplace(u: wp.array(dtype=float), w: wp.array(dtype=float), i: int, adj_ret: float):
    wp.atomic_add(wp.adjoint[u], i - 1, w[i] * adj_ret)
    wp.atomic_add(wp.adjoint[u], i, 2.0 * w[i] * adj_ret)  # should be -2
    wp.atomic_add(wp.adjoint[u], i + 1, w[i] * adj_ret)


@wp.kernel
def diffused(u: wp.array(dtype=float), w: wp.array(dtype=float), v: wp.array(dtype=float)):
    i = wp.tid()
    if i > 0 and i < u.shape[0] - 1:
        v[i] = u[i] + 0.2 * laplace(u, w, i)


@wp.kernel
def natives(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = square(x[i]) + cube(x[i]) + ripple(x[i])


@wp.kernel
def of_vectors(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = area(wp.vec2(x[i], 2.0 * x[i]), x[i]) * cube(x[i])


@wp.kernel
def replays(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = doubled(x, i)
    y[i] = v * v + ripple(v)


@wp.kernel
def counted(
    x: wp.array(dtype=float),
    counter: wp.array(dtype=int),
    kept: wp.array(dtype=int),
    y: wp.array(dtype=float),
):
    i = wp.tid()
    k = next_free(counter, kept, i)
    y[k] = slope(x[k])


@wp.kernel
def steep(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * slope(x[i])


def checked(kernel: Any, *between: Any) -> Any:
    x = wp.array(np.linspace(0.5, 2.0, 5), dtype=float, requires_grad=True)
    y = wp.zeros(5, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=5, inputs=[x, *between], outputs=[y])
    (launch,) = check_tape(tape).launches
    assert {p.verdict for p in launch.pairs} == {"fail"}
    return launch


@pytest.mark.parametrize(
    ("kernel", "function", "derivative"),
    [
        (natives, "square", "square"),
        (of_vectors, "area", "area"),
        (replays, "doubled", "replay_doubled"),
    ],
)
def test_the_wrong_piece_is_named(kernel: Any, function: str, derivative: str) -> None:
    (wrong,) = checked(kernel).blame
    assert (wrong.function, wrong.derivative) == (function, derivative)
    assert wrong.span.file == __file__ and wrong.replay == (derivative != function)


def test_a_right_replay_is_not_blamed_for_a_wrong_gradient() -> None:
    launch = checked(counted, wp.zeros(1, dtype=int), wp.zeros(5, dtype=int))
    assert [b.derivative for b in launch.blame] == ["adj_slope"]


def test_an_array_operand_is_named_by_the_element_that_is_wrong() -> None:
    """And not one that needs no gradient, which the derivative leaves out."""
    (wrong,) = checked(diffused, wp.array([1.0, 1.0, 5.0, 1.0, 1.0], dtype=float)).blame
    assert (wrong.derivative, wrong.operands) == ("adj_laplace", (("i", "2"),))
    assert wrong.parts == (("u[2]", "10", "-10"),)


def test_the_time_of_the_compiler_is_not_that_of_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operands that are named do not depend on what was compiled before."""
    from engine.autograd.launch import blame

    now = 0.0

    class Compiled(blame.Evaluation):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            nonlocal now
            now += 100.0
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(blame, "Evaluation", Compiled)
    monkeypatch.setattr(blame, "perf_counter", lambda: now)
    (wrong,) = checked(diffused, wp.array([1.0, 1.0, 5.0, 1.0, 1.0], dtype=float)).blame
    assert now >= 100.0
    assert wrong.operands == (("i", "2"),)


def test_operands_are_looked_for_once_a_kernel() -> None:
    """The search for them takes longer than the check; later launches name the derivative alone."""
    x = wp.array(np.linspace(0.5, 2.0, 5), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for scale in range(1, 7):
            y = wp.zeros(5, dtype=float, requires_grad=True)
            wp.launch(steep, 5, [x, float(scale), y])
    found = check_tape(tape).launches
    named = [[b.derivative for b in launch.blame] for launch in found]
    assert named == [["adj_slope"]] * 6
    assert [len(launch.blame[0].parts) for launch in found] == [1, 0, 0, 0, 0, 0]
