"""Captured sequences: nothing runs while they are captured, everything when they are launched."""

import numpy as np
import pytest

import engine as wp
from engine import LaunchError, TapeError


@wp.kernel
def add(x: wp.array(dtype=float), s: float):
    i = wp.tid()
    x[i] = x[i] + s


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def cube_in_place(y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] * y[i] * y[i]


@wp.kernel
def total(y: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, y[wp.tid()])


@wp.kernel
def count_down(n: wp.array(dtype=int)):
    n[0] = n[0] - 1


def floats(*values, **options):
    return wp.array(values, dtype=float, **options)


def test_operations_run_when_the_graph_is_launched():
    x, y, source = wp.zeros(3), wp.zeros(3), floats(7.0, 8.0, 9.0)
    with wp.ScopedCapture() as capture:
        assert wp.get_device().is_capturing
        wp.launch(add, 3, [x, 1.0])
        wp.copy(y, source)
        source.fill_(1.5)
        y[1] = 0.0
        z = wp.clone(y)
        command = wp.launch(add, 3, [z, 1.0], record_cmd=True)
        command.launch()
    assert not wp.get_device().is_capturing
    assert x.list() == y.list() == [0, 0, 0]
    assert source.list() == [7, 8, 9]
    assert len(capture.graph) > 5
    wp.capture_launch(capture.graph)
    assert x.list() == [1, 1, 1]
    assert y.list() == [7, 0, 9]
    assert z.list() == [8, 1, 10]
    source.fill_(2.0)
    wp.capture_launch(capture.graph)
    assert x.list() == [2, 2, 2]
    assert y.list() == [2, 0, 2]
    assert z.list() == [3, 1, 3]


def test_arrays_that_are_made_inside_are_made_anew():
    with wp.ScopedCapture() as capture:
        made = [wp.zeros(2), wp.ones(2), wp.full(2, 3.0), floats(4.0, 5.0)]
        for x in made:
            wp.launch(add, 2, [x, 1.0])
    for _ in range(2):
        wp.capture_launch(capture.graph)
        assert [x.list() for x in made] == [[1, 1], [2, 2], [4, 4], [5, 6]]


def gradient(x):
    """Of the sum of (x^2)^3."""
    return 6.0 * x.numpy().astype(np.float64) ** 5


def record(x, y, loss):
    wp.launch(square, len(x), [x], [y])
    wp.launch(cube_in_place, len(x), [y])
    loss.zero_()
    wp.launch(total, len(x), [y], [loss])


def test_tapes_and_backward_passes_are_captured():
    x = floats(0.5, 1.0, 1.5, requires_grad=True)
    y, loss = wp.zeros(3, requires_grad=True), wp.zeros(1, requires_grad=True)
    tape = wp.Tape()
    with wp.ScopedCapture() as capture:
        tape.zero()
        with tape, wp.ScopedTimer("step", print=False):
            record(x, y, loss)
        tape.backward(loss)
    assert not x.grad.numpy().any()
    assert len(tape.launches) == 4  # to be looked at
    for start in ([0.5, 1.0, 1.5], [2.0, -1.0, 0.25]):
        x.assign(start)
        for _ in range(2):
            wp.capture_launch(capture.graph)
            np.testing.assert_allclose(loss.numpy()[0], np.sum(x.numpy() ** 6.0), rtol=1e-6)
            np.testing.assert_allclose(x.grad.numpy(), gradient(x), rtol=1e-5)
        assert len(tape.launches) == 4
        assert [name for _, name, _ in tape.scopes if name] == ["step"]


@pytest.mark.host("graphs of GPUs do not record")
def test_forward_and_backward_in_graphs_of_their_own():
    x = floats(0.5, 1.0, 1.5, requires_grad=True)
    y, loss = wp.zeros(3, requires_grad=True), wp.zeros(1, requires_grad=True)
    tape = wp.Tape()
    with wp.ScopedCapture() as forward, tape:
        record(x, y, loss)
    with wp.ScopedCapture() as backward:
        tape.backward(loss)
    for scale in (1.0, 2.0):
        x.assign(np.array([0.5, 1.0, 1.5]) * scale)
        wp.capture_launch(forward.graph)
        wp.capture_launch(backward.graph)
        np.testing.assert_allclose(x.grad.numpy(), gradient(x), rtol=1e-5)
        tape.zero()
    with pytest.raises(TapeError, match="E402"):
        with wp.ScopedCapture():
            tape.backward(3)


