"""Runs watched kernels, and reads what they reported: see `engine.ir.sites`.

While somebody watches, every launch runs in its watched form, unless it is proven to need none:
the program's own launches, their adjoints, and those of checks. An access outside of an array
gives zero and changes nothing, so that no memory is damaged.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from engine.codegen.layout import FAULT, HEAD, watch_words
from engine.compile.backend import Backend, Entry
from engine.compile.forms import FORMS, Form, Names
from engine.compile.pipeline import Variants
from engine.compile.watching import watched
from engine.diagnostics import Span
from engine.diagnostics.site import call_span
from engine.ir.nodes import Store
from engine.ir.sites import Place
from engine.runtime import events
from engine.runtime.faults import Fault, OnFault

# Words of `fault_t`, in watch.h.
COUNT, THREAD, AT, SHAPE, OTHER, PLACE, SAME, MIXED = 0, 1, 2, 6, 10, 11, 12, 13
# What an index outside of a view is made, or less.
_STRAYED = -(1 << 24)
# An array of indices of an indexed array: what is outside of it is outside of that.
_TABLE = re.compile(r"\.\d+_indices$")


class Sanitizer(events.Observer):
    """Has launches watched, and tells what they do wrong; None: nobody is told, nothing is damaged.

    races: whether to look for them, too.
    """

    __slots__ = ("_tell", "races")
    bounds = True

    def __init__(self, tell: OnFault | None, races: bool) -> None:
        self._tell = tell
        self.races = races

    def faulty(self, fault: Fault) -> None:
        if self._tell is not None:
            self._tell(fault)


@contextmanager
def watching(on_fault: OnFault | None = None, races: bool = False) -> Iterator[None]:
    """While active, launches are watched for accesses outside of arrays, and for races.

    An access outside gives zero where it reads, and does nothing where it writes; the launch
    goes on. The same holds for adjoints and for the launches of checks. Outside of an array,
    native functions read NaN, and nothing is said of it. A launch on a GPU is waited for.

    on_fault: called after a launch with each place of the code that did something wrong, from
    the Python thread that launched. races: launches of which it is not proven that their threads
    keep apart run twice, first one thread after the other, on memory that is put back: see
    `engine.runtime.races`.
    """
    with events.observing(Sanitizer(on_fault, races)):
        yield


def tell(faults: list[Fault]) -> None:
    """Tells everybody who watches."""
    for o in tuple(events.everywhere):
        for f in faults:
            o.faulty(f)


def clash(variants: Variants, s: Store, dim: tuple[int, ...], site: Span | None) -> Fault:
    """A race that is certain: all threads store a value of their own to one element."""
    watched(variants, "races").raced = True
    total = math.prod(dim)
    return Fault(
        "race", variants.name, s.span, "forward", "store", s.array.name,
        coordinates(total - 1, dim), (), (), total, coordinates(0, dim), s.span, "store", site,
    )  # fmt: skip


class WatchedRun:
    """A form of a kernel for one launch of it, watched. at: what follows its arguments.

    quiet: nobody will ask for faults.
    """

    def __init__(
        self, backend: Backend, variants: Variants, form: Form, wrt: Names, journaled: Names,
        quiet: bool = False,
    ) -> None:  # fmt: skip
        self._backend, self._form, self._key = backend, form, (wrt, journaled)
        self._kernel = watched(variants, "bounds")
        self.entry = self._kernel.entry(backend, form, wrt, journaled)
        self._places = self._kernel.watched(form, wrt, journaled)[1]
        count = len(self._places)
        self._notes: _Notes | None = None
        if backend.on_host:
            self._words = _unread(count) if quiet else _room(count)
            address = self._words.ctypes.data
        else:
            self._notes = _Notes(backend, count)
            address = self._notes.address
        bound = self._kernel.own.bound(form)
        self.at = bound + struct.pack("<q", address)

    def spare(self) -> Entry:
        """The form of an adjoint that saves less."""
        spare = FORMS[self._form].spare
        assert spare
        return self._kernel.entry(self._backend, spare, *self._key)

    def faults(self, dim: tuple[int, ...]) -> list[Fault]:
        """What was seen, one for each place, in the order of the code."""
        words = self._words if self._notes is None else self._notes.words()
        rows = words[HEAD:].reshape(-1, FAULT)
        if not rows[:, COUNT].any():
            if self._notes is None:
                _give_back(words)
            return []
        found = [(p, r) for p, r in zip(self._places, rows.tolist(), strict=False) if r[COUNT]]
        # What a view's index outside of it accesses is said once.
        strayed = {(r[THREAD], p.span.line) for p, r in found if p.access == "view"}
        site = call_span()
        return [
            self._fault(p, r, dim, site)
            for p, r in found
            if p.access == "view"
            or min(r[AT : AT + 4]) > _STRAYED
            or (r[THREAD], p.span.line) not in strayed
        ]

    def _fault(self, p: Place, row: list[int], dim: tuple[int, ...], site: Span | None) -> Fault:
        loaded = p.loaded or (False,) * _dimensions(row)
        shape = tuple(row[SHAPE : SHAPE + len(loaded)])
        at = row[AT : AT + len(loaded)]
        # One that counts from the end has been counted already.
        index = tuple(
            i - n if i < 0 and not raw else i for i, n, raw in zip(at, shape, loaded, strict=True)
        )
        form, name = FORMS[self._form].told_as, _TABLE.sub("", p.name)
        return Fault(
            "outside", self._kernel.name, p.span, form, p.access, name,
            coordinates(row[THREAD], dim), index, shape, row[COUNT], site=site,
        )  # fmt: skip


def _dimensions(row: list[int]) -> int:
    """Of a component: vectors have one length, matrices two, none of which is 0."""
    return max(sum(n > 0 for n in row[SHAPE : SHAPE + 4]), 1)


class _Notes:
    """A `watch_t` in memory of a device, for one launch."""

    def __init__(self, backend: Backend, places: int) -> None:
        self._backend, self._size = backend, watch_words(places)
        self._owner, self.address = backend.allocate(0, 8 * self._size, True)

    def words(self) -> NDArray[np.int64]:
        """What is there, after all launches before."""
        view = self._backend.view(
            self._owner, self.address, (self._size,), None, np.int64, False
        )  # fmt: skip
        return np.array(self._backend.to_host(view))


def memory(places: int) -> NDArray[np.int64]:
    """A `watch_t` with room for as many faults."""
    return np.zeros(watch_words(places), np.int64)


# Memory that launches used and left as it was. To clear it for each one takes longer than they do.
_left: dict[int, list[NDArray[np.int64]]] = {}
_MOST = 4  # of each size
_unread_words = np.zeros(0, np.int64)


def _room(places: int) -> NDArray[np.int64]:
    """Memory in which nothing is noted yet, for one launch."""
    try:
        return _left[places].pop()
    except (KeyError, IndexError):
        return memory(places)


def _give_back(words: NDArray[np.int64]) -> None:
    """Takes memory of a launch that has noted nothing there."""
    left = _left.setdefault((len(words) - HEAD) // FAULT, [])
    if len(left) < _MOST:
        left.append(words)


def _unread(places: int) -> NDArray[np.int64]:
    """Memory that any number of launches may write notes to, and that nobody reads."""
    global _unread_words
    if len(_unread_words) < watch_words(places):
        _unread_words = memory(places)
    return _unread_words


def coordinates(thread: int, dim: tuple[int, ...]) -> tuple[int, ...]:
    """A thread's place in the grid."""
    return tuple(int(i) for i in np.unravel_index(thread, dim))
