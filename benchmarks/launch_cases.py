"""Small launches, where the time is that of the way to a kernel, as `engine` and Warp do them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.case import Array, Case, Ready
from benchmarks.data import CAPTURED, PARTICLES, SMALL, STEPS, values
from benchmarks.kernel_cases import taped
from benchmarks.targets import at_most, faster, times


def _pair(wp: Any) -> tuple[Array, Array]:
    x = wp.full(1, 3.0, dtype=float, requires_grad=True)
    return x, wp.zeros(1, dtype=float, requires_grad=True)


def make_tiny(wp: Any, kernels: Any, size: int) -> Ready:
    """A launch with nothing to do: the overhead."""
    x, y = _pair(wp)
    return taped(wp, kernels.tiny, 1, [x], y, [x])


def make_command(wp: Any, kernels: Any, size: int) -> Ready:
    """The same launch, recorded as a command."""
    x, y = _pair(wp)
    wp.launch(kernels.tiny, dim=1, inputs=[x], outputs=[y])
    command = wp.launch(kernels.tiny, dim=1, inputs=[x], outputs=[y], record_cmd=True)
    command.launch()
    return Ready(command.launch, None, [y])


def make_captured(wp: Any, kernels: Any, size: int) -> Ready:
    """A sequence of these launches, captured and replayed; and with its backward pass."""
    x, y = _pair(wp)

    def several() -> None:
        for _ in range(CAPTURED):
            wp.launch(kernels.tiny, dim=1, inputs=[x], outputs=[y])

    several()
    with wp.ScopedCapture(device=wp.get_device()) as plain:
        several()
    ready = Ready(lambda: wp.capture_launch(plain.graph), None, [y])
    ready.forward()
    seed = wp.ones_like(y)
    with wp.Tape() as tape:
        several()
    tape.backward(grads={y: seed})
    with wp.ScopedCapture(device=wp.get_device()) as whole:
        with wp.Tape() as tape:
            several()
        tape.backward(grads={y: seed})
    ready.backward = lambda: wp.capture_launch(whole.graph)
    return ready


def _on_tape(wp: Any, launch: Callable[[], object]) -> Any:
    """A fresh tape that has recorded a launch."""
    tape = wp.Tape()
    with tape:
        launch()
    return tape


def make_record(wp: Any, kernels: Any, size: int) -> Ready:
    """One launch on a fresh tape, alone and with its backward pass."""
    x, y = _pair(wp)
    seed = wp.ones_like(y)

    def record() -> Any:
        return _on_tape(wp, lambda: wp.launch(kernels.tiny, dim=1, inputs=[x], outputs=[y]))

    def both() -> None:
        record().backward(grads={y: seed})

    both()
    return Ready(record, both, [y], [])


def make_named(wp: Any, kernels: Any, size: int) -> Ready:
    """The 1-element launch as most programs write it: with the device; and on a fresh tape."""
    x, y = _pair(wp)
    device = wp.get_device()

    def launch() -> None:
        wp.launch(kernel=kernels.tiny, dim=1, inputs=[x], outputs=[y], device=device)

    launch()
    return Ready(launch, lambda: _on_tape(wp, launch), [y], [])


def make_host(wp: Any, kernels: Any, size: int) -> Ready:
    """Vectors and rotations where no kernel runs, as models are put together of them."""
    axis, part = wp.vec3(0.6, 0.0, 0.8), wp.quat(0.5, 0.5, 0.5, 0.5)

    def vectors() -> None:
        v = wp.vec3(1.0, 2.0, 3.0)
        v[1] = v[0] + v[2]
        v = v + axis * 2.0

    def rotations() -> None:
        turned = wp.quat_from_axis_angle(axis, 0.5) * part
        wp.normalize(wp.quat_rotate(turned, axis))

    vectors()
    rotations()
    return Ready(vectors, rotations, [], [])


def make_arrays(wp: Any, kernels: Any, size: int) -> Ready:
    """Making an array of one element, and giving one of many new values."""
    x = wp.zeros(size, dtype=float, requires_grad=True)
    new = values(size)
    x.assign(new)
    return Ready(lambda: wp.zeros(1, dtype=float, requires_grad=True), lambda: x.assign(new), [x])


def make_iteration(wp: Any, kernels: Any, size: int) -> Ready:
    """A small training iteration: fresh loss, record, backward, update, clear.

    It is updated by a kernel, and in the second pass by NumPy and `assign`.
    """
    target = wp.array(values(size), dtype=float)
    w = wp.zeros(size, dtype=float, requires_grad=True)

    def gradient() -> Any:
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(kernels.misfit, dim=size, inputs=[w, target], outputs=[loss])
        tape.backward(loss)
        return tape

    def by_kernel() -> None:
        tape = gradient()
        wp.launch(kernels.descend, dim=size, inputs=[w.grad, 0.01], outputs=[w])
        tape.zero()

    def by_numpy() -> None:
        tape = gradient()
        w.assign(w.numpy() - 0.01 * w.grad.numpy())
        tape.zero()

    by_kernel()
    by_numpy()
    return Ready(by_kernel, by_numpy, [w.numpy().copy()])


def make_captured_iteration(wp: Any, kernels: Any, size: int) -> Ready:
    """The small training iteration, captured as one sequence; its loss is cleared, not made."""
    target = wp.array(values(size), dtype=float)
    w = wp.zeros(size, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    def iteration() -> None:
        loss.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(kernels.misfit, dim=size, inputs=[w, target], outputs=[loss])
        tape.backward(loss)
        wp.launch(kernels.descend, dim=size, inputs=[w.grad, 0.01], outputs=[w])
        tape.zero()

    iteration()
    with wp.ScopedCapture(device=wp.get_device()) as capture:
        iteration()
    w.zero_()

    def replay() -> None:
        wp.capture_launch(capture.graph)

    replay()
    replay()
    return Ready(replay, None, [w.numpy().copy()])


def _rollout(wp: Any, kernels: Any, size: int) -> tuple[Any, Any, list[Array], Array]:
    """Functions that record a roll-out, and run it backward too; its last state, and its first."""
    given = {"dtype": float, "requires_grad": True}
    xs = [wp.array(values(PARTICLES), **given)]
    vs = [wp.array(values(PARTICLES, 2), **given)]
    xs += [wp.zeros(PARTICLES, **given) for _ in range(size)]
    vs += [wp.zeros(PARTICLES, **given) for _ in range(size)]
    seed = wp.ones_like(xs[0])

    def record() -> Any:
        tape = wp.Tape()
        with tape:
            for t in range(size):
                wp.launch(
                    kernels.swing,
                    dim=PARTICLES,
                    inputs=[xs[t], vs[t], 0.01],
                    outputs=[xs[t + 1], vs[t + 1]],
                )
        return tape

    def both() -> None:
        record().backward(grads={xs[size]: seed})

    return record, both, [xs[size], vs[size]], xs[0]


def make_trajectory(wp: Any, kernels: Any, size: int) -> Ready:
    """A roll-out: so many small launches, recorded (first pass) and run backward (second)."""
    record, both, outputs, first = _rollout(wp, kernels, size)
    both()
    gradient = first.grad.numpy().copy()
    return Ready(record, both, outputs, [gradient])


def make_captured_trajectory(wp: Any, kernels: Any, size: int) -> Ready:
    """The same, captured as one sequence, without and with its backward pass."""
    record, both, outputs, first = _rollout(wp, kernels, size)
    both()
    gradient = first.grad.numpy().copy()
    graphs = []
    for what in (record, both):
        with wp.ScopedCapture(device=wp.get_device()) as capture:
            what()
        graphs.append(capture.graph)
    return Ready(
        lambda: wp.capture_launch(graphs[0]),
        lambda: wp.capture_launch(graphs[1]),
        outputs,
        [gradient],
    )


def make_launches(wp: Any, kernels: Any, size: int) -> Ready:
    """So many launches on a fresh tape, and its backward pass, for the plot: linear or not."""
    x = wp.array(values(PARTICLES), dtype=float, requires_grad=True)
    ys = [wp.zeros(PARTICLES, dtype=float, requires_grad=True) for _ in range(100)]
    seed = wp.ones_like(x)

    def record() -> Any:
        tape = wp.Tape()
        with tape:
            for t in range(size):
                y = ys[t % 100]
                wp.launch(kernels.elementwise, dim=PARTICLES, inputs=[x], outputs=[y])
        return tape

    tape = record()
    last = ys[(size - 1) % 100]

    def backward() -> None:
        tape.backward(grads={last: seed})

    backward()
    return Ready(record, backward)


LAUNCHES = [
    Case(
        "launch", "1-element kernel", 1, 1, make_tiny, inner=500, group="launches",
        targets=((faster(5), at_most(2e-6)), (faster(5), at_most(4e-6))),
        note="taichi, numba, jax and torch: a call of a compiled function of one element",
    ),
    Case(
        "command", "the same, as a `Command`", 1, 1, make_command, inner=500, group="launches",
        targets=((times(1.0, "row launch"),), ()),
    ),
    Case(
        "captured", "100 such launches, captured", 1, 1, make_captured, inner=5, per=CAPTURED,
        group="launches", passes=("replay", "replay with backward"),
        note="figures for each launch",
    ),
    Case(
        "record", "a launch on a fresh tape", 1, 1, make_record, inner=100, group="launches",
        passes=("record", "record and backward"),
    ),
    Case(
        "named", "1-element kernel, its device named", 1, 1, make_named, inner=200,
        group="launches", passes=("forward", "record"),
    ),
    Case(
        "host", "vectors and rotations on the host", 1, 1, make_host, inner=100, group="launches",
        passes=("three of vectors", "four of rotations"),
        note="vectors: one made, a component set, a sum; rotations: made, multiplied, applied",
    ),
    Case(
        "arrays", "arrays", SMALL, SMALL, make_arrays, inner=100, group="launches",
        passes=("`zeros(1)`", "`assign` of 1,000"),
    ),
    Case(
        "iteration", "a small training iteration", SMALL, SMALL, make_iteration, inner=50,
        group="launches", passes=("updated by a kernel", "updated by NumPy"),
        targets=((faster(4), at_most(25e-6)), (faster(4), at_most(25e-6))),
    ),
    Case(
        "iteration_captured", "the iteration that a kernel updates, captured", SMALL, SMALL,
        make_captured_iteration, inner=50, group="launches", passes=("replay", ""),
        note="jax compiles the whole iteration into one program",
    ),
    Case(
        "trajectory", "a roll-out of 1,000 small launches", STEPS, 20, make_trajectory, per=0,
        group="launches", passes=("record", "record and backward"),
        targets=((), (faster(5), at_most(5e-6))),
        note="figures for each launch",
    ),
    Case(
        "trajectory_captured", "the roll-out, captured", STEPS, 20, make_captured_trajectory,
        per=0, group="launches", passes=("replay", "replay with backward"),
        note="figures for each launch; jax compiles the whole loop (`scan`) into one program",
    ),
]  # fmt: skip
