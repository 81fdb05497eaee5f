"""Capturing the tapes of a program."""

import gc
import threading
import weakref

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.autograd import Witness, check_tape
from engine.runtime import chunks


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


def test_a_capture_of_late_tapes_gets_those_that_are_entered_again():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    empty, begun, reset, left = wp.Tape(), wp.Tape(), wp.Tape(), wp.Tape()
    for tape in (begun, reset, left):
        with tape:
            launch(x, y)
    reset.reset()
    with wp.capturing(late=True) as capture:
        x.fill_(5.0)
        for tape in (empty, begun, reset):
            for _ in range(2):
                with tape:
                    launch(x, y)
    assert [len(t.records) for t in capture.tapes] == [2, 3, 2]
    assert [capture.of(t) for t in (empty, begun, reset)] == capture.tapes
    assert capture.of(left) is None
    # What came before the capture is there with the values of then, and counts no launch of it.
    held = [r.inputs_at_record()[0].tolist() for r in capture.tapes[1].records]
    assert held == [[1, 1, 1], [5, 5, 5], [5, 5, 5]]
    assert capture.tapes[1].numbers == [0, 3, 4]
    verdicts = [[p.verdict for x in check_tape(t).launches for p in x.pairs] for t in capture.tapes]
    assert verdicts == [["pass"] * 2, ["pass"] * 3, ["pass"] * 2]


def test_late_tapes_go_to_captures_that_follow_each_other():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    tape = wp.Tape()
    lengths = []
    for _ in range(3):
        with wp.capturing(watcher=Witness(), late=True) as capture:
            with tape:
                launch(x, y)
            tape.backward(grads={y: wp.ones_like(y)})
            tape.zero()
        (captured,) = capture.tapes
        lengths.append((len(captured.records), captured.passes))
        assert captured.first_backward is not None
        assert capture.of(tape) is captured
    assert lengths == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.host("launches of memory of the host")
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
    assert [(k.key, n, f) for k, n, f in seen] == [
        ("double", 0, __file__), ("double", 1, __file__)
    ]  # fmt: skip


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
    assert (len(inner.tapes), len(outer.tapes)) == (1, 2)
    assert [t.index for t in outer.tapes] == [0, 1]
    assert [len(t.records) for t in (*inner.tapes, *outer.tapes)] == [1, 1, 1]
    assert (inner.launches, outer.launches) == (1, 2)


def test_a_tape_goes_on_after_the_inner_capture():
    with wp.capturing() as outer:
        with wp.capturing() as inner:
            tape = wp.Tape()
            with tape:
                launch(wp.ones(3), wp.zeros(3))
        with tape:
            launch(wp.ones(3), wp.zeros(3))
    with tape:
        launch(wp.ones(3), wp.zeros(3))
    assert [len(t.records) for t in inner.tapes] == [1]
    assert [len(t.records) for t in outer.tapes] == [2]
    assert len(tape.records) == 3


def test_arrays_and_gradients_are_let_go():
    kept = []

    def one_iteration(x):
        y, z = (wp.zeros(3, requires_grad=True) for _ in range(2))
        kept.extend(weakref.ref(a.storage) for a in (y, z, y.grad, z.grad))
        tape = wp.Tape()
        with tape:
            launch(x, y)
            launch(y, z)
            wp.copy(z, y)
            z.zero_()
            tape.record_func(lambda: y.grad, [y, z])
        tape.backward(grads={z: wp.ones(3)})
        return tape

    x = wp.ones(3, requires_grad=True)
    with wp.capturing() as capture:
        one_iteration(x).reset()
        tape = one_iteration(x)
        tape.records = []
        with tape:
            launch(x, x)
        del tape
        gc.collect()
        assert [r() for r in kept] == [None] * len(kept)
    for captured in capture.tapes[:2]:
        first, second, *others = captured.records
        assert first.inputs_at_record()[0].tolist() == [1, 1, 1]
        assert second.inputs_at_record()[0].tolist() == [2, 2, 2]
        assert [r.name for r in others] == ["copy", "zero_", "<lambda>"]
        for r in captured.records:
            with pytest.raises(wp.TapeError, match="E401"):
                r.reverse()
        assert {p.verdict for p in check_tape(captured).launches[1].pairs} == {"pass"}
    assert capture.bytes == 2 * 12 + 12


def test_flags_that_are_set_late_count():
    x, y = wp.ones(3), wp.zeros(3)
    with wp.capturing() as capture:
        tape = wp.Tape()
        with tape:
            launch(x, y)
        x.requires_grad = y.requires_grad = True
        tape.backward(grads={y: wp.ones(3)})
        assert x.grad.list() == [2, 2, 2]
        del x, y
        tape.reset()
    (result,) = check_tape(capture.tapes[0]).launches
    assert [p.verdict for p in result.pairs] == ["pass"]


def test_overlaps_are_seen_when_the_arrays_are_gone():
    def work():
        a = wp.array(np.arange(8.0), dtype=float, requires_grad=True)
        grid = a.reshape((4, 2))
        with wp.Tape():
            wp.launch(double, 4, [grid[:, 0]], [grid[:, 1]])
            wp.launch(double, 4, [a[:4]], [a[2:6]])

    with wp.capturing() as capture:
        work()
        gc.collect()
    columns, shifted = check_tape(capture.tapes[0]).launches
    assert [p.verdict for p in columns.pairs] == ["pass"]
    assert "overlap" in shifted.skipped


def test_beyond_the_limit_launches_are_not_checked(monkeypatch):
    monkeypatch.setattr(config, "snapshot_limit_bytes", chunks.held() + 30)
    with wp.capturing() as capture:
        for k in range(4):
            with wp.Tape():
                launch(wp.full(3, float(k), requires_grad=True), wp.zeros(3, requires_grad=True))
    results = [check_tape(t).launches[0] for t in capture.tapes]
    assert [len(r.pairs) for r in results] == [1, 1, 0, 0]
    assert "engine.config.snapshot_limit_bytes" in results[2].skipped
    assert capture.bytes == 24


def test_what_is_captured_knows_whether_its_tape_can_still_run_backward():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    with wp.capturing() as capture:
        tape, other = wp.Tape(), wp.Tape()
        for t in (tape, other):
            with t:
                launch(x, y)
        tape.backward(grads={y: wp.ones(3)})
        assert [t.gone for t in capture.tapes] == [False, False]
        tape.zero()
        tape.reset()
        del other, t
        gc.collect()
        with tape:
            launch(x, y)
    assert [t.gone for t in capture.tapes] == [True, True, False]


def test_a_tape_that_was_captured_and_begins_anew_goes_to_a_later_capture():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    with wp.capturing() as first:
        tape, kept = wp.Tape(), wp.Tape()
        for t in (tape, kept):
            with t:
                launch(x, y)
    tape.reset()
    with wp.capturing() as second:
        for t in (tape, kept):
            with t:
                launch(x, y)
    assert [len(t.records) for t in first.tapes] == [1, 1]
    assert [len(t.records) for t in second.tapes] == [1]  # the other one goes on


def test_late_captures_get_what_a_graph_leaves_of_a_tape():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    z, tape = wp.zeros(3, requires_grad=True), wp.Tape()
    with wp.capturing(late=True), tape:
        launch(x, y)
    with wp.ScopedCapture() as captured, tape:
        launch(y, z)
    wp.capture_launch(captured.graph)
    with wp.capturing(late=True) as capture:
        wp.capture_launch(captured.graph)
        tape.backward(grads={z: np.ones(3, np.float32)})
    (found,) = capture.tapes
    assert len(found.records) == 2 and found.passes == 1
