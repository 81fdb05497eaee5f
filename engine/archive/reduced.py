"""Self-contained parts of an archive, for bug reports.

Each function gives another archive, and may put more contents into its store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from engine.archive.data import Archive, ArchiveError, HeldData, RecordData, Store, TapeData
from engine.archive.types import TypeReader
from engine.lang.structs import ElementType, value_leaves
from engine.lang.types import ArrayType, scalar_of, shape_of

Keep = Sequence[int]


def only(archive: Archive, tape: int, records: Keep) -> Archive:
    """One tape, with some of its operations.

    With fewer than all of them, what was seen of the whole is left out, and its backward pass too.
    Raises ArchiveError where there is no such tape or operation.
    """
    if not 0 <= tape < len(archive.tapes):
        raise ArchiveError(f"there is no tape {tape}")
    t = archive.tapes[tape]
    if not records or not all(0 <= x < len(t.records) for x in records):
        raise ArchiveError(f"tape {tape} has {len(t.records)} operations")
    if len(set(records)) == len(t.records):
        return compact(replace(archive, tapes=(t,)))
    kept = tuple(t.records[x] for x in sorted(set(records)))
    return compact(
        replace(archive, tapes=(TapeData(kept, t.arrays, None, 0, contents=t.contents),))
    )


def with_dim(archive: Archive, record: int, dim: tuple[int, ...]) -> Archive:
    """The only tape's launch over another grid."""
    (t,) = archive.tapes
    changed = replace(t.records[record], dim=dim)
    return _with(archive, replace(t, records=_put(t.records, record, changed)))


def with_length(archive: Archive, store: Store, array: int, axis: int, length: int) -> Archive:
    """The only tape's array shorter along an axis: its first elements stay."""
    (t,) = archive.tapes
    a = t.arrays[array]
    shape = (*a.shape[:axis], length, *a.shape[axis + 1 :])
    cut = (slice(None),) * axis + (slice(length),)
    contents = tuple(
        _changed(archive, store, h, lambda x: x[cut]) if h.array == array else h for h in t.contents
    )
    arrays = _put(t.arrays, array, replace(a, shape=shape))
    return _with(archive, replace(t, arrays=arrays, contents=contents))


def with_contents(
    archive: Archive, store: Store, held: int, f: Callable[[np.ndarray[Any, Any]], Any]
) -> Archive:
    """The only tape with other contents of an array, of the same shape and type."""
    (t,) = archive.tapes
    changed = _changed(archive, store, t.contents[held], f)
    return _with(archive, replace(t, contents=_put(t.contents, held, changed)))


def _changed(
    archive: Archive, store: Store, h: HeldData, f: Callable[[np.ndarray[Any, Any]], Any]
) -> HeldData:
    if h.why:
        return h
    (t,) = archive.tapes
    a = t.arrays[h.array]
    forms = _forms(TypeReader(archive.structs).element(a.element))
    digests = []
    for digest, (inner, dtype) in zip(h.digests, forms, strict=True):
        was = store.get(digest, a.shape + inner, dtype)
        digests.append(store.put(np.ascontiguousarray(f(was))))
    return replace(h, digests=tuple(digests))


def _forms(element: ElementType) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    """Of each leaf of an element: the shape of its components, and their type."""
    found = []
    for x in value_leaves(element):
        assert not isinstance(x.type, ArrayType)
        found.append((shape_of(x.type), scalar_of(x.type).numpy))
    return found


def _with(archive: Archive, tape: TapeData) -> Archive:
    return replace(archive, tapes=(tape,))


def _put(items: tuple[Any, ...], k: int, item: Any) -> tuple[Any, ...]:
    return (*items[:k], item, *items[k + 1 :])


# ---- what nothing names


def compact(archive: Archive) -> Archive:
    """The archive without arrays, contents, kernels, functions and files that nothing names."""
    tapes = tuple(_compact_tape(t) for t in archive.tapes)
    kernels = _Kept(r.kernel for t in tapes for r in t.records)
    used = [archive.kernels[k] for k in kernels.order]
    functions = _Kept(_needed(archive, [k.function for k in used]))
    moved = tuple(
        replace(
            f, grad=functions.of(f.grad), replay=functions.of(f.replay),
            body=_calls(f.body, functions),
        )
        for f in (archive.functions[k] for k in functions.order)
    )  # fmt: skip
    found = replace(
        archive, functions=moved, kernels=tuple(replace(k, function=functions.of(k.function))
                                                for k in used),
        tapes=tuple(replace(t, records=tuple(replace(r, kernel=kernels.of(r.kernel))
                                             for r in t.records)) for t in tapes),
    )  # fmt: skip
    return _compact_files(found)


