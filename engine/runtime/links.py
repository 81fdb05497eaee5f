"""Arrays in structs in arrays: the array that a record refers to.

The memory of an array of structs holds descriptors: addresses, shapes, strides. Kernels get a
*pool* for each field that is for an array: the elements of all these arrays one after the other,
and a table of places in it. What is copied to a pool is recorded on the tape as any copy is, and
what a kernel changed there is copied back, so gradients find the way to the arrays themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from engine.classes import dataclass
from engine.lang.structs import (
    IndexedArrayType,
    LinkType,
    StructArrayType,
    StructType,
    places,
)
from engine.lang.types import UINT8, ArrayType, ScalarType
from engine.lang.vectors import vector_class
from engine.runtime import events
from engine.runtime.annotation import element_info
from engine.runtime.base import ArrayBase, may_meet
from engine.runtime.blocks import Block, Leave
from engine.runtime.launch_errors import fail
from engine.runtime.leaves import leaf_array
from engine.runtime.transfer import check_writable, copy, move

if TYPE_CHECKING:
    from engine.runtime.array import array
    from engine.runtime.plan import Plan
    from engine.runtime.relinks import Relinks

NumpyArray = np.ndarray[Any, Any]

# Arrays whose descriptors somebody has asked for.
_described: WeakValueDictionary[tuple[Any, ...], array] = WeakValueDictionary()


def descriptor(a: Any) -> tuple[Any, ...]:
    """Address, address of the gradient, shape, strides, dimensions; as records hold an array.

    An indexed array has a number of its own for an address.
    """
    if isinstance(getattr(a, "_ir", None), IndexedArrayType):
        nothing = (0,) * a.ndim
        _described[a.number, a.shape, nothing, a._ir] = a
        pad = [0] * (4 - a.ndim)
        return (a.number, 0, [*a.shape, *pad], [0] * 4, a.ndim)
    if not isinstance(a, ArrayBase):
        return (0, 0, [0] * 4, [0] * 4, 0)
    pad = [0] * (4 - a.ndim)
    grad = a.existing_grad
    _described[a.ptr, a.shape, a.strides, a._ir] = a  # type: ignore[assignment]
    return (a.ptr, 0 if grad is None else grad.ptr, [*a.shape, *pad], [*a.strides, *pad], a.ndim)


def array_at(t: LinkType, record: Any, field: str = "") -> array | None:
    """The array that a descriptor is of. Raises LaunchError (E206) where it is gone."""
    n = int(record["ndim"])
    if n == 0:
        return None
    shape, strides = (tuple(record[x].tolist()[:n]) for x in ("shape", "strides"))
    found = _described.get((int(record["data"]), shape, strides, t)) if n == t.ndim else None
    if found is None:
        raise fail("E206", f"field {field!r} of a struct in an array refers to an array that is "
                   "gone", help="keep the arrays in variables as long as records of them are "
                   "used, or make the array of a list of structs, which keeps them")  # fmt: skip
    return found


def from_record(kind: StructType, record: Any) -> Any:
    """The value that an element of a NumPy record array holds."""
    out = kind.cls()
    for f, t in kind.fields.items():
        part = record[f]
        if isinstance(t, StructType):
            out.__dict__[f] = from_record(t, part)
        elif isinstance(t, ScalarType):
            out.__dict__[f] = part.item()
        elif isinstance(t, (ArrayType, StructArrayType, IndexedArrayType)):
            out.__dict__[f] = array_at(t, part, f)
        else:
            out.__dict__[f] = vector_class(t)._of(part)
    return out


def keep(a: ArrayBase) -> None:
    """To be called when the host has put records there: arrays in them live as long as these."""
    kind = a._info.kind
    if not isinstance(kind, StructType) or not kind.linked or a.size == 0:
        return
    kept = a.storage.kept = a.storage.kept or {}
    steps = np.indices(a.shape, np.int64).reshape(a.ndim, -1).T @ np.array(a.strides, np.int64)
    for _, t, offset, records in _fields(kind, a._host()):
        for at, record in zip(steps, records.ravel(), strict=True):
            try:
                kept[a.ptr + int(at) + offset] = array_at(t, record)
            except Exception:  # told where it is used
                kept.pop(a.ptr + int(at) + offset, None)


Field = tuple[str, LinkType, int, NumpyArray]


def _fields(kind: StructType, records: NumpyArray, offset: int = 0) -> Iterator[Field]:
    """Fields for arrays: name, type, offset, and the descriptors in records."""
    for f, t in kind.fields.items():
        at = offset + kind.offsets[f]
        if isinstance(t, StructType):
            yield from _fields(t, records[f], at)
        elif isinstance(t, (ArrayType, StructArrayType, IndexedArrayType)):
            yield f, t, at, records[f]


@dataclass(frozen=True, slots=True)
class Slot:
    """A field for an array, of the structs in an array, and the table of places that a launch got.

    root, owner: the argument, and the array of structs. offset: in the struct. rows: what the table
    said at first. starts: by identity, where `arrays` begin in the pool.
    """

    root: str
    owner: array
    offset: int
    table: array
    rows: Sequence[Sequence[int]]
    starts: dict[int, int]
    arrays: Sequence[array]


@dataclass(slots=True)
class Pool:
    """Copies of arrays one after the other. parts: each array, and where it is.

    changed: whether the kernel writes there.
    """

    elements: array
    parts: Sequence[tuple[array, array]]
    changed: bool = False


class Gathered(Block):
    """What a launch has in place of arrays in structs in arrays, while it is bound and after.

    taped: whether copies are recorded on the active tape. plan: of a kernel that makes fields hold
    other arrays. held: by groups of pools that are one, the arrays in it. slots: of such fields.
    """

    def __init__(self, taped: bool) -> None:
        self.taped = taped
        self.pools: list[Pool] = []
        self.relinks: Relinks | None = None
        self.looking = False  # for what is held; nothing is copied yet
        self.held: dict[int, list[array]] = {}
        self.slots: dict[str, Slot] = {}
        self.given: Sequence[Any] = ()  # the arguments
        self.root = ""  # which of them, or which array in one, is being spread
        self._joined: dict[int, tuple[list[array], dict[int, int]]] = {}
        self._token: Token[Gathered | None] | None = None

    def __enter__(self) -> Gathered:
        self._token = _gathering.set(self)
        return self

    @Leave
    def __exit__(self, *exc: object) -> None:
        self._end()

    def _end(self) -> None:
        if _gathering.get() is self:
            _gathering.set(None) if self._token is None else _gathering.reset(self._token)
        self._token = self._watch = None

    def move(self, dest: array, src: array) -> None:
        """Copies elements; at once too where a graph is captured, for what is to be read there."""
        token = None if self.taped else events.pause_tapes()
        try:
            copy(dest, src)
        finally:
            if token is not None:
                events.resume_tapes(token)
        if events.graph() is not None:
            _move(dest, src)

    def check(self, plan: Plan, values: Sequence[Any]) -> None:
        """Raises LaunchError (E206) where copies would not be what the kernel means."""
        written = [values[i] for i in plan.writes if values[i] is not None]
        changed = {id(a if a._whole is None else a._whole) for a in written}
        others = [(values[p.index], p.name, p.index in plan.writes) for p in plan.array_params]
        for pool in self.pools:
            pool.changed = id(pool.elements) in changed
            meant = [(a, name) for a, name, w in others if a is not None and (w or pool.changed)]
            last: array | None = None
            fields = [(_behind(field), field) for field, _ in pool.parts]
            for field, own in sorted(fields, key=lambda part: part[0].lo):
                meets = [name for a, name in meant if may_meet(field, a)]
                if pool.changed:
                    check_writable(field)
                    _check_once(plan, own)
                if meets or (pool.changed and last is not None and last.hi > field.lo):
                    raise _shared(plan, meets)
                last = field
        self._check_apart(plan, values)

    def _check_apart(self, plan: Plan, values: Sequence[Any]) -> None:
        """The same of two pools, one of which the kernel changes."""
        used: dict[int, str] = {}
        for i in (*plan.reads, *plan.writes):
            a = values[i]
            if a is not None:
                used[id(a if a._whole is None else a._whole)] = plan.params[i].name
        pools = [pool for pool in self.pools if id(pool.elements) in used]
        if len(pools) < 2 or not any(pool.changed for pool in pools):
            return
        fields = [(_behind(field), pool) for pool in pools for field, _ in pool.parts]
        before: list[tuple[array, Pool]] = []
        for field, pool in sorted(fields, key=lambda part: part[0].lo):
            before = [part for part in before if part[0].hi > field.lo]
            for other, owner in before:
                changes = owner is not pool and (owner.changed or pool.changed)
                if changes and may_meet(other, field):
                    raise _shared(plan, [used[id(pool.elements)]])
            before.append((field, pool))

    def pool(
        self, a: array, t: LinkType, held: Sequence[array], path: str
    ) -> tuple[list[array], dict[int, int]]:
        """The leaves of the pool of a field, and where those that it holds begin there."""
        group = None if self.relinks is None else self.relinks.groups.get(path)
        if group is not None and group in self._joined:
            return self._joined[group]
        if group is None or self.relinks is None:
            pool, starts = _pool(a, t, held, self)
        else:
            used = group in self.relinks.used
            pool, starts = _pool(a, t, self.held.get(group, []), self, True, used)
        leaves = spread(pool, path) if isinstance(t, StructArrayType) else [pool]
        if group is not None:
            self._joined[group] = leaves, starts
        return leaves, starts

    def note(
        self, path: str, owner: array, offset: int, table: array, rows: Sequence[Sequence[int]]
    ) -> None:
        """Remembers the table of a field, where the kernel makes such fields hold other arrays."""
        if self.relinks is None:
            return
        group = self.relinks.groups.get(path, -1)
        held = self.held.get(group, [])
        self.slots[path] = Slot(self.root, owner, offset, table, rows, self.starts(group), held)

    def starts(self, group: int) -> dict[int, int]:
        """Where, by identity, arrays begin in a pool."""
        return self._joined[group][1] if group in self._joined else {}

    def give_back(self) -> None:
        """Copies what a kernel changed to where it came from."""
        for pool in self.pools:
            for field, part in pool.parts if pool.changed else ():
                self.move(field, part)


def _behind(a: Any) -> array:
    """The array that has the memory."""
    found: array = a.data if isinstance(a._ir, IndexedArrayType) else a
    return found


def _move(dest: Any, src: Any) -> None:
    """Copies elements. Nobody is told of the write."""
    if isinstance(dest._ir, IndexedArrayType):
        dest.store(src._host())
    elif isinstance(src._ir, IndexedArrayType):
        dest._put(src.numpy())
    else:
        move(dest, src)


def _check_once(plan: Plan, a: Any) -> None:
    """Raises LaunchError (E206) for an indexed array that shows an element more than once."""
    if isinstance(a._ir, IndexedArrayType):
        for indices in a.indices:
            if indices is not None and np.unique(indices._host()).size < indices.size:
                raise fail("E206", f"kernel {plan.kernel.key!r} changes an indexed array in a "
                           "struct in an array, which shows an element more than once",
                           help="pass it as a separate argument")  # fmt: skip


def _shared(plan: Plan, meets: Sequence[str]) -> Exception:
    with_what = f"argument {meets[0]!r}" if meets else "another such array"
    return fail("E206", f"kernel {plan.kernel.key!r}: an array in a struct in an array shares "
                f"memory with {with_what}, and the kernel changes it",
                help="pass arrays that do not overlap, or a copy of one")  # fmt: skip


_gathering: ContextVar[Gathered | None] = ContextVar("engine_gathering", default=None)


@contextmanager
def gathering(relinks: Relinks) -> Iterator[Gathered]:
    """What arrays of structs are spread for: the launch that is being bound, else nothing."""
    to = _gathering.get()
    with nullcontext() if to is not None else Gathered(False) as made:
        found = to or made
        assert found is not None
        found.relinks = relinks
        yield found


def spread(a: array, path: str) -> list[array]:
    """The leaves of an array of structs as kernels get them. Raises LaunchError (E206).

    path: the name of the argument, or of the field in it.
    """
    kind = a._ir.element
    out: list[array] = []
    to = _gathering.get() or Gathered(False)
    before, to.root = to.root, path
    _spread(a, kind, 0, a._host() if kind.linked else None, to, out, path)
    to.root = before
    return out or [a._field(element_info(UINT8), 0)]


def _spread(
    a: array, kind: StructType, offset: int, records: Any, to: Gathered, out: list[array], path: str
) -> None:
    for f, t in kind.fields.items():
        at, here = offset + kind.offsets[f], f"{path}.{f}"
        if isinstance(t, StructType):
            _spread(a, t, at, records[f] if t.linked else None, to, out, here)
        elif isinstance(t, (ArrayType, StructArrayType, IndexedArrayType)):
            held = [array_at(t, r, f) for r in records[f].ravel()]
            there = [x for x in held if x is not None]
            if to.looking:
                if to.relinks is not None and (group := to.relinks.groups.get(here)) is not None:
                    to.held.setdefault(group, []).extend(there)
                continue
            leaves, starts = to.pool(a, t, there, here)
            out += leaves
            rows = [[0] * (1 + t.ndim) if x is None else [starts[id(x)], *x.shape] for x in held]
            table = type(a)._allocate(a.shape, places(t), False, a.device)
            if rows:
                table._put(np.array(rows, np.int32).reshape(table._parts.shape))
            out.append(table)
            to.note(here, a, at, table, rows)
        else:
            out.append(leaf_array(a, t, at))


def _pool(
    a: array,
    t: LinkType,
    held: Sequence[array],
    to: Gathered,
    joined: bool = False,
    used: bool = True,
) -> tuple[array, dict[int, int]]:
    """The elements of arrays one after the other, and where those of each begin.

    joined: for several fields, of which one may hold no array: none begins at 0. used: False for a
    pool of which the kernel reads and writes no element, and which has none.
    """
    starts: dict[int, int] = {}
    once: dict[object, tuple[int, array]] = {}
    total = int(joined)
    for x in held:
        plain = not x.requires_grad and not isinstance(t, IndexedArrayType)
        key = (x.ptr, x.shape, x.strides) if plain else id(x)
        if key not in once:
            once[key] = total, x
            total += x.size
        starts[id(x)] = once[key][0]
    first = held[0] if len(once) == 1 and not joined else None
    if first is not None and first.is_contiguous:
        return first if first.ndim == 1 else first.flatten(), starts
    if not used:
        return type(a)._allocate((0,), t.element, False, a.device), starts
    pool = type(a)._allocate((total,), t.element, False, a.device)
    pool.requires_grad = any(x.requires_grad for x in held)
    parts = [(x, pool[n : n + x.size].reshape(x.shape)) for n, x in once.values() if x.size]
    for x, part in parts:
        to.move(part, x)
    to.pools.append(Pool(pool, parts))
    return pool, starts
