"""Short ways to run small launches, against the plain way: errors, messages, records, threads."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.accel import launcher
from engine.accelerator import Accelerator
from engine.compile.cpu import schedule
from engine.diagnostics import EngineError
from engine.runtime import events
from tests.unit.runtime.launching import NATIVE, F, in_place, made, scale, talks, turns, way

pytestmark = pytest.mark.host("the CPU's way of short launches")
WAYS = [True, "native"] if NATIVE is not None else [True]


def packed(kernel: Any, values: list[Any]) -> bytes | str:
    """Arguments of a launch as bytes, as its record has them, or what is said of them."""
    try:
        with wp.Tape() as tape:
            wp.launch(kernel, 1, values)
    except wp.EngineError as e:
        return str(e)
    return tape.records[0].blob  # type: ignore[no-any-return, attr-defined]


def test_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    x, y = made(4), made(4)
    with way(monkeypatch, short=True):
        wp.launch(scale, 4, [x, y, 1.0])
        executable = scale.plan.forward
        assert executable.run_cached((4,), scale.plan.bind([x, y, 1.0])[1]) is not None


def test_large_launches_are_cut_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    x, y = made(400_000), made(400_000)
    with way(monkeypatch, short=True):
        for _ in range(3):
            wp.launch(scale, 400_000, [x, y, 1.0])
        assert scale.plan.forward.run_cached((400_000,), scale.plan.bind([x, y, 1.0])[1]) is None
    with way(monkeypatch, short=True):
        wp.launch(scale, 100, [x, y, 1.0])
        monkeypatch.setattr(schedule, "LEAST", 0)
        assert scale.plan.forward.run_cached((100,), scale.plan.bind([x, y, 1.0])[1]) is None


def test_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a tape keeps does not depend on the way, nor does where it says that things were."""
    x, y = made(5), made(5)
    seen = []
    for short in (False, *WAYS):
        with way(monkeypatch, short), wp.Tape() as tape:
            wp.launch(scale, 5, [x], [y, 2.0])
            wp.launch(in_place, 5, [y])
        seen.append([
            (r.name, r.dim, [v.ptr if isinstance(v, wp.array) else v for v in r.args],
             r.input_count, r.wrt, sorted(r.holds), r.lost, r.site.line, r.site.file, r.blob,
             [a.ptr for a in r.written], r.journal_bytes)
            for r in tape.records
        ])  # fmt: skip
    assert all(x == seen[0] for x in seen)
    assert seen[0][0][8] == __file__