class _Kept:
    """Numbers that are kept, in order, and their new ones."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.order = sorted({n for n in numbers if n >= 0})
        self._new = {n: k for k, n in enumerate(self.order)}

    def of(self, number: int) -> int:
        return self._new.get(number, -1)


def _compact_tape(t: TapeData) -> TapeData:
    b = t.backward
    held = _Kept([
        *(a.held for r in t.records for a in r.arguments), *(r.source for r in t.records),
        *(x.held for x in (b.changed if b else ())),
    ])  # fmt: skip
    contents = [t.contents[k] for k in held.order]
    arrays = _Kept([
        *(a.array for r in t.records for a in r.arguments), *(h.array for h in contents),
        *(k for r in t.records for k in (*r.arrays, *r.written)), *(b.seeded if b else ()),
    ])  # fmt: skip

    def moved(r: RecordData) -> RecordData:
        return replace(
            r, source=held.of(r.source),
            arguments=tuple(replace(a, array=arrays.of(a.array), held=held.of(a.held))
                            for a in r.arguments),
            arrays=tuple(map(arrays.of, r.arrays)), written=tuple(map(arrays.of, r.written)),
        )  # fmt: skip

    return replace(
        t, records=tuple(map(moved, t.records)), arrays=tuple(t.arrays[k] for k in arrays.order),
        contents=tuple(replace(h, array=arrays.of(h.array)) for h in contents),
        backward=None if b is None else replace(
            b, seeded=tuple(map(arrays.of, b.seeded)),
            changed=tuple(replace(x, held=held.of(x.held)) for x in b.changed),
        ),
    )  # fmt: skip


def _needed(archive: Archive, numbers: Iterable[int]) -> set[int]:
    found: set[int] = set()
    todo = [n for n in numbers if n >= 0]
    while todo:
        n = todo.pop()
        if n not in found:
            found.add(n)
            f = archive.functions[n]
            todo += [x for x in (f.grad, f.replay, *_called(f.body)) if x >= 0]
    return found


def _called(body: Iterable[Any]) -> Iterable[int]:
    for s in body:
        yield s.func
        for block in s.blocks:
            yield from _called(block)


def _calls(body: tuple[Any, ...], kept: _Kept) -> tuple[Any, ...]:
    return tuple(
        replace(s, func=kept.of(s.func), blocks=tuple(_calls(b, kept) for b in s.blocks))
        for s in body
    )


def _compact_files(archive: Archive) -> Archive:
    """Facts name files by their names, all else by numbers."""
    named: set[str] = set()
    used: set[int] = set()
    _files(archive.functions, used, named)
    _files(archive.tapes, used, named)
    names = {f: k for k, f in enumerate(archive.files)}
    kept = _Kept(used | {names[f] for f in named if f in names})

    def moved(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(moved(v) for v in x)
        if is_dataclass(x) and not isinstance(x, type):
            changes: dict[str, Any] = {}
            for f in fields(x):
                v = getattr(x, f.name)
                if f.name in ("span", "site") and isinstance(v, tuple):
                    changes[f.name] = (kept.of(v[0]), *v[1:])
                elif isinstance(v, tuple) or is_dataclass(v):
                    changes[f.name] = moved(v)
            return replace(x, **changes)
        return x

    return replace(
        archive, files=tuple(archive.files[k] for k in kept.order),
        functions=moved(archive.functions), tapes=tuple(map(moved, archive.tapes)),
    )  # fmt: skip


def _files(x: Any, used: set[int], named: set[str]) -> None:
    if isinstance(x, tuple):
        for v in x:
            _files(v, used, named)
    elif is_dataclass(x) and not isinstance(x, type):
        for f in fields(x):
            v = getattr(x, f.name)
            if f.name in ("span", "site") and isinstance(v, tuple):
                used.add(v[0])
            elif f.name == "file" and isinstance(v, str):
                named.add(v)
            elif isinstance(v, tuple) or is_dataclass(v):
                _files(v, used, named)
