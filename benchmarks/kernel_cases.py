"""Launches of kernels on large data, as `engine` and Warp do them."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.case import Array, Case, Ready
from benchmarks.data import Springs, edges, random_springs, springs, systems, values
from benchmarks.targets import Target, faster, times


def taped(
    wp: Any,
    kernel: Any,
    dim: Any,
    inputs: list[Any],
    out: Array,
    wrt: list[Array],
    seed: Array = None,
) -> Ready:
    """One launch, and the backward pass of a tape with that one launch, seeded (by ones)."""
    seed = wp.ones_like(out) if seed is None else seed

    def forward() -> None:
        wp.launch(kernel, dim=dim, inputs=inputs, outputs=[out])

    tape = wp.Tape()
    with tape:
        forward()

    def backward() -> None:
        tape.backward(grads={out: seed})

    return Ready(forward, backward, [out], [a.grad for a in wrt])


def make_saxpy(wp: Any, kernels: Any, size: int) -> Ready:
    """z = a x + y."""
    x = wp.array(values(size), dtype=float, requires_grad=True)
    y = wp.array(values(size, 2), dtype=float, requires_grad=True)
    z = wp.zeros(size, dtype=float, requires_grad=True)
    return taped(wp, kernels.saxpy, size, [2.5, x, y], z, [x, y])


def make_elementwise(wp: Any, kernels: Any, size: int) -> Ready:
    """Transcendental functions of one array."""
    x = wp.array(values(size), dtype=float, requires_grad=True)
    y = wp.zeros(size, dtype=float, requires_grad=True)
    return taped(wp, kernels.elementwise, size, [x], y, [x])


def make_nbody(wp: Any, kernels: Any, size: int) -> Ready:
    """All pairs, by a loop whose length is an argument."""
    x = wp.array(values(3 * size).reshape(-1, 3), dtype=wp.vec3, requires_grad=True)
    mass = wp.array(values(size, 2) + 1.5, dtype=float, requires_grad=True)
    a = wp.zeros(size, dtype=wp.vec3, requires_grad=True)
    return taped(wp, kernels.nbody, size, [x, mass, size], a, [x, mass])


def make_stencil(wp: Any, kernels: Any, size: int) -> Ready:
    """One diffusion step on a square grid of `size` cells."""
    side = round(size**0.5)
    u = wp.array(values(side * side).reshape(side, side), dtype=float, requires_grad=True)
    out = wp.zeros((side, side), dtype=float, requires_grad=True)
    return taped(wp, kernels.stencil, (side, side), [u], out, [u])


def make_springs(wp: Any, kernels: Any, size: int, drawn: Springs = springs) -> Ready:
    """Scatter: every spring adds its force to both of its ends.

    drawn: gives these, which lie close by in memory, or anywhere.
    """
    particles, first, second = drawn(size)
    x = wp.array(values(3 * particles).reshape(-1, 3), dtype=wp.vec3, requires_grad=True)
    force = wp.zeros(particles, dtype=wp.vec3, requires_grad=True)
    ends = [wp.array(first, dtype=int), wp.array(second, dtype=int)]
    # A seed that differs from particle to particle: with equal seeds all terms would cancel.
    seed = wp.array(values(3 * particles, 4).reshape(-1, 3), dtype=wp.vec3)
    return taped(wp, kernels.springs, size, [x, *ends], force, [x], seed)


def make_cross(wp: Any, kernels: Any, size: int) -> Ready:
    """Vectors: the unit normal of two of them."""
    a, b = (wp.array(v.reshape(-1, 3), dtype=wp.vec3, requires_grad=True) for v in edges(size))
    n = wp.zeros(size, dtype=wp.vec3, requires_grad=True)
    seed = wp.array(values(3 * size, 5).reshape(-1, 3), dtype=wp.vec3)
    return taped(wp, kernels.unit_normal, size, [a, b], n, [a, b], seed)


def make_solve(wp: Any, kernels: Any, size: int) -> Ready:
    """Loops through local values: Cholesky's factors of a matrix in each thread, and a solution."""
    given, right = systems(size)
    a = wp.array(given, dtype=wp.spatial_matrix, requires_grad=True)
    b = wp.array(right, dtype=wp.spatial_vector, requires_grad=True)
    x = wp.zeros(size, dtype=wp.spatial_vector, requires_grad=True)
    return taped(wp, kernels.solve, size, [a, b], x, [a, b])


