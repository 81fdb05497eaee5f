"""Contents of a launch's inputs at the time of its recording."""

import gc

import numpy as np
import pytest

import engine as wp
from engine import config


@wp.kernel
def axpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i]


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def accumulate(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i])


@wp.kernel
def step(state: wp.array2d(dtype=float), t: int):
    i = wp.tid()
    state[t + 1, i] = state[t, i] * 2.0


@wp.func
def add_into(total: wp.array(dtype=float), v: float):
    wp.atomic_add(total, 0, v)


@wp.kernel
def through_a_function(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    add_into(out, x[wp.tid()])


def recorded(*launches):
    with wp.Tape() as tape:
        for kernel, dim, args in launches:
            wp.launch(kernel, dim, args)
    return tape


@pytest.fixture(params=["lazy", "eager"])
def mode(request, monkeypatch):
    monkeypatch.setattr(config, "tape_snapshots", request.param)
    # What may change unseen is copied on request.
    monkeypatch.setattr(config, "snapshot_exposed_bytes", 1 << 20)
    return request.param


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill_(9.0),
        lambda x: x.zero_(),
        lambda x: x.assign([9, 9, 9]),
        lambda x: wp.copy(x, wp.full(3, 9.0)),
        lambda x: x.__setitem__(1, 9.0),
        lambda x: x[1:].fill_(9.0),
        lambda x: wp.launch(axpy, 3, [0.0, wp.ones(3)], [x]),
        lambda x: x.numpy().fill(9.0),
        lambda x: np.asarray(x).fill(9.0),
        lambda x: x.view(int).zero_(),
    ],
)
@pytest.mark.host("arrays of NumPy that are views", only=("<lambda>7", "<lambda>8"))
def test_inputs_survive_writes(mode, write):
    x, y = wp.array([1, 2, 3], dtype=float), wp.zeros(3)
    tape = recorded((axpy, 3, [2.0, x, y]))
    write(x)
    a, before, _ = tape.records[0].inputs_at_record()
    assert a == 2.0
    assert before.tolist() == [1, 2, 3]
    assert x.list() != [1, 2, 3]


def test_contents_are_copies(mode):
    x = wp.array([1, 2, 3], dtype=float)
    tape = recorded((axpy, 3, [2.0, x, wp.zeros(3)]))
    tape.records[0].inputs_at_record()[1][0] = 7
    assert x.list() == [1, 2, 3]
    assert tape.records[0].inputs_at_record()[1].tolist() == [1, 2, 3]


def test_chain_with_a_reused_buffer(mode):
    x, y = wp.ones(2), wp.zeros(2)
    tape = recorded(
        (axpy, 2, [2.0, x, y]),
        (axpy, 2, [3.0, y, x]),
        (axpy, 2, [5.0, x, y]),
        (axpy, 2, [1.0, y, x]),
    )
    got = [r.inputs_at_record()[1].tolist() for r in tape.records]
    assert got == [[1, 1], [2, 2], [6, 6], [30, 30]]


def test_atomically_updated_arrays_are_inputs(mode):
    total = wp.full(1, 5.0)
    x = wp.ones(3)
    tape = recorded((accumulate, 3, [x, total]), (through_a_function, 3, [x, total]))
    assert total[0] == 11
    assert tape.records[0].inputs_at_record()[1].tolist() == [5]
    assert tape.records[1].inputs_at_record()[1].tolist() == [8]


def test_arrays_read_and_written_by_the_launch(mode):
    state = wp.zeros((4, 2))
    state[0] = 1.0
    tape = recorded(*((step, 2, [state, t]) for t in range(3)))
    for t, r in enumerate(tape.records):
        before = r.inputs_at_record()[0]
        assert before[: t + 1].tolist() == [[2.0**k] * 2 for k in range(t + 1)]
        assert not before[t + 1 :].any()


