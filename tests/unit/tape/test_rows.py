"""Launches that a tape keeps as rows of one list, against records of each."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.tape import rows
from tests.unit.runtime.launching import in_place, made, scale, total, turns
from tests.unit.runtime.random_launches import OneTape as Program
from tests.unit.runtime.sequences import ONE_CALL, add, step
from tests.unit.tape.unseen_sequences import quiet

pytestmark = [*ONE_CALL, pytest.mark.cold("counts objects and rows")]

N = 5


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quiet(monkeypatch):
        for kernel in (scale, total, turns, in_place, add, step):
            kernel.forget()
        for _ in range(4):  # until nothing is to be compiled
            program = Program(0)
            program.launches(6)
            program.tape.backward(program.loss)
        yield


def test_launches_are_no_objects_of_their_own() -> None:
    x, y, cotangent, tape = made(N), made(N), made(N), wp.Tape()
    x.grad.zero_()
    y.grad.zero_()
    gc.collect()
    before = len(gc.get_objects())
    with tape:
        for _ in range(1000):
            wp.launch(scale, N, [x, y, 2.0])
    assert len(gc.get_objects()) < before + 20
    tape.backward(grads={y: cotangent})
    tape.zero()
    assert len(tape.gradients) == 2
    assert len(gc.get_objects()) < before + 20
    assert len(tape.records) == 1000
    assert len(gc.get_objects()) > before + 1000


def test_records_are_not_made_to_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, tape = made(N), made(N), wp.Tape()
    with tape:
        for _ in range(10):
            wp.launch(scale, N, [x, y, 2.0])
    monkeypatch.setattr(rows, "make", None)
    tape.reset()
    monkeypatch.undo()
    assert tape.records == []
    assert len(tape.gradients) == 0
    assert tape.gradients.get(x) is None


def test_records_in_a_list_of_another_kind() -> None:
    class Listed(list[Any]):
        added = 0

        def append(self, record: Any) -> None:
            self.added += 1
            super().append(record)

    program = Program(7)
    program.tape.records = mine = Listed()
    program.launches(6)
    assert (mine.added, len(mine)) == (6, 6)
    program.tape.backward(program.loss)


def test_where_memory_runs_out_no_launch_is_there_twice() -> None:
    spoil = pytest.importorskip("_testcapi").set_nomemory
    remove = pytest.importorskip("_testcapi").remove_mem_hooks
    seen = set()
    for k in range(60):
        x, y, cotangent, tape = made(N), made(N), wp.ones(N, dtype=float), wp.Tape()
        with tape:
            for _ in range(4):
                wp.launch(scale, N, [x, y, 2.0])
        failed = False
        spoil(k, k + 1)  # the k-th allocation alone
        try:
            tape.records  # noqa: B018
        except MemoryError:
            failed = True
        finally:
            remove()
        seen.add(failed)
        assert len(tape.records) == 4
        tape.backward(grads={y: cotangent})
        assert np.array_equal(x.grad.numpy(), 4.0 * x.numpy())  # of the last one
    assert seen == {True, False}


def test_records_that_are_set_are_all_there_are() -> None:
    program, done, wrong = Program(8), threading.Event(), []

    def look() -> None:
        while not done.is_set():
            program.tape.records  # noqa: B018

    threads = [threading.Thread(target=look) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        for _ in range(300):
            program.tape.reset()
            with program.tape:
                wp.launch(scale, N, [program.arrays[0], program.arrays[1], 2.0])
            for _ in range(20):
                program.tape.records = []
                if program.tape.records:
                    wrong.append(len(program.tape.records))
    finally:
        sys.setswitchinterval(interval)
        done.set()
        for t in threads:
            t.join()
    assert not wrong


def test_who_has_the_records_sees_them_grow() -> None:
    program = Program(2)
    program.launches(6)
    known = program.tape.records
    program.launches(6)
    assert len(known) == 12
    assert known is program.tape.records is program.tape.launches
    program.tape.reset()
    assert program.tape.records == []
    program.launches(6)
    assert (len(known), len(program.tape.records)) == (12, 6)


def test_records_may_be_set_and_forgotten() -> None:
    program = Program(3)
    program.launches(6)
    kept = program.tape.records[:2]
    program.tape.records = kept
    program.launches(6)
    assert len(program.tape.records) == len(kept) == 8
    program.tape.records.clear()
    program.launches(6)
    assert len(program.tape.records) == 6


def test_each_record_is_made_once() -> None:
    program = Program(4)
    program.launches(6)
    assert program.tape.memory == program.tape.memory
    first = program.tape.records[0]
    program.tape.backward(program.loss)
    assert program.tape.records[0] is first
    assert len(program.tape.records) == 6


def test_what_they_hold_lives_as_long_as_they_do() -> None:
    tape = wp.Tape()
    with tape:
        x, y = made(N), made(N)
        wp.launch(scale, N, [x, y, 1.0])
    before = x.numpy().copy()
    x.fill_(7.0)  # off the tape: the record knows what it read
    seen = weakref.ref(x)
    del x, y
    gc.collect()
    assert seen() is not None
    assert np.array_equal(tape.records[0].inputs_at_record()[0], before)
    tape.reset()
    gc.collect()
    assert seen() is None


def test_saved_values_of_some_are_counted() -> None:
    """An adjoint that saves values in its stack leaves something, so that Python has to look."""
    x, y, loss, tape = made(N), made(N), wp.zeros(1, dtype=float, requires_grad=True), wp.Tape()
    with tape:
        wp.launch(scale, N, [x, y, 0.5])
        wp.launch(turns, N, [x, y, 30])
        wp.launch(total, N, [y], [loss])
    for _ in range(3):
        tape.backward(loss)
    assert tape.memory.stack == max(r.stack_bytes for r in tape.records)


@pytest.mark.parametrize("others", [1, 3])
def test_threads_may_look_while_it_records(others: int) -> None:
    program, done, wrong = Program(5), threading.Event(), []
    x, y = program.arrays[:2]

    def look() -> None:
        while not done.is_set():
            found = program.tape._made()[:]
            blobs = [r.values[2] for r in found]
            if blobs != sorted(blobs):
                wrong.append(blobs)

    threads = [threading.Thread(target=look) for _ in range(others)]
    for t in threads:
        t.start()
    with program.tape:
        for k in range(3000):
            wp.launch(scale, N, [x, y, float(k)])
    done.set()
    for t in threads:
        t.join()
    assert not wrong
    assert [r.values[2] for r in program.tape.records] == [float(k) for k in range(3000)]


@pytest.mark.parametrize("forget", [wp.Tape.reset, lambda tape: tape.records.clear()])
def test_others_may_forget_them_meanwhile(forget: Callable[[wp.Tape], object]) -> None:
    program, done = Program(6), threading.Event()
    x, y = program.arrays[:2]

    def drop() -> None:
        while not done.is_set():
            forget(program.tape)

    thread = threading.Thread(target=drop)
    thread.start()
    for _ in range(200):
        with program.tape:
            for _ in range(10):
                wp.launch(scale, N, [x, y, 1.0])
        program.tape.backward(grads={y: x})
    done.set()
    thread.join()
    assert len(program.tape.records) <= 2000
