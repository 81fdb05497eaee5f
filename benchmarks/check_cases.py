"""Checks of gradients and Jacobians, as `engine` and Warp do them."""

from __future__ import annotations

from typing import Any

from benchmarks.case import Array, Case, Ready
from benchmarks.data import values


def make_gradcheck_tape(wp: Any, kernels: Any, size: int) -> Ready:
    """`gradcheck_tape` at default settings on one elementwise launch."""
    x, y = _line(wp, size)
    tape = wp.Tape()
    with tape:
        wp.launch(kernels.elementwise, dim=size, inputs=[x], outputs=[y])

    def forward() -> None:
        if not wp.autograd.gradcheck_tape(tape, raise_exception=False, show_summary=False):
            raise RuntimeError("a right gradient failed its check")

    return Ready(forward, None, [y])


def make_gradcheck(wp: Any, kernels: Any, size: int) -> Ready:
    """`gradcheck` at default settings of an elementwise kernel."""
    x, y = _line(wp, size)
    wp.launch(kernels.elementwise, dim=size, inputs=[x], outputs=[y])

    def forward() -> None:
        given = {"dim": size, "inputs": [x], "outputs": [y]}
        check = wp.autograd.gradcheck
        if not check(kernels.elementwise, **given, raise_exception=False, show_summary=False):
            raise RuntimeError("a right gradient failed its check")

    forward()
    return Ready(forward, None, [y])


def make_jacobian(wp: Any, kernels: Any, size: int) -> Ready:
    """The dense Jacobian of one diffusion step on a square grid of `size` cells."""
    u, out, dim = _grid(wp, size)

    def forward() -> None:
        wp.autograd.jacobian(kernels.stencil, dim=dim, inputs=[u], outputs=[out])

    found = wp.autograd.jacobian(kernels.stencil, dim=dim, inputs=[u], outputs=[out])
    return Ready(forward, None, [found[0, 0]])


def make_sparse_jacobian(wp: Any, kernels: Any, size: int) -> Ready:
    """The same as a sparse matrix."""
    u, out, dim = _grid(wp, size)

    def forward() -> None:
        given = {"dim": dim, "inputs": [u], "outputs": [out], "sparse": True}
        found = wp.autograd.jacobian(kernels.stencil, **given)[0, 0]
        if found.nnz != 5 * (dim[0] - 2) ** 2:
            raise RuntimeError("the Jacobian has a wrong number of entries")

    wp.launch(kernels.stencil, dim=dim, inputs=[u], outputs=[out])
    forward()
    return Ready(forward, None, [out])


def make_rollout(wp: Any, kernels: Any, size: int) -> Ready:
    """The check of a tape of 100 launches that move `size` particles, and of the whole."""
    shape = (size, 3)
    x = wp.array(values(3 * size).reshape(shape), dtype=wp.vec3, requires_grad=True)
    v = wp.array(values(3 * size)[::-1].copy().reshape(shape), dtype=wp.vec3, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for _ in range(100):
            after = [wp.zeros(size, dtype=wp.vec3, requires_grad=True) for _ in range(2)]
            wp.launch(kernels.move, dim=size, inputs=[x, v, 0.01], outputs=after)
            x, v = after

    def forward() -> None:
        found = wp.autograd.check(tape)
        verdicts = {p.verdict for launch in found.launches for p in launch.pairs}
        if verdicts != {"pass"} or found.whole is None or found.whole.verdict != "pass":
            raise RuntimeError("a right gradient failed its check")

    forward()
    return Ready(forward, None, [x])


def _line(wp: Any, size: int) -> tuple[Array, Array]:
    x = wp.array(values(size), dtype=float, requires_grad=True)
    return x, wp.zeros(size, dtype=float, requires_grad=True)


def _grid(wp: Any, size: int) -> tuple[Array, Array, tuple[int, int]]:
    side = round(size**0.5)
    u = wp.array(values(side * side).reshape(side, side), dtype=float, requires_grad=True)
    return u, wp.zeros((side, side), dtype=float, requires_grad=True), (side, side)


CHECKS = [
    Case(
        "gradcheck_tape",
        "`gradcheck_tape`, elementwise",
        2000,
        200,
        make_gradcheck_tape,
        note="engine looks along random directions that cover every entry, and at single entries "
        "only where a direction disagrees; warp computes every entry",
        group="checks",
    ),
    Case(
        "gradcheck",
        "`gradcheck`, elementwise",
        2000,
        200,
        make_gradcheck,
        note="the same; torch checks in float64, jax along one direction",
        group="checks",
    ),
    Case(
        "jacobian",
        "`jacobian`, dense, 5-point stencil",
        2500,
        400,
        make_jacobian,
        note="engine evaluates all rows of one colour at once, and then fills the matrix",
        group="checks",
    ),
    Case(
        "gradcheck_large",
        "`gradcheck`, elementwise",
        1_000_000,
        10_000,
        make_gradcheck,
        note="warp computes each of the 10^12 entries of the matrix",
        alone=True,
    ),
    Case(
        "sparse_jacobian",
        "`jacobian`, sparse, 5-point stencil, square grid",
        1_000_000,
        2500,
        make_sparse_jacobian,
        note="warp has dense matrices only: 4 TB here",
        alone=True,
    ),
    Case(
        "rollout",
        "check of a 100-launch roll-out of particles, and of the tape as a whole",
        10_000,
        100,
        make_rollout,
        note="warp computes every entry of each launch: 9 10^8 for each pair of arrays",
        alone=True,
    ),
]
