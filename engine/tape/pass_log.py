"""Notes the result of each backward pass without changing what runs.

Compiled code takes whole launches and passes where nobody listens (`engine.accel.launcher`).
So nobody listens here: `Tape.backward` is another function meanwhile, which looks once the pass is
over. It reads memory by its address. No array and no record is made for that, and no NumPy view of
an array is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from threading import current_thread, main_thread
from time import monotonic
from typing import Any

import numpy as np

from engine.diagnostics.site import call_site
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.device import HOST
from engine.runtime.graphs import Graph
from engine.runtime.plan import Plan
from engine.tape.pass_notes import SIZE, Given, PassNotes
from engine.tape.records.record import Record
from engine.tape.tape import Tape

MOST = 64 << 20  # bytes of the gradients of one pass, beyond which it is not noted
PASSES = 100_000  # that are noted

# An array where it stands on a tape: the number of its operation, that (a launch's plan, or another
# record), its place there, the array, and whether the operation wrote it.
_Place = tuple[int, Any, int, array, bool]


class PassLog:
    """Notes passes. wanted: the number of one that is noted with all values, -1 for none.

    seconds: after which no more are noted, 0 for no limit. thorough: gradients of structs and of
    strided arrays are noted, too, and what the tape's operations wrote, as it is after the pass.
    """

    def __init__(self, wanted: int = -1, seconds: float = 0.0, thorough: bool = False) -> None:
        self._wanted = wanted
        self._thorough = thorough
        self._end = monotonic() + seconds if seconds else None
        self._layouts: list[str] = []
        self._values: list[str] = []
        self._given: tuple[Given, ...] = ()
        self._place = ("", 0)
        self._whole = True
        self.launches = 0

    def add(self, tape: Tape) -> None:
        """Notes what a pass of a tape has left. It has just come to its end.

        Passes of other threads than the main one are left out: their order differs.
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
        self.launches += len({number for number, *_ in arrays})
        look = _results(arrays, tape) if self._thorough else _gradients(arrays, tape, _is_plain)
        for name, g in look:
            left -= g.hi - g.lo
            if left < 0:
                self._whole = False
                return
            dtype, data = g._info.numpy, _contents(g)
            layout.update(f"{name} {dtype.str} {g.shape}\n".encode())
            value.update(data)
            if here:
                shape = (*g.shape, *g._info.inner)
                found.append(Given(name, shape, dtype.name, data.hex()))
        self._layouts.append(layout.hexdigest())
        self._values.append(value.hexdigest())
        if here:
            self._given = tuple(found)
            at = call_site()
            self._place = ("", 0) if at is None else (at.code.co_filename, at.line)

    def notes(self) -> PassNotes:
        """What was noted so far."""
        return PassNotes(
            "".join(self._layouts), "".join(self._values), *self._place, self._given, self._whole,
            self.launches,
        )  # fmt: skip


@contextmanager
def noting(log: PassLog) -> Iterator[None]:
    """While active, passes that programs run are noted. Those of captured graphs are not."""
    plain = Tape.backward

    @functools.wraps(plain)
    def backward(
        self: Tape, loss: array | None = None, grads: Mapping[array, Any] | None = None
    ) -> None:
        plain(self, loss, grads)
        if events.graph() is None and not running:
            log.add(self)

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


def _gradients(
    arrays: Iterable[_Place], tape: Tape, suits: Callable[[array], bool]
) -> Iterator[tuple[str, array]]:
    """Gradients of arrays of a tape, each once and by its first place; last its loss."""
    seen: set[int] = set()
    for number, what, k, a, _ in arrays:
        if a._whole is not None:
            a = a._whole
        while a._grad is None and a._origin is not None:
            a = a._origin[0]
        g = a._grad
        if g is None or id(g) in seen or not suits(g):
            continue
        seen.add(id(g))
        yield _name(number, what, k), g
    if tape.loss is not None and suits(tape.loss):
        yield "the loss", tape.loss


def _results(arrays: Sequence[_Place], tape: Tape) -> Iterator[tuple[str, array]]:
    """All gradients, and what operations wrote."""
    yield from _gradients(arrays, tape, _has_numbers)
    seen: set[int] = set()
    for number, what, k, a, written in arrays:
        if written and id(a) not in seen and _has_numbers(a):
            seen.add(id(a))
            yield f"{_name(number, what, k)}, written", a


def _is_plain(a: array) -> bool:
    """Whether its numbers are on the host, one after another."""
    return a.is_contiguous and a.storage.device is HOST and a._info.numpy.names is None


def _name(number: int, what: Any, k: int) -> str:
    """What an array is called by its place on the tape."""
    if isinstance(what, Plan):
        kernel = what.kernel.key
        return f"argument `{what.params[k].name}` of kernel `{kernel}` in operation {number}"
    return f"array {k} of `{what.name}` in operation {number}"


def _has_numbers(a: array) -> bool:
    """Whether it is on the host, and has no addresses in it, which are others each time."""
    return a.storage.device is HOST and not a._info.linked


def _contents(a: array) -> bytes:
    """Its numbers as bytes, without what lies between them."""
    data = a.storage.bytes(a.lo, a.hi).tobytes()
    if _is_plain(a):
        return data
    info = a._info
    kind = info.numpy if info.opaque else np.dtype(info.typestr)
    inner, steps = ((), ()) if info.opaque else (info.inner, info.steps)
    parts = np.ndarray((*a.shape, *inner), kind, data, a._ptr - a.lo, (*a.strides, *steps))
    return b"".join(_fields(parts))


def _fields(parts: np.ndarray[Any, Any]) -> Iterator[bytes]:
    if parts.dtype.names is None:
        yield parts.tobytes()
    else:
        for name in parts.dtype.names:
            yield from _fields(parts[name])


def _arrays(tape: Tape) -> Iterator[_Place]:
    """The arrays of a tape's operations, in their order; of an array of structs its fields."""
    number = 0
    records, replays = (tape._records, ()) if tape._unmade is None else tape._unmade
    for record in records or ():
        yield from _of_record(record, number)
        number += 1
    for replay in replays:
        for record in replay.records():
            yield from _of_record(record, number)
            number += 1


def _of_record(record: Record, number: int) -> Iterator[_Place]:
    launch = record.launch
    if launch is not None:
        yield from _of_launch(launch.plan, launch.values, number)
        return
    written = {id(a) for a in record.written}
    for k, a in enumerate(record.arrays):
        if isinstance(a, array):
            yield number, record, k, a, id(a) in written


def _of_launch(plan: Plan, values: list[Any], number: int) -> Iterator[_Place]:
    for p in plan.array_params:
        a = values[p.index]
        if a is not None:
            yield number, plan, p.index, a, p.index in plan.writes
