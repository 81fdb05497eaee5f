"""An adjoint that is not linear in its cotangents fails at its launch; rounding is no fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck

F: Any = wp.array(dtype=float)
V: Any = wp.array(dtype=wp.vec3)


@wp.func
def right(g: float):
    return g


@wp.func
def without_negative(g: float):
    return wp.max(g, 0.0)


@wp.func
def without_positive(g: float):
    return wp.min(g, 0.0)


@wp.func
def magnitude(g: float):
    return wp.abs(g)


@wp.func
def clipped_at_1(g: float):
    return wp.clamp(g, -1.0, 1.0)


@wp.func
def clipped_at_100(g: float):
    return wp.clamp(g, -100.0, 100.0)


@wp.func
def without_small(g: float):
    return wp.where(wp.abs(g) < 1e-3, 0.0, g)


def squares(change: Any) -> Any:
    @wp.func
    def square(x: float):
        return x * x

    @wp.func_grad(square)
    def adj_square(x: float, adj_ret: float):
        wp.adjoint[x] += 2.0 * x * change(adj_ret)

    @wp.kernel
    def kernel(x: F, out: F):
        i = wp.tid()
        out[i] = square(x[i])

    return kernel


def verdicts(kernel: Any, inputs: list[Any], n: int, seed: int) -> list[str]:
    out = wp.zeros(n, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, n, inputs=inputs, outputs=[out])
    found = check_tape(tape, seed=seed, end_to_end=False)
    return [p.verdict for x in found.launches for p in x.pairs]


def values(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [1, 20])
@pytest.mark.parametrize(
    "change",
    [without_negative, without_positive, magnitude, clipped_at_1, clipped_at_100, without_small],
    ids=lambda f: f.key,
)
def test_what_drops_or_clips_cotangents_fails(change: Any, n: int, seed: int) -> None:
    kernel, x = squares(change), wp.array(values(n), dtype=float, requires_grad=True)
    assert verdicts(kernel, [x], n, seed) == ["fail"]
    out = wp.zeros(n, dtype=float, requires_grad=True)
    assert not gradcheck(
        kernel, n, [x], [out], raise_exception=False, show_summary=False, atol=1e-2, rtol=1e-2
    )


@wp.func
def not_beyond_10(g: float):
    return wp.where(g > 10.0, 0.0, g)


@wp.func
def at_most_a_million(g: float):
    return wp.min(g, 1.0e6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("change", [not_beyond_10, at_most_a_million, clipped_at_100])
def test_one_output_is_asked_with_large_cotangents_of_both_signs(change: Any, seed: int) -> None:
    @wp.func
    def square(x: float):
        return x * x

    @wp.func_grad(square)
    def adj_square(x: float, adj_ret: float):
        wp.adjoint[x] += 2.0 * x * change(adj_ret)

    @wp.kernel(module="unique")
    def total(x: F, out: F):
        wp.atomic_add(out, 0, square(x[wp.tid()]))

    x, out = (wp.array(values(n), dtype=float, requires_grad=True) for n in (4, 1))
    with wp.Tape() as tape:
        wp.launch(total, 4, inputs=[x], outputs=[out])
    (launch,) = check_tape(tape, seed=seed, end_to_end=False).launches
    assert [p.verdict for p in launch.pairs if p.input == "x"] == ["fail"]


def two_results(kind: str) -> Any:
    """A function of two results, whose adjoint is right for one cotangent at a time alone."""
    both_matter = kind == "right"

    @wp.func
    def both(x: float):
        return x * x, x * x * x

    @wp.func_grad(both)
    def adj_both(x: float, first: float, second: float):
        wp.adjoint[x] += 2.0 * x * first
        if wp.static(both_matter) or first == 0.0:
            wp.adjoint[x] += 3.0 * x * x * second

    return both


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["right", "wrong"])
def test_zero_cotangents_beside_others(kind: str, seed: int) -> None:
    both = two_results(kind)

    @wp.kernel(module="unique")
    def beside(x: F, y: F):
        i = wp.tid()
        a, b = both(x[i])
        y[2 * i] = a
        y[2 * i + 1] = b

    @wp.kernel(module="unique")
    def apart(x: F, y: F, z: F):
        i = wp.tid()
        a, b = both(x[i])
        y[i] = a
        z[i] = b

    x = wp.array(values(3), dtype=float, requires_grad=True)
    y, z, long = (wp.zeros(n, dtype=float, requires_grad=True) for n in (3, 3, 6))
    for kernel, outputs in ((beside, [long]), (apart, [y, z])):
        with wp.Tape() as tape:
            wp.launch(kernel, 3, inputs=[x], outputs=outputs)
        (launch,) = check_tape(tape, seed=seed, end_to_end=False).launches
        want = "pass" if kind == "right" else "fail"
        assert {p.verdict for p in launch.pairs} == {want}, kernel.key


@pytest.mark.parametrize("seed", range(3))
def test_the_right_one_passes(seed: int) -> None:
    x = wp.array(values(20), dtype=float, requires_grad=True)
    assert verdicts(squares(right), [x], 20, seed) == ["pass"]


@pytest.mark.parametrize("seed", range(10))
def test_rounding_of_a_derivative_that_is_zero_is_no_fault(seed: int) -> None:
    """Parts that cancel leave their rounding, which is another one for other cotangents."""

    @wp.func
    def unit(v: wp.vec3):
        return v / wp.length(v)

    @wp.func_grad(unit)
    def adj_unit(v: wp.vec3, adj_ret: wp.vec3):
        u = v / wp.length(v)
        wp.adjoint[v] += (adj_ret - u * wp.dot(u, adj_ret)) / wp.length(v)

    @wp.kernel
    def lengths(v: V, out: F):
        i = wp.tid()
        u = unit(v[i])
        out[i] = wp.dot(u, u)

    @wp.func
    def tenth(x: float):
        return x * 0.1

    @wp.func_grad(tenth)
    def adj_tenth(x: float, adj_ret: float):
        wp.adjoint[x] += 0.1 * adj_ret

    @wp.kernel
    def nothing(x: F, y: F, out: F):
        i = wp.tid()
        out[i] = tenth(x[i] * 3.0) - 3.0 * tenth(x[i]) + y[i]

    v = wp.array(values(20, 3, seed=seed), dtype=wp.vec3, requires_grad=True)
    assert verdicts(lengths, [v], 20, seed) == ["pass"]
    x, y = (wp.array(values(20, seed=s), dtype=float, requires_grad=True) for s in (seed, 99))
    assert verdicts(nothing, [x, y], 20, seed) == ["pass", "pass"]