@pytest.mark.host("graphs of GPUs do not record")
def test_a_tape_with_records_from_before():
    x = floats(1.0, 2.0, requires_grad=True)
    y, z = wp.zeros(2, requires_grad=True), wp.zeros(2, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(square, 2, [x], [y])
        with wp.ScopedCapture() as capture:
            wp.launch(square, 2, [y], [z])
    for _ in range(3):
        wp.capture_launch(capture.graph)
        assert len(tape.launches) == 2
    tape.backward(grads={z: wp.ones(2)})
    np.testing.assert_allclose(x.grad.numpy(), 4.0 * x.numpy() ** 3)


def test_what_a_launch_overwrites_belongs_to_each_run():
    x = floats(1.0, 2.0, requires_grad=True)
    y = wp.zeros(2, requires_grad=True)
    tape = wp.Tape()
    with wp.ScopedCapture() as capture:
        with tape:
            wp.launch(square, 2, [x], [y])
            x.fill_(9.0)  # what the adjoint reads is what it was before
        y.grad.fill_(1.0)
        tape.backward()
    for start in ([1.0, 2.0], [3.0, 4.0]):
        x.assign(start)
        wp.capture_launch(capture.graph)
        assert x.list() == [9, 9]
        tape.zero()
    x.assign([5.0, 6.0])
    seen = []
    tape_off = wp.Tape()
    with wp.ScopedCapture() as inner:
        with tape_off:
            wp.launch(square, 2, [x], [y])
        tape_off.record_func(lambda: seen.append(1), [y])
        y.grad.fill_(1.0)
        tape_off.backward()
    wp.capture_launch(inner.graph)
    assert x.grad.list() == [10, 12]
    assert seen == [1]


def test_adjoint_launches_and_graphs_in_graphs():
    x = floats(1.0, 2.0, requires_grad=True)
    y = wp.zeros(2, requires_grad=True)
    with wp.ScopedCapture() as part:
        y.grad.fill_(1.0)
        wp.launch(square, 2, [x], [y], adj_inputs=[None], adj_outputs=[None], adjoint=True)
    with wp.ScopedCapture() as whole:
        wp.capture_launch(part.graph)
        wp.launch(add, 2, [x, 1.0])
    assert not x.grad.numpy().any()
    wp.capture_launch(whole.graph)
    wp.capture_launch(whole.graph)
    assert x.list() == [3, 4]
    assert x.grad.list() == [2 * (1 + 2), 2 * (2 + 3)]


@pytest.mark.parametrize("captured", [False, True])
def test_loops_and_branches(captured):
    n, x = wp.array([3], dtype=int), wp.zeros(2)

    def body(s):
        wp.launch(add, 2, [x, s])
        wp.launch(count_down, 1, [n])

    def program():
        wp.capture_while(n, while_body=body, s=1.0)
        wp.capture_if(n, on_true=body, on_false=lambda s: wp.launch(add, 2, [x, s]), s=100.0)
        wp.capture_if(n)

    if captured:
        with wp.ScopedCapture() as capture:
            program()
        assert (n.list(), x.list()) == ([3], [0, 0])
        program = lambda: wp.capture_launch(capture.graph)  # noqa: E731
    program()
    assert (n.list(), x.list()) == ([0], [103, 103])
    n.fill_(2)
    program()
    assert x.list() == [205, 205]
    assert not wp.is_conditional_graph_supported()


def test_a_loop_on_a_tape():
    n, x = wp.array([3], dtype=int), floats(2.0, requires_grad=True)
    y = [floats(0.0, requires_grad=True) for _ in range(2)]
    tape = wp.Tape()

    def body():
        wp.launch(total, 1, [x], [y[0]])
        wp.launch(count_down, 1, [n])

    with wp.ScopedCapture() as capture:
        with tape:
            y[0].zero_()
            wp.capture_while(n, body)
            wp.launch(square, 1, [y[0]], [y[1]])
        tape.backward(y[1])
    for times in (3, 2):
        n.fill_(times)
        x.grad.zero_()
        wp.capture_launch(capture.graph)
        assert y[1].list() == [(2.0 * times) ** 2]
        assert x.grad.list() == [2 * times * 2.0 * times]


def test_errors_come_where_something_is_captured():
    x = wp.zeros(2)
    with wp.ScopedCapture() as capture:
        with pytest.raises(LaunchError, match="E202"):
            wp.launch(add, 2, [x, "1"])
        with pytest.raises(LaunchError, match="E207"):
            wp.copy(x, wp.zeros(5))
        with pytest.raises(LaunchError, match=r"E213.*inside another one"):
            wp.capture_begin()
    wp.capture_launch(capture.graph)
    for wrong in (
        wp.capture_end,
        lambda: wp.capture_launch(3),
        lambda: wp.capture_if(x, print),
        lambda: wp.capture_while(wp.zeros(1, dtype=int), 3),
    ):
        with pytest.raises(LaunchError, match="E213"):
            wrong()
    with pytest.raises(ValueError, match="mine"), wp.ScopedCapture() as broken:
        wp.launch(add, 2, [x, 1.0])
        raise ValueError("mine")
    assert not wp.get_device().is_capturing
    assert len(broken.graph) == 1


def test_streams_and_events():
    stream = wp.Stream()
    first, last = (wp.Event(enable_timing=True) for _ in range(2))
    with wp.ScopedStream(stream) as inside:
        assert inside is stream
        assert wp.get_stream() is stream
        wp.record_event(first)
        x = wp.zeros(2)
        wp.launch(add, 2, [x, 1.0], stream=stream)
        stream.record_event(last)
        stream.wait_event(last)
        wp.wait_event(last)
    assert wp.get_stream() is not stream
    assert wp.get_stream("cpu") is wp.get_device("cpu").stream
    wp.wait_stream(stream)
    wp.synchronize_stream(stream)
    wp.synchronize_event(last)
    assert wp.get_event_elapsed_time(first, last) >= 0
    assert x.list() == [1, 1]
    with wp.ScopedStream(None) as nothing:
        assert nothing is None
    for wrong in (
        lambda: wp.get_event_elapsed_time(first, wp.Event()),
        lambda: wp.get_event_elapsed_time(first, wp.Event(enable_timing=True)),
    ):
        with pytest.raises(LaunchError, match="E213"):
            wrong()
    for wrong in (lambda: wp.set_stream(3), lambda: wp.wait_event(3)):
        with pytest.raises(LaunchError, match="E202"):
            wrong()
    with wp.ScopedCapture() as capture:
        wp.record_event(first)
        wp.launch(add, 2, [x, 1.0])
        wp.record_event(last)
    wp.capture_launch(capture.graph)
    assert wp.get_event_elapsed_time(first, last) > 0


@wp.kernel
def neighbours(grid: wp.uint64, points: wp.array(dtype=wp.vec3), out: wp.array(dtype=int)):
    i = wp.tid()
    for k in wp.hash_grid_query(grid, points[i], 1.0):
        if wp.length(points[i] - points[k]) < 1.0:
            out[i] += 1


@pytest.mark.host("hash grids")
def test_work_of_the_host_is_captured():
    keys, values = wp.array([3, 1, 2, 0, 0, 0], dtype=int), wp.array([0, 1, 2, 0, 0, 0], dtype=int)
    x, sums, whole = floats(1.0, 2.0, 3.0), wp.zeros(3), wp.zeros(1)
    counts, doubled = [wp.zeros(3, dtype=int) for _ in range(3)], wp.zeros(3, dtype=wp.float64)
    points, near = wp.zeros(2, dtype=wp.vec3), wp.zeros(2, dtype=int)
    grid = wp.HashGrid(4, 4, 4)
    with wp.ScopedCapture() as capture:
        wp.utils.array_scan(x, sums)
        wp.utils.array_sum(x, out=whole)
        wp.utils.array_cast(x, doubled)
        wp.utils.radix_sort_pairs(keys, values, 3)
        wp.utils.runlength_encode(keys[:3], *counts)
        near.zero_()
        grid.build(points, 1.0)
        wp.launch(neighbours, 2, [grid.id, points], [near])
    assert sums.list() == [0, 0, 0]
    assert keys.list()[:3] == [3, 1, 2]
    x.assign([4.0, 5.0, 6.0])
    keys.assign([7, 5, 5, 0, 0, 0])
    wp.capture_launch(capture.graph)
    assert (sums.list(), whole.list(), doubled.list()) == ([4, 9, 15], [15], [4, 5, 6])
    assert (keys.list()[:3], values.list()[:3]) == ([5, 5, 7], [1, 2, 0])
    assert [c.list()[:2] for c in counts] == [[5, 7], [2, 1], [2, 0]]
    assert near.list() == [2, 2]
    points.assign([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    wp.capture_launch(capture.graph)
    assert near.list() == [1, 1]


@pytest.mark.parametrize("clear", ["reset", "zero"])
def test_a_tape_that_is_cleared_first_has_nothing_to_clear(clear):
    """At the first launch of a graph nothing has been recorded: gradients of others stay."""
    x, loss = floats(1.0, 2.0, 3.0, requires_grad=True), wp.zeros(1, requires_grad=True)
    x.grad.fill_(10.0)
    tape = wp.Tape()
    with wp.ScopedCapture() as capture:
        getattr(tape, clear)()
        with tape:
            wp.launch(total, 3, [x, loss])
        tape.backward(loss)
    for grads in ([11, 11, 11], [1, 1, 1], [1, 1, 1]):
        wp.capture_launch(capture.graph)
        assert x.grad.list() == grads