def make_looped_sine(wp: Any, kernels: Any, size: int) -> Ready:
    """A dynamic loop that carries a value through a nonlinear function."""
    x = wp.array(values(size), dtype=float, requires_grad=True)
    y = wp.zeros(size, dtype=float, requires_grad=True)
    return taped(wp, kernels.looped_sine, size, [x, 16], y, [x])


def make_sum_of_squares(wp: Any, kernels: Any, size: int) -> Ready:
    """A reduction into one element."""
    x = wp.array(values(size), dtype=float, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    return taped(wp, kernels.sum_of_squares, size, [x], out, [x])


def make_highest(wp: Any, kernels: Any, size: int) -> Ready:
    """A maximum of all threads, on a tape: the forward pass keeps what the gradient needs."""
    x = wp.array(values(size), dtype=float, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    seed = wp.ones_like(out)
    tape = wp.Tape()

    def forward() -> None:
        tape.reset()
        out.fill_(-1000.0)
        with tape:
            wp.launch(kernels.highest, dim=size, inputs=[x], outputs=[out])

    forward()
    return Ready(forward, lambda: tape.backward(grads={out: seed}), [out], [x.grad])


def _both(forward: float, backward: float) -> tuple[tuple[Target, ...], tuple[Target, ...]]:
    return (faster(forward),), (faster(backward),)


_COPY = Target("bandwidth", 0.8)
_HAND = times(1.3, "c++")

KERNELS = [
    Case(
        "saxpy", "`z = a*x + y`", 10_000_000, 100_000, make_saxpy, (3, 5),
        targets=((faster(3), _COPY), (faster(3), _COPY)),
    ),
    Case(
        "elementwise", "`sin*exp + sqrt`", 10_000_000, 100_000, make_elementwise, (2, 4),
        targets=((faster(15), _HAND), (faster(12), _HAND)),
    ),
    # 17 operations for each pair, the square root and the division one each.
    Case(
        "nbody", "n-body, dynamic loop", 4096, 256, make_nbody,
        flops=lambda n: 17.0 * n * n, targets=_both(4, 6),
    ),
    Case(
        "stencil", "5-point stencil, square grid", 9_000_000, 90_000, make_stencil, (2, 3),
        targets=_both(6, 4),
    ),
    Case(
        "springs", "springs, scatter by atomics", 1_000_000, 10_000, make_springs,
        targets=_both(2, 3),
    ),
    Case(
        "random_springs", "springs between any two points, scatter by atomics", 1_000_000, 10_000,
        partial(make_springs, drawn=random_springs), targets=_both(2, 3),
    ),
    Case(
        "loop", "16-step dynamic loop of `sin`", 1_000_000, 10_000, make_looped_sine,
        note="warp's gradient of this loop is not the derivative, so its work is less",
        targets=_both(10, 8),
    ),
    Case(
        "cross", "`normalize(cross)`, vec3", 1_000_000, 10_000, make_cross, (9, 21),
        targets=_both(3, 3),
    ),
    Case(
        "solve", "6x6 Cholesky and solution, in each thread", 100_000, 1_000, make_solve, (48, 96),
        note="warp's gradient is not the derivative; torch: a batch, by LAPACK",
    ),
    Case(
        "sum", "sum of squares by one atomic", 10_000_000, 100_000, make_sum_of_squares, (1, 3),
        targets=_both(3, 3),
    ),
    Case("maximum", "maximum by one atomic, on a tape", 2_000_000, 100_000, make_highest),
]  # fmt: skip
