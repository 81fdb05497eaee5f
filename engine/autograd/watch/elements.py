"""Finds the elements that a recorded launch read or wrote, and the record that wrote some of them.

First by the numbers of the launch, which give boxes that hold them all; where these are not enough,
the launch runs once more on copies, in the form that writes down what each thread touches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from engine.ad.threads.collect import Touch
from engine.autograd.launch.evaluation import Evaluation, EvaluationFailed
from engine.autograd.launch.recorded_arguments import NotRepeatable, recorded_launch
from engine.cached import cached_property
from engine.diagnostics import EngineError
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Storage
from engine.tape.records import LaunchRecord
from engine.tape.records.record import Record
from engine.tape.restoration import NumpyArray, any_byte, differing, planes

_BYTES = 1 << 26  # what the record of one launch may take up
_THREADS = 1 << 17  # of a launch; of larger ones, what they may touch has to do
_RUNS = 16  # launches that are run again to find out who wrote some elements
_READS: tuple[Touch, ...] = ("read", "take", "ordered", "native")
_WRITES: tuple[Touch, ...] = (
    "store", "take", "add", "min", "max", "and", "or", "xor", "ordered", "native",
)  # fmt: skip

# By parameter: which numbers were read, and which written; components last.
_Touched = dict[int, tuple[NumpyArray, NumpyArray]]


class Elements:
    """Of the records of one pass."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self._known: dict[int, _Touched | None] = {}

    def may(self, number: int, i: int, writes: bool = False) -> NumpyArray:
        """Numbers of a launch's array that hold all that it reads, or writes."""
        record = self._launch(number)
        a: array = record.values[i]
        out = np.zeros(a._parts.shape, np.bool_)
        for box in record.plan.variants.threads.reach(
            record.plan.params[i].name, _WRITES if writes else _READS, record.dim,
            record._pack(record.values),
        ):  # fmt: skip
            out[tuple(slice(*side) for side in box)] = True
        return out

    def exactly(self, number: int, i: int, writes: bool = False) -> NumpyArray | None:
        """The numbers of a launch's array that it read, or wrote; None where that is not known."""
        if number not in self._known:
            try:
                self._known[number] = _touched(self._launch(number))
            except (NotRepeatable, EvaluationFailed, EngineError, MemoryError):
                self._known[number] = None
        known = self._known[number]
        return None if known is None or i not in known else known[i][writes]

    def best(self, number: int, i: int, writes: bool = False) -> NumpyArray:
        """The same as far as it is known."""
        exact = self.exactly(number, i, writes)
        return self.may(number, i, writes) if exact is None else exact

    def read(self, number: int, i: int, where: NumpyArray) -> tuple[NumpyArray, bool]:
        """Those of some numbers that a launch read, and whether that is certain."""
        some = where & self.may(number, i)
        if not some.any():
            return some, True
        exact = self.exactly(number, i)
        return (some, False) if exact is None else (some & exact, True)

    def lost(self, number: int, i: int) -> tuple[NumpyArray | None, int]:
        """Numbers that a launch read and then overwrote, and itself; None for none.

        For parameters whose `engine.ad.Reuse` says so.
        """
        record = self._launch(number)
        where = differing(record.values[i], record.holds[i])
        if where is not None:
            where &= self.may(number, i) & self.may(number, i, True)
        return (None if where is None or not where.any() else where), number

    def read_back(self, number: int, i: int) -> tuple[NumpyArray | None, int]:
        """Numbers that a launch read after it had written them, and who surely overwrote some."""
        a = self._launch(number).values[i]
        where = self.may(number, i) & self.may(number, i, True)
        at = self.writer(number, a)
        if at is None or not self._surely(at, a, where):
            return None, number
        return where, at

    def _surely(self, position: int, a: array, where: NumpyArray) -> bool:
        """Whether a record surely stores to some of the numbers of an array."""
        r = self._records[position].launch
        if r is None:
            return True
        return any(
            b is not None and p.name in r.plan.variants.reuse.stored
            and _meet(a, where, b, self.may(position, p.index, True))
            for p in r.plan.floats for b in [r.values[p.index]]
        )  # fmt: skip

    def _launch(self, number: int) -> LaunchRecord:
        record = self._records[number].launch
        assert record is not None
        return record

    # ---- who wrote them

    @cached_property
    def _by(self) -> dict[Storage, tuple[list[int], list[tuple[array, int]]]]:
        by: dict[Storage, tuple[list[int], list[tuple[array, int]]]] = {}
        for position, r in enumerate(self._records):
            launch = r.launch
            params = (
                [] if launch is None
                else [i for i in launch.plan.writes if launch.values[i] is not None]
            )  # fmt: skip
            for k, a in enumerate(r.written):
                positions, arrays = by.setdefault(a.storage, ([], []))
                positions.append(position)
                arrays.append((a, params[k] if launch is not None else -1))
        return by

    def writer(self, number: int, a: array, where: NumpyArray | None = None) -> int | None:
        """The first record after that one that writes to an array; None for none.

        where: to these numbers of it, as far as that can be told.
        """
        positions, arrays = self._by.get(a.storage, ([], []))
        perhaps, runs = None, 0
        for k in range(bisect_right(positions, number), len(positions)):
            b, i = arrays[k]
            if not may_meet(b, a):
                continue
            if where is None:
                return positions[k]
            if i < 0:
                if _meet(a, where, b, np.ones(b._parts.shape, np.bool_)):
                    return positions[k]
                continue
            if not _meet(a, where, b, self.may(positions[k], i, True)):
                continue
            runs += 1
            exact = None if runs > _RUNS else self.exactly(positions[k], i, True)
            if exact is not None and _meet(a, where, b, exact):
                return positions[k]
            if exact is None and perhaps is None:
                perhaps = positions[k]
        return perhaps


def _meet(a: array, some: NumpyArray, b: array, others: NumpyArray) -> bool:
    """Whether some numbers of one array are among some of another, in memory."""
    if (a.ptr, a.shape, a.strides, a._parts.dtype) == (b.ptr, b.shape, b.strides, b._parts.dtype):
        return bool((some & others).any())
    lo = min(a.lo, b.lo)
    plane = np.zeros(max(a.hi, b.hi) - lo, np.bool_)
    planes(plane, lo, b)[others] = True
    return bool(any_byte(planes(plane, lo, a))[some].any())


def _touched(record: LaunchRecord) -> _Touched | None:
    variants = record.plan.variants
    known = variants.accesses_ir()
    if known is None or np.prod(record.dim, dtype=np.int64) > _THREADS:
        return None
    own = Evaluation(recorded_launch(record))
    words = own.accesses(_BYTES)
    words = -1 - words[words < 0]
    count = max(len(known.sites), 1)
    numbers, scalars = words % count, words // count
    out: _Touched = {}
    for p in record.plan.floats:
        a = record.values[p.index]
        if a is None:
            continue
        both = np.zeros((2, a.size * int(np.prod(a._parts.shape[len(a.shape) :]))), np.bool_)
        for k, site in enumerate(known.sites):
            if site.array != p.name:
                continue
            at = scalars[numbers == k]
            for c in range(site.width):
                here = at + c
                here = here[(here >= 0) & (here < both.shape[1])]
                both[0][here] |= site.reads
                both[1][here] |= site.writes
        read, written = both.reshape((2, *a._parts.shape))
        out[p.index] = read, written
    return out