@pytest.mark.parametrize(
    "arguments",
    [
        lambda x: [x, x], lambda x: [x, x, "a"], lambda x: [x, 1.0, x], lambda x: [x, None, 1.0],
        lambda x: [x, wp.zeros((2, 2), dtype=float), 1.0], lambda x: [x, x, x],
        lambda x: [x, wp.zeros(3, dtype=int), 1.0],
        lambda x: [x, np.broadcast_to(x.numpy()[:1], 4), 1.0],
    ],
)  # fmt: skip
def test_the_same_errors(arguments: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, told = made(4), []
    for short in WAYS:
        with way(monkeypatch, short):
            for _ in range(4):
                wp.launch(scale, 4, [x, made(4), 1.0])
    for short in (False, *WAYS):
        with way(monkeypatch, short), pytest.raises(EngineError) as e:
            wp.launch(scale, 4, arguments(x))
        found = e.value.diagnostics[0]
        told.append((found.code, found.message, found.help, found.notes, found.span.line))
    assert all(x == told[0] for x in told)


@pytest.mark.parametrize("dim", [(2.0,), (True, 4), -1, (-1,), (1, 2, 3, 4, 5), 1 << 40])
def test_the_same_words_about_grids(dim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for short in (False, *WAYS):
        with way(monkeypatch, short):
            try:
                wp.launch(scale, dim, [made(4), made(4), 1.0])
                told.append("")
            except EngineError as e:
                told.append(e.diagnostics[0].message)
    assert all(x == told[0] for x in told)


def test_messages_and_failures(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """What a launch leaves is told each time, and does not spoil the next one."""
    zero, one = wp.zeros(2, dtype=float), wp.full(2, 1.0, dtype=float)
    said = []
    for short in (False, *WAYS):
        with way(monkeypatch, short):
            for a in (zero, one, zero):
                tape = wp.Tape()
                try:
                    with tape:
                        wp.launch(talks, 2, [a])
                except EngineError as e:
                    said.append((e.diagnostics[0].code, len(tape.records)))
                said.append((capfd.readouterr().out, len(tape.records)))
    each = len(said) // (1 + len(WAYS))
    assert all(said[k : k + each] == said[:each] for k in range(0, len(said), each))


@pytest.mark.parametrize("short", WAYS)
def test_several_threads(short: bool | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel and grid, from many threads at once: each has its launch structure."""
    wrong: list[Any] = []

    def work(k: int) -> None:
        x, y = made(9), made(9)
        for step in range(200):
            wp.launch(turns, 9, [x, y, 3])
            wp.launch(scale, 9, [x, y, float(k + step)])
            if not np.array_equal(y.numpy(), x.numpy() * x.numpy() * np.float32(k + step)):
                wrong.append((k, step))

    with way(monkeypatch, short):
        workers = [Thread(target=work, args=(k,)) for k in range(4)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    assert not wrong


@pytest.mark.parametrize("short", WAYS)
def test_limits_that_change(short: bool | str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = made(4), made(4)
    with way(monkeypatch, short):
        for _ in range(5):
            tape = wp.Tape()
            with tape:
                wp.launch(turns, 4, [x, y, 2000])
            tape.backward(grads={y: np.ones(4, np.float32)})
        before = x.grad.numpy().copy()
        monkeypatch.setattr(wp.config, "stack_limit_bytes", 12000)
        x.grad.zero_()
        for _ in range(5):
            y.grad.fill_(1.0)
            tape.backward()
    assert np.array_equal(x.grad.numpy(), before)


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="it is made for CPython")
def test_it_can_be_made() -> None:
    """Else all that is native would be left out, and nobody would see."""
    assert NATIVE is not None or sys.platform != "linux"


@pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here")
def test_it_runs_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts

    @wp.kernel
    def own(x: F, y: F, k: float):
        i = wp.tid()
        y[i] = x[i] * x[i] * k

    x, y = made(4), made(4)
    with way(monkeypatch, "native"):
        for _ in range(3):
            tape = wp.Tape()
            with tape:
                wp.launch(own, 4, [x, y, 1.0])
            for _ in range(3):
                tape.backward(grads={y: np.ones(4, np.float32)})
        values = [x, y, 3.0]
        version = y.storage.version
        given = (own, 4, values, (), None, None, True)
        assert NATIVE.try_run(*given) is True
        assert y.storage.version == version + 1
        assert np.array_equal(y.numpy(), x.numpy() * x.numpy() * np.float32(3))
        with events.observing(events.Observer()):
            assert NATIVE.try_run(*given) is None


@pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here")
def test_it_is_made_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "native_after", 200)
    maker = launcher.Maker(Accelerator())
    maker.ask()
    for _ in range(600):
        if maker.made is not None:
            break
        time.sleep(0.1)
    assert maker.made is not None
    wrong = launcher.Maker(Accelerator())
    wrong.make(8)  # another structure than that of launches
    assert wrong.made is None


@pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here")
def test_numbers_as_python_packs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number in every kind of parameter, and every refusal."""

    @wp.kernel
    def numbers(a: wp.float32, b: wp.float64, c: wp.int32, d: wp.int64, x: F):
        x[0] = a

    x = wp.zeros(1, dtype=float)
    wp.launch(numbers, 1, [1.0, 1.0, 1, 1, x])
    floats = [0.0, -0.0, 1.5, 1e300, -1e300, 3.5e38, 1e-45, float("nan"), float("-inf"), 2, True]
    ints = [0, -1, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, 2**70, True, 1.0]
    for a in floats:
        for c in ints:
            packs = []
            for short in WAYS:
                with way(monkeypatch, short):
                    packs.append(packed(numbers, [a, a, c, c, x]))
            assert packs[0] == packs[-1]


@pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here")
def test_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """References to arrays, storages and gradients are given back."""
    x, y = made(4), made(4)
    watched = [x, y, x.grad, y.grad, x.storage, y.grad.storage, wp.array]
    with way(monkeypatch, "native"):

        def work() -> None:
            for k in range(50):
                tape = wp.Tape()
                with tape:
                    wp.launch(scale, 4, [x, y, float(k)])
                    wp.launch(in_place, 4, [y])
                tape.backward(grads={y: y})
                for wrong in ([x, y], [x, x, 1.0, 2.0], [x, None, 1.0], [1.0, y, x]):
                    given = (scale, 4, wrong, (), None, None, True)
                    assert NATIVE.try_run(*given) is None

        work()
        gc.collect()
        before = [sys.getrefcount(o) for o in watched]
        work()
        gc.collect()
        assert [sys.getrefcount(o) for o in watched] == before


@pytest.mark.parametrize("stride", [1, 2])
def test_zeros(stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clearing an array announces it, keeps what was held, and touches nothing beside it."""
    found = []
    for short in (False, *WAYS):
        with way(monkeypatch, short):
            whole = made(12 * stride)
            part = whole[2 : 2 + 8 * stride : stride]
            hold = part.storage.hold(part.lo, part.hi)
            version = part.storage.version
            part.zero_()
            held = hold.read(whole.ptr, whole.shape, whole.strides, np.float32)
            found.append((whole.numpy().tobytes(), part.storage.version - version, held.tobytes()))
            with pytest.raises(EngineError, match="read-only"):
                frozen = np.ones(4, np.float32)
                frozen.flags.writeable = False
                wp.array(frozen, dtype=float, copy=False).zero_()
    assert all(x == found[0] for x in found)


def test_holds_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch forgets a hold that nobody has any more; one that somebody has gets a copy."""
    found = []
    for short in (False, *WAYS):
        with way(monkeypatch, short):
            x, y = made(4), made(4)
            for k in range(6):
                kept = y.storage.hold(y.lo, y.hi) if k % 2 else None
                if not k % 2:
                    y.storage.hold(y.lo, y.hi)  # gone at once
                version = y.storage.version
                wp.launch(scale, 4, [x, y, float(k)])
                found.append((y.storage._hold, y.storage.version - version, y.numpy().tobytes()))
                if kept is not None:
                    assert kept.storage is None
                    found.append(kept.read(y.ptr, y.shape, y.strides, np.float32).tobytes())
    each = len(found) // (1 + len(WAYS))
    assert all(found[k : k + each] == found[:each] for k in range(0, len(found), each))
