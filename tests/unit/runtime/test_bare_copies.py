"""Copies of bytes that nobody has to hear of, against those that go the long way."""

import random

import numpy as np
import pytest

import engine as wp
from engine import LaunchError
from engine.compile.cpu import CPU, launcher
from engine.runtime import bare_copies, transfer
from engine.runtime.recording import bystanders
from tests import native
from tests.unit.runtime.test_short_launches import alone

pytestmark = pytest.mark.host("memory of the host")


@wp.struct
class Pair:
    a: wp.int8
    b: wp.float64


DTYPES = [float, wp.float64, int, wp.vec3, wp.bool, wp.bfloat16, Pair, wp.mat22, wp.float16]


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
    for of, name in ((wp.config, "native_after"), (CPU, "made"),
                     (launcher.maker, "made"), (launcher.maker, "asked")):  # fmt: skip
        monkeypatch.setattr(of, name, getattr(of, name))
    native.install()


def outcome(monkeypatch, plain, make, act):
    """What is in the arrays after `act`, how often they were written, or the error."""
    arrays = make()
    with monkeypatch.context() as m:
        if plain:
            for name in ("copied", "take", "take_list"):
                m.setattr(transfer, name, lambda *_: False)
        try:
            act(*arrays)
            said = None
        except LaunchError as e:
            said = e.diagnostics[0].code, e.diagnostics[0].message
    return said, [(a.storage.version, shown(a)) for a in arrays]


def shown(a):
    """What it holds; of structs, not what lies between their fields."""
    return repr(a.numpy().tolist()) if a.dtype is Pair else a.numpy().tobytes()


def filled(shape, dtype, start):
    if dtype is Pair:
        a = wp.zeros(shape, dtype=Pair)
        seen = a.numpy()
        seen["a"], seen["b"] = start, np.arange(a.size).reshape(a.shape) + start
        return a
    a = wp.zeros(shape, dtype=dtype)
    seen = a.numpy()
    seen[...] = (np.arange(seen.size).reshape(seen.shape) + start) % 7
    return a


def changed(r, a):
    """A view of it, of some kind."""
    kind = r.randrange(9)
    if kind == 0 and a.ndim > 1:
        return a.transpose()
    if kind == 1:
        return a[::-1]
    if kind == 2:
        return a[1:]
    if kind == 3:
        return a[::2]
    if kind == 4 and a.size:
        _kept.append(a)
        return wp.array(ptr=a.ptr, dtype=a.dtype, shape=a.shape, strides=(0,) * a.ndim)
    return a


_kept = []


def two(seed):
    """Two arrays, and offsets and a count that fit or not."""
    r = random.Random(seed)
    dtype = r.choice(DTYPES)
    shapes = [(6,), (2, 3), (3, 2), (1, 6), (7,), (2, 1, 3), (0,), (4, 0), (5000,)]
    dest = changed(r, filled(r.choice(shapes), dtype, 1))
    if r.randrange(4):
        of = dtype if r.randrange(3) else r.choice(DTYPES)
        src = changed(r, filled(r.choice(shapes), of, 3))
    else:
        src = changed(r, dest)  # they overlap
    part = [r.choice([0, 0, 0, 1, 2, 5, -1, True, np.int64(1), 1.0]) for _ in range(3)]
    return (dest, src), part if r.randrange(3) else [0, 0, 0]


@pytest.mark.usefixtures("_ways")
@pytest.mark.filterwarnings("ignore:no gradient flows")
def test_copies(monkeypatch):
    seen, of = set(), {True: 0, False: 0}
    real = bare_copies.copied

    def copied(*args):
        found = real(*args)
        of[found] += 1
        return found

    monkeypatch.setattr(transfer, "copied", copied)
    for seed in range(1500):
        part = two(seed)[1]

        def act(dest, src, part=part):
            wp.copy(dest, src, *part)

        got = outcome(monkeypatch, False, lambda k=seed: two(k)[0], act)
        assert got == outcome(monkeypatch, True, lambda k=seed: two(k)[0], act), seed
        seen.add(got[0] and got[0][0])
    assert {None, "E206", "E207"} <= seen
    assert min(of.values()) > 60


LISTS = [
    [1.0] * 6, [1, 2, 3, 4, 5, 6], (0.1,) * 6, [[1, 2, 3], [4, 5, 6]], [[1.0, 2.0]] * 3, [1.0] * 5,
    [1.0] * 7, [], [[]], [[1.0], [2.0, 3.0]], ["a"] * 6, [None] * 6, [1e300] * 6, [1 << 70] * 6,
    [float("nan")] * 6, [1.5] * 6, [True] * 6, [wp.vec3(1.0, 2.0, 3.0)] * 6, [(1.0, 2.0, 3.0)] * 6,
    [[1.0, 2.0, 3.0, 4.0]] * 6, np.ones(6).tolist(), [np.float32(1)] * 6, [np.ones(3)] * 6,
    np.arange(18.0).tolist(), [1j] * 6, [300] * 6, [-1] * 6,
]  # fmt: skip


@pytest.mark.usefixtures("_ways")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", DTYPES)
def test_lists(monkeypatch, dtype):
    made = [lambda: filled(6, dtype, 1), lambda: filled((2, 3), dtype, 1),
            lambda: filled((3, 2), dtype, 1).transpose(), lambda: filled(12, dtype, 1)[::2],
            lambda: filled(0, dtype, 1)]  # fmt: skip
    for make in made:
        for values in LISTS:
            got, expected = (
                outcome(monkeypatch, plain, lambda: [make()], lambda a: a.assign(values))
                for plain in (False, True)
            )
            assert got == expected, values


def locked():
    n = np.zeros(3, np.float32)
    n.flags.writeable = False
    return wp.array(n, dtype=float, copy=False)


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize(
    "act",
    [lambda a: a.assign([1.0, 2.0, 3.0]), lambda a: a.assign(np.ones(3, np.float32)),
     lambda a: wp.copy(a, wp.ones(3)), lambda a: wp.copy(a, wp.ones(3), 1, 1, 1)],
)  # fmt: skip
def test_memory_that_cannot_be_written(monkeypatch, act):
    for make in (locked, lambda: wp.array(ptr=_ONE.ptr, dtype=float, shape=3, strides=(0,))):
        got, expected = (outcome(monkeypatch, p, lambda: [make()], act) for p in (False, True))
        assert got == expected
        assert got[0][0] == "E206"


_ONE = wp.ones(1)


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

    class Ear:
        heard = 0

        def copied(self, dest, src, meant, clone):
            self.heard += 1

        def __getattr__(self, name):
            return lambda *_: None

    ear = Ear()
    a, b = wp.zeros(4), wp.ones(4)
    bystanders.append(ear)
    try:
        for act in acts(a, b):
            act()
    finally:
        bystanders.remove(ear)
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
