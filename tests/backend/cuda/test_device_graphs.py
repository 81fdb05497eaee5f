"""Captured sequences with tapes on a GPU, real or emulated: they do what Python would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.backend.cuda.emulated import PLACES, place
from tests.unit.runtime.sequences import PROGRAMS, RUNS, Program, in_place, scale, total


@pytest.fixture(params=PLACES)
def there(request: Any) -> Iterator[Any]:
    with place(request.param) as device, wp.ScopedDevice(device):
        yield device


def floats(*values: float) -> Any:
    return wp.array(np.float32(values), requires_grad=True)


def values_of(make: Callable[[int], Program], device: Any) -> list[Any]:
    with wp.ScopedDevice(device):
        p, out = make(7), []
        for _ in range(RUNS):
            for graph in p.graphs:
                wp.capture_launch(graph)
            out += [x.numpy().copy() for a in p.arrays for x in (a, a.grad) if x is not None]
        return out


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
def test_the_same_as_on_the_cpu(make: Callable[[int], Program], there: Any) -> None:
    for found, expected in zip(values_of(make, there), values_of(make, "cpu"), strict=True):
        assert np.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_a_backward_pass_of_what_is_recorded_anew(there: Any) -> None:
    """The tape is recorded outside of the sequence: it has other records each time."""
    x, y, loss, tape = floats(1, 2, 3), floats(0, 0, 0), floats(0), wp.Tape()
    with wp.ScopedCapture() as capture:
        tape.backward(loss)
    for k in range(7):
        tape.reset()
        with tape:
            wp.launch(scale, 3, [x, y, 1.0 + k])
            wp.launch(total, 3, [y, loss])
        wp.capture_launch(capture.graph)
        assert x.grad.numpy().tolist() == [2 + 2 * k, 4 + 4 * k, 6 + 6 * k]
    assert "other records" in capture.graph.left_to_python


def test_a_tape_that_is_recorded_once(there: Any) -> None:
    x, y, loss, tape = floats(1, 2, 3), floats(0, 0, 0), floats(0), wp.Tape()
    with wp.ScopedCapture() as capture:
        tape.zero()
        tape.backward(loss)
    with tape:
        wp.launch(scale, 3, [x, y, 3.0])
        wp.launch(total, 3, [y, loss])
    for _ in range(5):
        wp.capture_launch(capture.graph)
        assert x.grad.numpy().tolist() == [6, 12, 18]
    assert capture.graph.left_to_python == ""


@pytest.mark.parametrize("often", [False, True])
def test_gradients_that_are_replaced(often: bool, there: Any) -> None:
    x, loss, tape = floats(1, 2, 3), floats(0), wp.Tape()
    with wp.ScopedCapture() as capture:
        with tape:
            wp.launch(total, 3, [x, loss])
        tape.backward(loss)
    for k in range(9):
        if k == 4 or often:
            x.grad = wp.full(3, 5.0 + k, dtype=float)
        else:
            tape.zero()
        wp.capture_launch(capture.graph)
        assert x.grad.numpy().tolist() == [(6.0 + k) if k == 4 or often else 1.0] * 3
    assert bool(capture.graph.left_to_python) is often
    x.requires_grad = False
    wp.capture_launch(capture.graph)
    assert x.grad is None


def test_gradients_that_are_retained_later(there: Any) -> None:
    x, y, loss, tape = floats(1, 2, 3), floats(0, 0, 0), floats(0), wp.Tape()
    with wp.ScopedCapture() as capture:
        with tape:
            wp.launch(scale, 3, [x, y, 2.0])
            wp.launch(total, 3, [y, loss])
        tape.backward(loss)
    for k in range(6):
        if k == 3:
            y.retain_grad = True
        tape.zero()
        wp.capture_launch(capture.graph)
        assert x.grad.numpy().tolist() == [4, 8, 12]
        assert y.grad.numpy().tolist() == [float(k >= 3)] * 3


def test_a_pass_that_python_runs_of_what_a_sequence_recorded(there: Any) -> None:
    """Nothing says that the device could run it: the records are those of the last run."""
    x, y, loss, tape = floats(1, 2, 3), floats(0, 0, 0), floats(0), wp.Tape()
    with wp.ScopedCapture() as capture, tape:
        loss.zero_()
        wp.launch(in_place, 3, [x])
        wp.launch(scale, 3, [x, y, 2.0])
        wp.launch(total, 3, [y, loss])
    found = []
    for _ in range(4):
        x.assign(np.float32([1, 2, 3]))
        tape.zero()
        wp.capture_launch(capture.graph)
        tape.backward(loss)
        found.append(x.grad.numpy().tolist())
    assert found == found[:1] * 4 and all(found[0])
    assert "backward pass" in capture.graph.left_to_python


@pytest.mark.parametrize("overwritten", [False, True])
def test_a_pass_that_a_sequence_of_its_own_runs(overwritten: bool, there: Any) -> None:
    """It goes to the device, and then the other one, unless the host has to restore something."""
    x, y, loss, tape = floats(1, 2, 3), floats(0, 0, 0), floats(0), wp.Tape()
    with wp.ScopedCapture() as forward, tape:
        loss.zero_()
        wp.launch(scale, 3, [x, y, 2.0])
        wp.launch(total, 3, [y, loss])
        if overwritten:
            wp.launch(scale, 3, [x, y, 3.0])
            wp.launch(total, 3, [y, loss])
            wp.launch(in_place, 3, [x])
    with wp.ScopedCapture() as backward:
        tape.backward(loss)
    for k in range(6):
        x.assign(np.float32([k, 2, 3]))
        tape.zero()
        wp.capture_launch(forward.graph)
        wp.capture_launch(backward.graph)
        assert loss.numpy().tolist() == [(5 if overwritten else 2) * (k * k + 13)]
        assert y.grad.numpy().tolist() == [0, 0, 0]
        if not overwritten:
            assert x.grad.numpy().tolist() == [4 * k, 8, 12]
    if not overwritten:
        assert forward.graph.left_to_python == backward.graph.left_to_python == ""
        with pytest.raises(wp.LaunchError, match="E213"):
            tape.backward(loss)


def test_two_sequences_that_record_on_one_tape(there: Any) -> None:
    x, y, loss, tape = floats(1, 2, 3), floats(0, 0, 0), floats(0), wp.Tape()
    graphs = []
    for factor in (2.0, 3.0):
        with wp.ScopedCapture() as capture, tape:
            wp.launch(scale, 3, [x, y, factor])
            wp.launch(total, 3, [y, loss])
        graphs.append(capture.graph)
        tape.reset()
    with wp.ScopedCapture() as backward:
        tape.backward(loss)
    for k in (0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1):
        tape.zero()
        wp.capture_launch(graphs[k])
        wp.capture_launch(backward.graph)
        assert x.grad.numpy().tolist() == [4 + 2 * k, 8 + 4 * k, 12 + 6 * k]


def test_a_backward_pass_before_the_records(there: Any) -> None:
    x, y, loss, tape = floats(1, 2, 3), floats(0, 0, 0), floats(0), wp.Tape()
    with tape:
        wp.launch(in_place, 3, [x])
        wp.launch(total, 3, [x, loss])
    with wp.ScopedCapture() as capture:
        tape.backward(loss)
        tape.reset()
        with tape:
            wp.launch(scale, 3, [x, y, 2.0])
            wp.launch(total, 3, [y, loss])
    for k in range(5):
        tape.zero()
        wp.capture_launch(capture.graph)
        assert not x.grad.numpy().any()  # `reset` clears it
        assert k == 0 or [r.name for r in tape.records] == ["scale", "total"]
    assert "after that" in capture.graph.left_to_python
