"""The writers of memory, and the times of their writes."""

from __future__ import annotations

import gc
from typing import Any

import engine as wp
from engine.autograd.watch.writes import Writes
from engine.runtime import events
from tests.unit.autograd.watch.programs import floats, said, twice, zeros

NONE: frozenset[Any] = frozenset()


class Noted(events.Observer):
    """Writes while a block runs."""

    def __enter__(self) -> Writes:
        self.writes = Writes()
        events.everywhere.append(self)
        return self.writes

    def __exit__(self, *exc: object) -> None:
        events.everywhere.remove(self)

    def writing(self, memory: Any, lo: int, hi: int) -> None:
        self.writes.note(memory, lo, hi)


def test_the_first_write_since_then() -> None:
    x = floats(1, 2, 3)
    with Noted() as writes:
        x.fill_(1.0)
        then = writes.clock
        x.zero_()  # this one
        x.fill_(2.0)
        found = writes.after(then, x, NONE, then)
        assert found is not None and said(found.site and found.site.span).endswith("# this one")
        assert writes.after(writes.clock, x, NONE, then) is None


def test_only_writes_that_meet_the_array() -> None:
    x = floats(1, 2, 3, 4)
    with Noted() as writes:
        x[2:].zero_()
        assert writes.after(0, x[:2], NONE, 0) is None
        assert writes.after(0, x[1:3], NONE, 0) is not None
        assert writes.after(0, floats(1), NONE, 0) is None


def test_writes_of_tapes() -> None:
    x, y = floats(1, 2, 3), zeros()
    with Noted() as writes:
        with wp.Tape() as tape:
            wp.launch(twice, 3, [x], [y])
        last, own = writes.clock, {(r._site.code, r._site.instruction) for r in tape.records}
        assert writes.after(0, y, own, last) is None  # the tape's own
        assert writes.after(0, y, NONE, last) is not None  # of another one
        with wp.Tape():
            y.fill_(1.0)
        found = writes.after(0, y, own, last)
        assert found is not None and found.taped and found.clock > last
        y.fill_(2.0)
        found = writes.after(0, y, own, last)
        assert found is not None and not found.taped


def test_the_last_ones_are_kept() -> None:
    x = floats(1, 2, 3)
    with Noted() as writes:
        for _ in range(1000):
            x.zero_()
        assert writes.clock == 1000
        assert writes.after(990, x, NONE, 0) is not None
        assert all(len(some) <= 256 for some in writes._by._said.values())


def test_memory_that_is_gone_is_forgotten() -> None:
    with Noted() as writes:
        x = floats(1, 2, 3)
        x.zero_()
        del x
        gc.collect()
        writes._by._sweep()
        assert not writes._by