@pytest.mark.host("memory of the host")
def test_views_and_wrapped_memory(mode):
    n = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = wp.array(n, copy=False).transpose()
    tape = recorded((axpy, 3, [1.0, x[:, 1], wp.zeros(3)]), (axpy, 2, [1.0, n[:, 1], wp.zeros(2)]))
    n.fill(0)
    assert tape.records[0].inputs_at_record()[1].tolist() == [3, 4, 5]
    assert tape.records[1].inputs_at_record()[1].tolist() == [1, 4]


def test_vectors_keep_their_components(mode):
    @wp.kernel
    def norm(v: wp.array(dtype=wp.vec2), m: wp.mat22, out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = wp.length(m * v[i])

    v = wp.array([[1, 2], [3, 4]], dtype=wp.vec2)
    m = wp.mat22(1.0)
    tape = recorded((norm, 2, [v, m, wp.zeros(2)]))
    v.zero_()
    contents = tape.records[0].inputs_at_record()
    assert contents[0].tolist() == [[1, 2], [3, 4]]
    assert np.asarray(contents[1]).shape == (2, 2)


def test_lazy_copies_nothing_that_stays():
    x = wp.ones(1000)
    tape = recorded((axpy, 3, [1.0, x, wp.zeros(3)]))
    assert sum(h.nbytes for h in tape.records[0].snapshots) == 0
    x.zero_()
    assert sum(h.nbytes for h in tape.records[0].snapshots) == 4000


def test_a_dead_tape_costs_nothing():
    x = wp.ones(1000)
    recorded((axpy, 3, [1.0, x, wp.zeros(3)]))
    gc.collect()
    x.zero_()
    assert x.storage._hold is None


def test_limit(monkeypatch):
    monkeypatch.setattr(config, "snapshot_limit_bytes", 0)
    x = wp.ones(3)
    tape = recorded((axpy, 3, [1.0, x, wp.zeros(3)]))
    assert tape.records[0].inputs_at_record()[1].tolist() == [1, 1, 1]
    x.zero_()
    assert tape.records[0].inputs_at_record()[1] is None


def test_off(monkeypatch):
    monkeypatch.setattr(config, "tape_snapshots", "off")
    tape = recorded((axpy, 3, [1.0, wp.ones(3), wp.zeros(3)]))
    assert tape.records[0].inputs_at_record()[1] is None


def test_present_contents_need_no_copies(monkeypatch):
    monkeypatch.setattr(config, "overwrites", "present")
    x = wp.ones(3)
    tape = recorded((axpy, 3, [1.0, x, wp.zeros(3)]))
    assert tape.records[0].inputs_at_record()[1].tolist() == [1, 1, 1]
    x.zero_()
    assert tape.records[0].inputs_at_record()[1] is None
    assert "'present'" in tape.records[0].lost["x"].replace('"', "'")
    assert tape.memory.inputs == 0


def test_arguments_of_the_record(mode):
    x, y = wp.ones(3), wp.zeros(3)
    with wp.Tape() as tape:
        wp.launch(axpy, 3, inputs=[1.0, x], outputs=[y])
    r = tape.records[0]
    assert r.args == [1.0, x, y]
    assert r.input_count == 2
    assert r.dim == (3,)
    assert r.kernel is axpy
    assert r.kernel.ir is r.kernel.variants.ir
    assert list(r.written) == [y]


@pytest.mark.parametrize("limit", [0, 1 << 20])
@pytest.mark.host("memory of the host")
def test_inputs_that_may_change_unseen_are_restored(monkeypatch, limit):
    monkeypatch.setattr(config, "snapshot_exposed_bytes", limit)
    n = np.ones(3, np.float32)
    x = wp.array(n, copy=False, requires_grad=True)
    y = wp.zeros(3, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(square, 3, [x], [y])
    n[:] = 5.0  # not on the tape: read as it is
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad.list() == [10, 10, 10]
    with tape:
        x.fill_(7.0)
    tape.zero()
    tape.backward(grads={y: wp.ones(3)})
    # What it held is known for certain only where it was copied.
    assert x.grad.list() == ([2, 2, 2] if limit else [10, 10, 10])
