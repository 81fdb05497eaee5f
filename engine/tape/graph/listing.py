"""The records of a tape as plain data, for pictures, tables and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.classes import dataclass
from engine.tape.graph.names import Names
from engine.tape.outline import Key, key_of
from engine.tape.records.record import Record
from engine.tape.scopes import Scope


@dataclass(frozen=True, slots=True)
class ListedArray:
    """An array. name, short: the longest and the shortest that its program has for it, or "".

    base: the array that it is a view of, among the listed ones; -1 for none. nbytes: of its
    elements.
    """

    name: str
    short: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    requires_grad: bool
    base: int = -1


@dataclass(frozen=True, slots=True)
class ListedKernel:
    """What operations of one kind do: a kernel, a copy, a write from the host, a function.

    file, line: its definition, "" and 0 for none. parameters: those that take arrays. reads,
    writes: positions among them; what is only added to counts as written.
    """

    kind: str
    name: str
    file: str
    line: int
    parameters: tuple[str, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListedOperation:
    """One record. index: among all records. launch: among the launches, -1 for what is none.

    kernel, site: positions in the listing's tables; site -1 where the call is not known.
    arrays: one for each parameter; -1 where None was passed.
    """

    index: int
    launch: int
    kernel: int
    dim: tuple[int, ...]
    arrays: tuple[int, ...]
    site: int = -1


@dataclass(frozen=True, slots=True)
class ListedScope:
    """A named group of records, `begin` to `end` (exclusive), nested `depth` deep."""

    name: str
    begin: int
    end: int
    depth: int


@dataclass(frozen=True, slots=True)
class TapeListing:
    """A tape. sites: files and lines of calls. seeded: arrays that a backward pass began at.

    records: how many there were; more than `operations` where some were left out.
    """

    arrays: tuple[ListedArray, ...]
    kernels: tuple[ListedKernel, ...]
    operations: tuple[ListedOperation, ...]
    sites: tuple[tuple[str, int], ...]
    scopes: tuple[ListedScope, ...]
    seeded: tuple[int, ...] = ()
    records: int = 0

    def inputs(self, operation: ListedOperation) -> list[int]:
        """The arrays that it reads."""
        return self._of(operation, self.kernels[operation.kernel].reads)

    def outputs(self, operation: ListedOperation) -> list[int]:
        """The arrays that it writes."""
        return self._of(operation, self.kernels[operation.kernel].writes)

    def _of(self, operation: ListedOperation, positions: Sequence[int]) -> list[int]:
        found = (operation.arrays[p] for p in positions)
        return list(dict.fromkeys(a for a in found if a >= 0))


def left_out(total: int, limit: int) -> range:
    """The operations in the middle that are left out where there are more than `limit`."""
    return range((limit + 1) // 2, total - limit // 2) if total > limit else range(0)


class Lister:
    """Makes a listing of records. keys: the arrays seen so far, with their positions."""

    def __init__(self) -> None:
        self.keys: dict[Key, int] = {}
        self._wants: list[bool] = []
        self._kernels: dict[ListedKernel, int] = {}
        self._plans: dict[int, int] = {}
        self._sites: dict[tuple[str, int], int] = {}
        self._operations: list[ListedOperation] = []
        self._functions: Mapping[int, Sequence[Any]] = {}
        self._records = 0

    def add(
        self, records: Sequence[Record], functions: Mapping[int, Sequence[Any]] | None = None,
        limit: int | None = None,
    ) -> None:  # fmt: skip
        """Lists records.

        functions: arrays of recorded functions by position, where the records have none.
        limit: how many operations to keep; those in the middle are left out.
        """
        self._functions = functions or {}
        total = self._records = len(records)
        gap = range(0) if limit is None else left_out(total, limit)
        launches = 0
        for i, r in enumerate(records):
            is_launch = r.kernel is not None
            if i not in gap:
                self._operations.append(self._operation(i, launches if is_launch else -1, r))
            launches += is_launch

    def done(self, scopes: Sequence[Scope], seeded: Sequence[Any], names: Names) -> TapeListing:
        """The listing. seeded: arrays or outlines that a backward pass began at."""
        began = tuple(dict.fromkeys(self.array(a) for a in seeded))
        groups = tuple(
            ListedScope(s.name, s.begin, self._records if s.end < 0 else s.end, s.depth)
            for s in scopes
        )
        return TapeListing(
            self._listed(names), tuple(self._kernels), tuple(self._operations),
            tuple(self._sites), groups, began, self._records,
        )  # fmt: skip

    def _operation(self, index: int, launch: int, r: Record) -> ListedOperation:
        arrays = list(self._functions.get(index, r.listed))
        return ListedOperation(
            index, launch, self._kernel(r, len(arrays)), r.dim,
            tuple(-1 if a is None else self.array(a) for a in arrays), self._site(r),
        )  # fmt: skip

    def _kernel(self, r: Record, count: int) -> int:
        """What an operation does. count: of its arrays."""
        launch = r.launch
        if launch is None:
            return self._kind(r, count)
        found = self._plans.get(id(launch.plan))
        if found is None:
            found = self._plans[id(launch.plan)] = self._kind(r, count)
        return found

    def _kind(self, r: Record, count: int) -> int:
        at, known = r.definition, r.describe(count)
        file, line = ("", 0) if at is None else (at.file, at.line)
        what = ListedKernel(
            known.kind, r.name, file, line, known.parameters, known.reads, known.writes
        )
        return self._kernels.setdefault(what, len(self._kernels))

    def array(self, a: Any) -> int:
        """The position of an array (or outline) among the listed ones, from now on."""
        key = key_of(a)
        found = self.keys.get(key)
        if found is None:
            found = self.keys[key] = len(self._wants)
            self._wants.append(False)
        if not self._wants[found] and a.requires_grad:
            self._wants[found] = True
        return found

    def _site(self, r: Record) -> int:
        if r._site is None:
            return -1
        place = (r._site.file, r._site.line)
        return self._sites.setdefault(place, len(self._sites))

    def _listed(self, names: Names) -> tuple[ListedArray, ...]:
        largest: dict[int, tuple[int, int]] = {}  # by root: bytes, and minus the position
        for key, number in self.keys.items():
            size = (key.nbytes, -number)
            largest[key.root] = max(largest.get(key.root, size), size)
        out = []
        for key, number in self.keys.items():
            base = -largest[key.root][1]
            long, short = names.get(key, ("", ""))
            out.append(
                ListedArray(
                    long, short, key.shape, key.dtype, key.nbytes, self._wants[number],
                    -1 if base == number else base,
                )
            )  # fmt: skip
        return tuple(out)
