"""Copies of bytes without observers agree with copies on the long way."""

import numpy as np
import pytest

import engine as wp
from engine.accel import launcher
from engine.runtime import bare_copies, events, transfer
from tests import native
from tests.unit.runtime.copy_programs import copies, to_read_only
from tests.unit.runtime.launching import alone

pytestmark = pytest.mark.host("memory of the host")


@pytest.fixture(params=["python", "native"])
def _ways(request, monkeypatch):
    """Without the native functions, and with them."""
    with alone():  # beside other devices, nothing is done natively
        if request.param == "native":
            natively(monkeypatch)
        else:
            monkeypatch.setattr(wp.config, "native_after", -1)
        yield


def natively(monkeypatch):
    """With the native functions, for as long as a test runs."""
    for of, name in ((wp.config, "native_after"), (launcher.maker, "made"),
                     (launcher.maker, "asked")):  # fmt: skip
        monkeypatch.setattr(of, name, getattr(of, name))
    native.install()


@pytest.mark.usefixtures("_ways")
@pytest.mark.filterwarnings("ignore:no gradient flows")
def test_both_ways_have_their_copies(monkeypatch):
    """Among those that `test_fast_paths` compares."""
    of, real = {True: 0, False: 0}, bare_copies.copied

    def copied(*args):
        found = real(*args)
        of[found] += 1
        return found

    monkeypatch.setattr(transfer, "copied", copied)
    codes = {said and said[0] for said, _ in copies(0, 1500)}
    assert {None, "E206", "E207"} <= codes
    assert min(of.values()) > 60


@pytest.mark.usefixtures("_ways")
def test_memory_that_cannot_be_written():
    assert {said[0] for said, _ in to_read_only()} == {"E206"}


@pytest.mark.usefixtures("_ways")
def test_tapes_graphs_and_listeners_hear_of_all():
    def acts(a, b):
        return [lambda: wp.copy(a, b, 1, 0, 2), lambda: a.assign([1.0, 2.0, 3.0, 4.0]),
                lambda: wp.copy(a, b)]  # fmt: skip

    for k in range(3):
        a, b = wp.zeros(4, requires_grad=True), wp.ones(4, requires_grad=True)
        with wp.Tape() as tape:
            acts(a, b)[k]()
        assert len(tape.records) == 1
    for k in range(3):
        a, b = wp.zeros(4), wp.ones(4)
        with wp.ScopedCapture() as capture:
            acts(a, b)[k]()
        assert a.list() == [0.0] * 4
        wp.capture_launch(capture.graph)
        assert a.list() != [0.0] * 4

    class Ear(events.Observer):
        heard = 0

        def copied(self, dest, src, meant, clone):
            self.heard += 1

    ear = Ear()
    a, b = wp.zeros(4), wp.ones(4)
    with events.observing(ear):
        for act in acts(a, b):
            act()
    assert ear.heard == 3


@pytest.mark.usefixtures("_ways")
def test_what_records_hold_is_kept():
    """A write that goes as bytes, between a launch and its backward pass."""
    x, y = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True), wp.zeros(3)
    hold = x.storage.hold(x.lo, x.hi)
    wp.copy(x, y, 1, 0, 1)
    assert hold.read(x.ptr, (3,), (4,), np.float32).tolist() == [1, 2, 3]
    hold = x.storage.hold(x.lo, x.lo + 4)
    wp.copy(x, y, 2, 0, 1)  # elsewhere: nothing has to be kept
    assert hold.storage is not None
    x.assign([7.0, 8.0, 9.0])
    assert hold.read(x.ptr, (1,), (4,), np.float32).tolist() == [1]


def test_part_of_itself_moves():
    for to, of in ((0, 2), (2, 0)):
        a = wp.array(np.arange(8), dtype=float)
        n = np.arange(8.0)
        n[to : to + 5] = n[of : of + 5].copy()
        wp.copy(a, a, to, of, 5)
        assert a.list() == n.tolist()
