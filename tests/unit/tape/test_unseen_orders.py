"""Captured tapes do what they do without a capture, with and without other owners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.runtime import graphs
from tests.unit.runtime.sequences import ONE_CALL
from tests.unit.tape.unseen_sequences import (
    bits_of,
    captured,
    descend,
    fewer,
    scale,
    total,
    training,
)

pytestmark = [
    *ONE_CALL,
    pytest.mark.usefixtures("alone"),
    pytest.mark.cold("counts what is captured natively"),
]


class Halving(wp.Tape):
    def backward(self, loss: Any = None, grads: Any = None) -> None:
        super().backward(loss, grads)
        for r in self.records:
            for a in r.arrays:
                if a.grad is not None:
                    a.grad.numpy()[...] *= 0.5


ORDERS = ("fbuz", "zfbu", "fzbu", "bf", "bfz", "fbbz", "ffbz", "efb", "bef", "zefb", "fbzz",
          "fbufbz", "fub", "zbf")  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [wp.Tape, Halving])
def test_orders_of_what_tapes_do(order: str, kind: Any) -> None:
    """As it is without a capture, whether somebody has the tape or not."""

    def made() -> tuple[list[Any], Callable[[], Any]]:
        x = wp.array(np.linspace(0, 1, 12, dtype=np.float32), requires_grad=True)
        y = wp.zeros(12, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)

        def iteration() -> Any:
            loss.zero_()
            tape = kind()
            for step in order:
                if step in "fe":
                    with tape:
                        if step == "f":
                            wp.launch(scale, 12, [x, y, 0.5])
                            wp.launch(total, 12, [y, loss, 1.0])
                elif step == "b":
                    tape.backward(loss)
                elif step == "z":
                    tape.zero()
                else:
                    wp.launch(descend, 12, [x.grad, x, 0.01])
            return tape

        return [x, y, loss], iteration

    def replayed(iteration: Callable[[], Any], kept: list[Any] | None) -> Callable[[], Any]:
        graph = captured(iteration, kept)
        return lambda: wp.capture_launch(graph)

    ways = [made() for _ in range(3)]
    kept: list[Any] = []
    runs = [ways[0][1], replayed(ways[1][1], kept), replayed(ways[2][1], None)]
    if kind is Halving:  # NumPy sees what is there when it is captured
        runs = runs[1:]
        ways = ways[1:]
    for _ in range(8):
        for run in runs:
            run()
        bits = [bits_of(arrays) for arrays, _ in ways]
        assert bits.count(bits[0]) == len(bits)


def test_a_tape_that_was_used_before() -> None:
    x, y = (wp.array(np.ones(6, np.float32), requires_grad=True) for _ in range(2))
    q = wp.array(np.ones(6, np.float32), requires_grad=True)
    kept = []
    for keep in (False, True):
        tape = wp.Tape()
        tape.backward(grads={q: wp.ones_like(q)})

        def iteration(tape: Any = tape) -> None:
            with tape:
                wp.launch(scale, 6, [x, y, 1.0])
            tape.backward(grads={y: x})
            wp.launch(descend, 6, [y, q.grad, -1.0])
            tape.zero()

        q.grad.zero_()
        graph = captured(iteration)
        if keep:
            kept.append(tape)
        del tape, iteration
        found = []
        for _ in range(5):
            wp.capture_launch(graph)
            found.append(wp.clone(q.grad).numpy().tolist())
        kept.append(found)
    assert kept[0] == kept[2]


def test_a_tape_in_a_loop() -> None:
    """Each turn makes it anew."""
    x = wp.array(np.ones(4, np.float32), requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    left = wp.zeros(1, dtype=int)

    def turn() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(total, 4, [x, loss, 2.0])
        tape.backward(loss)
        wp.launch(fewer, 1, [left])

    with wp.ScopedCapture() as capture:
        wp.capture_while(left, turn)
    for count in (3, 1, 4):
        left.fill_(count)
        x.grad.zero_()
        wp.capture_launch(capture.graph)
        np.testing.assert_array_equal(x.grad.numpy(), np.full(4, 4.0 * count))


def test_a_branch_that_is_never_taken() -> None:
    x = wp.array(np.ones(4, np.float32), requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    left = wp.zeros(1, dtype=int)
    kept: list[Any] = []

    def branch() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 4, [x, y, 2.0])
        kept.append(tape)

    with wp.ScopedCapture() as capture:
        wp.capture_if(left, on_true=branch)
    wp.capture_launch(capture.graph)
    assert not kept[0].records
    left.fill_(1)
    wp.capture_launch(capture.graph)
    assert len(kept[0].records) == 1


def test_records_of_a_tape_outside_of_its_block() -> None:
    """They are those of the last run, with what was recorded before."""
    x = wp.array(np.ones(4, np.float32), requires_grad=True)
    y, z = (wp.zeros(4, dtype=float, requires_grad=True) for _ in range(2))
    tape = wp.Tape()
    with tape:
        wp.launch(scale, 4, [x, y, 2.0])
    args = [y, z, 2.0]
    with wp.ScopedCapture() as capture:
        wp.launch(scale, 4, args, record_tape=False)
        tape.record_launch(scale, 4, inputs=args)
        tape.record_func(lambda: None, [z])
    args[1] = x
    with pytest.raises(wp.LaunchError, match="E201"), wp.ScopedCapture():
        tape.record_launch(scale, 4, inputs=[y])
    for _ in range(4):
        wp.capture_launch(capture.graph)
        assert [r.name for r in tape.records][:2] == ["scale", "scale"]
        assert len(tape.records) == 3
        assert tape.records[1].values[1] is z


def test_a_launch_that_is_recorded_afterwards() -> None:
    x = wp.array(np.ones(4, np.float32), requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    seed = wp.ones_like(x)

    def iteration() -> None:
        tape = wp.Tape()
        wp.launch(scale, 4, [x, y, 2.0])
        tape.record_launch(scale, 4, inputs=[x, y, 2.0])
        tape.backward(grads={y: seed})

    graph = captured(iteration)
    for k in range(1, 5):
        wp.capture_launch(graph)
        np.testing.assert_allclose(x.grad.numpy(), k * (2.0 + np.cos(1.0)), rtol=1e-6)


def test_inputs_that_are_overwritten_before_the_pass() -> None:
    """The adjoint reads what the launch read."""
    x = wp.array(np.full(9, 0.5, np.float32), requires_grad=True)
    y = wp.zeros(9, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    def iteration() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 9, [x, y, 0.0])
            wp.launch(total, 9, [y, loss, 1.0])
        wp.launch(descend, 9, [y, x, 1.0])  # off the tape
        tape.backward(loss)

    before = []
    for replayed in (False, True):
        x.fill_(0.5)
        x.grad.zero_()
        run: Any = iteration
        if replayed:
            graph = captured(iteration)
            run = lambda: wp.capture_launch(graph)  # noqa: E731
        for _ in range(5):
            run()
        before.append((x.numpy().tobytes(), x.grad.numpy().tobytes()))
        if replayed:
            assert graph._fused is None
    assert before[0] == before[1]


def test_others_are_left_as_they_are() -> None:
    """Sequences with operations that only records can do."""
    x = wp.array(np.linspace(0, 1, 20, dtype=np.float32), requires_grad=True)
    y, z = (wp.zeros(20, dtype=float, requires_grad=True) for _ in range(2))
    flag = wp.zeros(1, dtype=int)

    def with_a_function() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
            tape.record_func(lambda: None, [x])
        tape.backward(grads={y: z})

    def with_a_copy() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
            wp.copy(z, y)
        tape.backward(grads={z: x})

    def with_numpy() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
        tape.backward(grads={y: np.ones(20, np.float32)})

    def with_a_reset() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
        tape.backward(grads={y: z})
        tape.reset()

    def with_a_branch() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
        wp.capture_if(flag, on_true=lambda: wp.launch(descend, 20, [y, x, 0.1]))
        tape.backward(grads={y: z})

    for what in (with_a_function, with_a_copy, with_numpy, with_a_reset, with_a_branch):
        graph = captured(what)
        for _ in range(5):
            x.grad.zero_()
            wp.capture_launch(graph)
        assert graph._fused is None, what.__name__


def test_a_sequence_in_a_sequence() -> None:
    w, _, iteration = training()
    inner = captured(iteration)
    outer = captured(lambda: [wp.capture_launch(inner) for _ in range(3)])
    for _ in range(4):
        wp.capture_launch(outer)
    assert inner._fused is not None
    v, _, again = training()
    for _ in range(12):
        again()
    assert w.numpy().tobytes() == v.numpy().tobytes()


def test_a_tape_that_recorded_before() -> None:
    x = wp.array(np.linspace(0, 1, 20, dtype=np.float32), requires_grad=True)
    y, z = (wp.zeros(20, dtype=float, requires_grad=True) for _ in range(2))
    seed = wp.ones_like(x)

    def capture() -> graphs.Graph:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 0.0])

        def rest() -> None:
            with tape:
                wp.launch(scale, 20, [y, z, 0.0])
            tape.backward(grads={z: seed})

        return captured(rest)

    graph = capture()
    for _ in range(5):
        x.grad.zero_()
        wp.capture_launch(graph)
        expected = np.cos(x.numpy()) * np.cos(np.sin(x.numpy()))
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)
