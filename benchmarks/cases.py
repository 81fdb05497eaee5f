"""The cases: what is launched, on which data, how large, and how much memory it must move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any  # an array of the framework that is measured


@dataclass
class Ready:
    """A case with its arrays made: call `forward` or `backward` and time it.

    `outputs` and `gradients` are read once, to compare the frameworks' results.
    """

    forward: Callable[[], None]
    backward: Callable[[], None] | None
    outputs: list[Array] = field(default_factory=list)
    gradients: list[Array] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """One row of the table.

    `moved` is the memory that forward and backward must at least move, in arrays of
    `size` float32 values (None: the row is not bound by memory). `inner` calls are
    timed together, where one is too short for the clock. `alone`: only `engine` runs it, in a
    process of its own whose memory is measured too; what the peer would need is in `note`.
    """

    name: str
    title: str
    size: int
    quick: int
    make: Callable[[Any, Any, int], Ready]
    moved: tuple[float, float] | None = None
    inner: int = 1
    note: str = ""
    alone: bool = False


def _values(size: int, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size=size).astype(np.float32)


def _taped(
    wp: Any, kernel: Any, dim: Any, inputs: list[Any], out: Array, wrt: list[Array]
) -> Ready:
    """One launch, and the backward pass of a tape with that one launch, seeded by ones."""
    seed = wp.ones_like(out)

    def forward() -> None:
        wp.launch(kernel, dim=dim, inputs=inputs, outputs=[out])

    tape = wp.Tape()
    with tape:
        forward()

    def backward() -> None:
        tape.backward(grads={out: seed})

    return Ready(forward, backward, [out], [a.grad for a in wrt])


def make_tiny(wp: Any, kernels: Any, size: int) -> Ready:
    """A launch with nothing to do: the overhead."""
    x = wp.full(1, 3.0, dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    return _taped(wp, kernels.tiny, 1, [x], y, [x])


def make_saxpy(wp: Any, kernels: Any, size: int) -> Ready:
    """z = a x + y."""
    x = wp.array(_values(size), dtype=float, requires_grad=True)
    y = wp.array(_values(size, 2), dtype=float, requires_grad=True)
    z = wp.zeros(size, dtype=float, requires_grad=True)
    return _taped(wp, kernels.saxpy, size, [2.5, x, y], z, [x, y])


def make_elementwise(wp: Any, kernels: Any, size: int) -> Ready:
    """Transcendental functions of one array."""
    x = wp.array(_values(size), dtype=float, requires_grad=True)
    y = wp.zeros(size, dtype=float, requires_grad=True)
    return _taped(wp, kernels.elementwise, size, [x], y, [x])


def make_nbody(wp: Any, kernels: Any, size: int) -> Ready:
    """All pairs, by a loop whose length is an argument."""
    x = wp.array(_values(3 * size).reshape(-1, 3), dtype=wp.vec3, requires_grad=True)
    mass = wp.array(_values(size, 2) + 1.5, dtype=float, requires_grad=True)
    a = wp.zeros(size, dtype=wp.vec3, requires_grad=True)
    return _taped(wp, kernels.nbody, size, [x, mass, size], a, [x, mass])


def make_stencil(wp: Any, kernels: Any, size: int) -> Ready:
    """One diffusion step on a square grid of `size` cells."""
    side = round(size**0.5)
    u = wp.array(_values(side * side).reshape(side, side), dtype=float, requires_grad=True)
    out = wp.zeros((side, side), dtype=float, requires_grad=True)
    return _taped(wp, kernels.stencil, (side, side), [u], out, [u])


def make_springs(wp: Any, kernels: Any, size: int) -> Ready:
    """Scatter: every spring adds its force to both of its ends, which lie close by in memory."""
    particles = size // 2
    rng = np.random.default_rng(3)
    first = rng.integers(0, particles, size=size).astype(np.int32)
    second = ((first + rng.integers(1, 1000, size=size)) % particles).astype(np.int32)
    x = wp.array(_values(3 * particles).reshape(-1, 3), dtype=wp.vec3, requires_grad=True)
    force = wp.zeros(particles, dtype=wp.vec3, requires_grad=True)
    ends = [wp.array(first, dtype=int), wp.array(second, dtype=int)]
    # A seed that differs from particle to particle: with equal seeds all terms would cancel.
    ready = _taped(wp, kernels.springs, size, [x, *ends], force, [x])
    seed = wp.array(_values(3 * particles, 4).reshape(-1, 3), dtype=wp.vec3)
    tape = wp.Tape()
    with tape:
        ready.forward()
    return Ready(
        ready.forward, lambda: tape.backward(grads={force: seed}), ready.outputs, ready.gradients
    )


def make_looped_sine(wp: Any, kernels: Any, size: int) -> Ready:
    """A dynamic loop that carries a value through a nonlinear function."""
    x = wp.array(_values(size), dtype=float, requires_grad=True)
    y = wp.zeros(size, dtype=float, requires_grad=True)
    return _taped(wp, kernels.looped_sine, size, [x, 16], y, [x])


def make_sum_of_squares(wp: Any, kernels: Any, size: int) -> Ready:
    """A reduction into one element."""
    x = wp.array(_values(size), dtype=float, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    return _taped(wp, kernels.sum_of_squares, size, [x], out, [x])


def make_highest(wp: Any, kernels: Any, size: int) -> Ready:
    """A maximum of all threads, on a tape: the forward pass keeps what the gradient needs."""
    x = wp.array(_values(size), dtype=float, requires_grad=True)
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
    x = wp.array(_values(3 * size).reshape(shape), dtype=wp.vec3, requires_grad=True)
    v = wp.array(_values(3 * size)[::-1].copy().reshape(shape), dtype=wp.vec3, requires_grad=True)
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
    x = wp.array(_values(size), dtype=float, requires_grad=True)
    return x, wp.zeros(size, dtype=float, requires_grad=True)


def _grid(wp: Any, size: int) -> tuple[Array, Array, tuple[int, int]]:
    side = round(size**0.5)
    u = wp.array(_values(side * side).reshape(side, side), dtype=float, requires_grad=True)
    return u, wp.zeros((side, side), dtype=float, requires_grad=True), (side, side)


CASES = [
    Case("launch", "1-element kernel", 1, 1, make_tiny, inner=500),
    Case("saxpy", "`z = a*x + y`", 10_000_000, 100_000, make_saxpy, (3, 5)),
    Case("elementwise", "`sin*exp + sqrt`", 10_000_000, 100_000, make_elementwise, (2, 4)),
    Case("nbody", "n-body, dynamic loop", 4096, 256, make_nbody),
    Case("stencil", "5-point stencil, square grid", 9_000_000, 90_000, make_stencil, (2, 3)),
    Case("springs", "springs, scatter by atomics", 1_000_000, 10_000, make_springs),
    Case(
        "loop",
        "16-step dynamic loop of `sin`",
        1_000_000,
        10_000,
        make_looped_sine,
        note="warp's gradient of this loop is not the derivative, so its work is less",
    ),
    Case("sum", "sum of squares by one atomic", 10_000_000, 100_000, make_sum_of_squares, (1, 3)),
    Case("maximum", "maximum by one atomic, on a tape", 2_000_000, 100_000, make_highest),
    Case(
        "gradcheck_tape",
        "`gradcheck_tape`, elementwise",
        2000,
        200,
        make_gradcheck_tape,
        note="engine looks along random directions that cover every entry, and at single entries "
        "only where a direction disagrees; warp computes every entry",
    ),
    Case("gradcheck", "`gradcheck`, elementwise", 2000, 200, make_gradcheck, note="the same"),
    Case(
        "jacobian",
        "`jacobian`, dense, 5-point stencil",
        2500,
        400,
        make_jacobian,
        note="engine evaluates all rows of one colour at once, and then fills the matrix",
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
