"""What backward passes gave, noted after each, in a way that changes nothing of what runs.

Compiled code takes whole launches and passes where nobody listens (`engine.compile.cpu.launcher`).
So nobody listens here: `Tape.backward` is another function meanwhile, which looks once the pass is
over. It reads memory by its address. No array and no record is made for that, no NumPy view of an
array is kept, and rows of launches stay rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from threading import current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from engine.diagnostics.site import call_site
from engine.runtime import recording
from engine.runtime.array import array
from engine.runtime.device import HOST
from engine.runtime.graphs import Graph
from engine.tape.pass_notes import SIZE, Given, PassNotes
from engine.tape.record import Record
from engine.tape.tape import Tape

if TYPE_CHECKING:
    from engine.runtime.plan import Plan

_BEFORE = 6  # what a row has before its arguments: see `compile/cpu/native/launches.h`
MOST = 64 << 20  # bytes of the gradients of one pass, beyond which it is not noted
PASSES = 100_000  # that are noted

# An array where it stands on a tape: the number of its operation, that (a launch's plan, or another
# record), its place there, and the array.
_Place = tuple[int, Any, int, array]


class PassLog:
    """Notes passes. wanted: the number of one that is noted with all values, -1 for none.

    seconds: after which no more are noted, 0 for no limit.
    """

    def __init__(self, wanted: int = -1, seconds: float = 0.0) -> None:
        self._wanted = wanted
        self._end = monotonic() + seconds if seconds else None
        self._layouts: list[str] = []
        self._values: list[str] = []
        self._given: tuple[Given, ...] = ()
        self._place = ("", 0)
        self._whole = True
        self._native = False
        self._launches = 0

    def add(self, tape: Tape, native: bool) -> None:
        """Notes what a pass of a tape has left. It has just come to its end.

        native: whether compiled code had recorded launches there, which the pass may have made
        records of. Passes of other threads than the main one are left out: their order differs.
        """
        if current_thread() is not main_thread():
            return
        late = self._end is not None and monotonic() > self._end
        if late or not self._whole or len(self._layouts) >= PASSES:
            self._whole = False
            return
        here = len(self._layouts) == self._wanted
        layout, value = blake2b(digest_size=SIZE), blake2b(digest_size=SIZE)
        left, found = MOST, []
        arrays = list(_arrays(tape))
        self._launches += len({number for number, *_ in arrays})
        for name, dtype, g in _gradients(arrays, tape):
            left -= g.hi - g.lo
            if left < 0:
                self._whole = False
                return
            data = g.storage.bytes(g.lo, g.hi).tobytes()
            layout.update(f"{name} {dtype} {g.shape}\n".encode())
            value.update(data)
            if here:
                shape = (*g.shape, *g._info.inner)
                found.append(Given(name, shape, dtype, data.hex()))
        self._layouts.append(layout.hexdigest())
        self._values.append(value.hexdigest())
        self._native = self._native or native
        if here:
            self._given = tuple(found)
            at = call_site()
            self._place = ("", 0) if at is None else (at.code.co_filename, at.line)

    def notes(self) -> PassNotes:
        """What was noted so far."""
        return PassNotes(
            "".join(self._layouts), "".join(self._values), *self._place, self._given, self._whole,
            self._native, self._launches,
        )  # fmt: skip


@contextmanager
def noting(log: PassLog) -> Iterator[None]:
    """While active, passes that programs run are noted. Those of captured graphs are not."""
    plain = Tape.backward

    @functools.wraps(plain)
    def backward(
        self: Tape, loss: array | None = None, grads: Mapping[array, Any] | None = None
    ) -> None:
        native = len(self._rows) > 1
        plain(self, loss, grads)
        if recording.graph.get() is None and not running:
            log.add(self, native)

    replay, running = Graph._replay, list[Graph]()

    @functools.wraps(replay)
    def replayed(self: Graph) -> None:
        running.append(self)
        try:
            replay(self)
        finally:
            running.pop()

    Tape.backward, Graph._replay = backward, replayed  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tape.backward, Graph._replay = plain, replay  # type: ignore[method-assign]


def _gradients(arrays: Iterable[_Place], tape: Tape) -> Iterator[tuple[str, str, array]]:
    """Gradients of arrays of a tape, each once and by its first place; last its loss."""
    seen: set[int] = set()
    for number, what, k, a in arrays:
        while a._grad is None and a._origin is not None:
            a = a._origin[0]
        g = a._grad
        if g is None or id(g) in seen or not _is_plain(g):
            continue
        seen.add(id(g))
        yield _name(number, what, k), g._info.numpy.name, g
    if tape.loss is not None and _is_plain(tape.loss):
        yield "the loss", tape.loss._info.numpy.name, tape.loss


def _is_plain(a: array) -> bool:
    """Whether its numbers are on the host, one after another."""
    return a.is_contiguous and a.storage.device is HOST and a._info.numpy.names is None


def _name(number: int, what: Any, k: int) -> str:
    """What an array is called by its first place on the tape."""
    if isinstance(what, Record):
        return f"array {k} of `{what.name}` in operation {number}"
    return f"argument `{what.params[k].name}` of kernel `{what.kernel.key}` in operation {number}"


def _arrays(tape: Tape) -> Iterator[_Place]:
    """The arrays of a tape's operations, in their order."""
    number = 0
    replays: Any = ()
    records = tape._records
    if tape._unmade is not None:
        records, replays = tape._unmade
    for record in records:
        plan = getattr(record, "plan", None)
        if plan is not None:
            yield from _of_launch(plan, record.values, number)  # type: ignore[attr-defined]
        else:
            for k, a in enumerate(record.arrays):
                if isinstance(a, array):
                    yield number, record, k, a
        number += 1
    for replay in replays:
        for launch in replay.piece.launches:
            yield from _of_launch(launch.call.plan, launch.call.values, number)
            number += 1
    rows = tape._rows[1:]
    k = 0
    while k < len(rows):
        plan = rows[k]
        if not hasattr(plan, "held"):  # None, or a record among the rows
            k += 1
            continue
        if hasattr(plan, "plan"):
            yield from _of_launch(plan.plan, plan.values, number)
            k += 1
        elif hasattr(plan, "count"):
            values = rows[k + _BEFORE : k + _BEFORE + plan.count]
            yield from _of_launch(plan, values, number)
            k += _BEFORE + plan.count + len(plan.held)
        number += 1


def _of_launch(plan: Plan, values: list[Any], number: int) -> Iterator[_Place]:
    for p in plan.array_params:
        a = values[p.index]
        if a is not None:
            yield number, plan, p.index, a if a._whole is None else a._whole
