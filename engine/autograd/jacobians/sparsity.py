"""The sparsity of a launch's Jacobian, from a run that records the accesses of each thread.

Conservative: an entry that is not in the pattern is zero, one that is in it may be. The
pattern is that of the recorded values: branches and indices are as they were there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.ad import Access
from engine.autograd.launch.evaluation import Evaluation, EvaluationFailed
from engine.classes import dataclass

Ints = NDArray[np.int64]

# Bytes that the record of a launch may take, and entries that a pattern may have on the way.
RECORD_BYTES = 2 << 30
MOST_ENTRIES = 60_000_000


class UnknownSparsity(Exception):
    """Why the sparsity of a launch cannot be told."""


@dataclass(frozen=True)
class Side:
    """Arrays one after the other: the columns (or rows) of a Jacobian of a whole launch."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """Scalars in all."""
        return sum(self.sizes)

    def begin(self, name: str) -> int:
        """The number of an array's first scalar."""
        return sum(self.sizes[: self.names.index(name)])

    def span(self, name: str) -> slice:
        """The numbers of an array's scalars."""
        begin = self.begin(name)
        return slice(begin, begin + self.sizes[self.names.index(name)])


@dataclass(frozen=True)
class Pattern:
    """Places of entries that may differ from zero, sorted by row, then by column, each once."""

    shape: tuple[int, int]
    rows: Ints
    cols: Ints


@dataclass(frozen=True)
class _Touched:
    """What one place in the code touched: threads in ascending order, and first scalars."""

    site: Access
    owner: str
    threads: Ints
    scalars: Ints


def find_pattern(own: Evaluation, inputs: Side, outputs: Side) -> Pattern:
    """The pattern of all outputs by all inputs. Raises UnknownSparsity."""
    touched = _record(own)
    _no_messages_between_threads(touched)
    width = max(inputs.size, 1)
    keys: list[Ints] = []
    count = 0
    for s in touched:
        if not s.site.writes or s.owner not in outputs.names:
            continue
        for number in sorted(s.site.sources):
            source = touched[number]
            if source.owner not in inputs.names:
                continue
            found = _joined(s, source, inputs.begin(source.owner), outputs.begin(s.owner), width)
            count += len(found)
            if count > MOST_ENTRIES:
                raise UnknownSparsity(f"it has more than {MOST_ENTRIES} entries")
            keys.append(found)
    for name in set(inputs.names) & set(outputs.names):
        # What is not overwritten stays as it was.
        every = np.arange(outputs.sizes[outputs.names.index(name)], dtype=np.int64)
        keys.append((every + outputs.begin(name)) * width + every + inputs.begin(name))
    key = _unique(_merged(keys))
    return Pattern((outputs.size, inputs.size), key // width, key % width)


def _merged(keys: Sequence[Ints]) -> Ints:
    """All keys in one sequence, in order where they come in step: k of each, then k + 1."""
    if not keys:
        return np.zeros(0, np.int64)
    if len({len(k) for k in keys}) > 1:
        return np.concatenate(keys)
    rows = np.stack(keys, axis=1)
    rows.sort(axis=1)
    return rows.reshape(-1)


def _unique(keys: Ints) -> Ints:
    """Sorted, each once. Keys that are sorted already cost one look."""
    if len(keys) and not np.all(keys[1:] > keys[:-1]):
        keys = np.sort(keys)
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    return keys


def _record(own: Evaluation) -> list[_Touched]:
    known = own.variants.accesses_ir()
    if known is None:
        raise UnknownSparsity("a function with a custom gradient takes arrays")
    try:
        words = own.accesses(RECORD_BYTES)
    except EvaluationFailed as why:
        raise UnknownSparsity(str(why)) from None
    ends = words >= 0
    threads: Ints = np.cumsum(ends, dtype=np.int64)[~ends]
    words = -1 - words[~ends]
    count = max(len(known.sites), 1)
    numbers, scalars = words % count, words // count
    out = []
    for k, site in enumerate(known.sites):
        size = own.memory[own.owner[site.array]].size
        # What lies outside of an array is no entry: it reads as zero, and stores do nothing.
        mine = np.flatnonzero((numbers == k) & (scalars >= 0) & (scalars < size))
        out.append(_Touched(site, own.owner[site.array], threads[mine], scalars[mine]))
    return out


def _no_messages_between_threads(touched: Sequence[_Touched]) -> None:
    """Raises UnknownSparsity where a thread reads what another one writes."""
    reads: dict[str, list[_Touched]] = {}
    writes: dict[str, list[_Touched]] = {}
    for s in touched:
        if s.site.reads:
            reads.setdefault(s.owner, []).append(s)
        if s.site.writes:
            writes.setdefault(s.owner, []).append(s)
    for owner in reads.keys() & writes.keys():
        writer = _owner_of_each(writes[owner])
        for s in reads[owner]:
            for k in range(s.site.width):
                at = s.scalars + k
                inside = at < len(writer)
                by = writer[at[inside]]
                if np.any((by != -1) & (by != s.threads[inside])):
                    raise UnknownSparsity("threads read elements that other threads write")


def _owner_of_each(writes: Sequence[_Touched]) -> Ints:
    """Which thread wrote each scalar; -1 for none, -2 for several."""
    size = max((int(s.scalars.max(initial=-1)) + s.site.width for s in writes), default=0)
    lowest = np.full(size, np.iinfo(np.int64).max)
    highest = np.full(size, -1, np.int64)
    for s in writes:
        for k in range(s.site.width):
            np.minimum.at(lowest, s.scalars + k, s.threads)
            np.maximum.at(highest, s.scalars + k, s.threads)
    return np.where(highest == -1, -1, np.where(lowest == highest, highest, -2))


def _joined(write: _Touched, read: _Touched, first_col: int, first_row: int, width: int) -> Ints:
    """row * width + column of every scalar written with every one read by the same thread."""
    where, again = _matches(write.threads, read.threads)
    if len(where) * write.site.width * read.site.width > MOST_ENTRIES:
        raise UnknownSparsity(f"it has more than {MOST_ENTRIES} entries")
    rows = write.scalars[where] + first_row
    cols = read.scalars[again] + first_col
    base = rows * width + cols
    if write.site.width == read.site.width == 1:
        return base
    steps = np.arange(write.site.width)[:, None] * width + np.arange(read.site.width)
    return (base[:, None] + steps.reshape(-1)).reshape(-1)


def _matches(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """All pairs of positions with equal values in two ascending sequences."""
    if len(a) == len(b) and np.array_equal(a, b) and (len(a) < 2 or np.all(a[1:] > a[:-1])):
        every = np.arange(len(a))
        return every, every
    low, high = np.searchsorted(b, a, "left"), np.searchsorted(b, a, "right")
    counts = high - low
    total = int(counts.sum())
    if total > MOST_ENTRIES:
        raise UnknownSparsity(f"it has more than {MOST_ENTRIES} entries")
    first = np.repeat(np.arange(len(a)), counts)
    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, np.repeat(low, counts) + within
