"""Capturing the tapes of a program."""

import gc
import threading

import numpy as np

import engine as wp


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * 2.0


def launch(x, y):
    wp.launch(double, 3, [x], [y])


def test_tapes_are_captured_in_order():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    before = wp.Tape()
    with wp.capturing() as capture:
        for n in (1, 2):
            with wp.Tape():
                for _ in range(n):
                    launch(x, y)
        empty = wp.Tape()
        with before:
            launch(x, y)
    with wp.Tape():
        launch(x, y)
    gc.collect()
    assert [t.index for t in capture.tapes] == [0, 1, 2]
    assert [len(t.records) for t in capture.tapes] == [1, 2, 0]
    assert capture.launches == 4
    del empty


def test_snapshots_are_eager():
    n = np.ones(3, np.float32)
    with wp.capturing() as capture, wp.Tape():
        launch(n, wp.zeros(3))
    n.fill(5)
    assert capture.tapes[0].records[0].inputs_at_record()[0].tolist() == [1, 1, 1]
    assert capture.bytes == 12


def test_records_survive_reset():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    with wp.capturing() as capture:
        tape = wp.Tape()
        for _ in range(3):
            with tape:
                launch(x, y)
            tape.backward(grads={y: wp.ones(3)})
            tape.reset()
            x.fill_(x[0] + 1)
    assert [len(t.records) for t in capture.tapes] == [1, 1, 1]
    values = [t.records[0].inputs_at_record()[0][0] for t in capture.tapes]
    assert values == [1, 2, 3]
    assert x.grad.list() == [0, 0, 0]


def test_on_launch_sees_every_launch():
    seen = []
    x, y = wp.ones(3), wp.zeros(3)
    with wp.capturing(lambda kernel, index, site: seen.append((kernel, index, site.span.file))):
        launch(x, y)
        with wp.Tape():
            launch(x, y)
    launch(x, y)
    assert seen == [("double", 0, __file__), ("double", 1, __file__)]


def test_other_threads():
    with wp.capturing() as capture:

        def work():
            with wp.Tape():
                launch(wp.ones(3), wp.zeros(3))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(capture.tapes[0].records) == 1


def test_nested_captures():
    with wp.capturing() as outer:
        with wp.capturing() as inner, wp.Tape():
            launch(wp.ones(3), wp.zeros(3))
        with wp.Tape():
            launch(wp.ones(3), wp.zeros(3))
    assert len(inner.tapes) == len(outer.tapes) == 1
    assert (inner.launches, outer.launches) == (1, 2)
