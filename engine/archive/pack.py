"""Converts captured tapes to data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine import config
from engine.archive.code_writer import CodeWriter
from engine.archive.data import (
    Archive,
    ArgumentData,
    ArrayData,
    BackwardData,
    HeldData,
    OtherData,
    RecordData,
    Sink,
    TapeData,
)
from engine.archive.numbers import texts
from engine.archive.places import FileTable
from engine.archive.types import TypeWriter
from engine.autograd.tape.memory import placements
from engine.lang.types import FLOAT64, ArrayType
from engine.tape.capture import CapturedTape
from engine.tape.captured_pass import Backward
from engine.tape.naming import variable
from engine.tape.outline import Outline
from engine.tape.records import LaunchRecord
from engine.tape.records.record import OFF, Record

_FIRST = 1 << 20  # address of the first array of a tape
_ALIGN = 256  # of what does not share memory


class NotPacked(Exception):
    """Why tapes cannot be packed: their contents would take too much."""


def pack(
    tapes: Sequence[CapturedTape], store: Sink, rename: Callable[[str], str] = str,
    limit: int = 1 << 62,
) -> tuple[Archive, dict[str, str]]:  # fmt: skip
    """Captured tapes as data, and for each file that they name what the program called it.

    store: gets the contents of arrays. rename: what a file is called in the archive. limit: of
    the bytes of these contents. The same program gives the same archive: addresses count from
    the tape's first array. Raises NotPacked.
    """
    files, types = FileTable(rename), TypeWriter()
    code = CodeWriter(files, types)
    budget = _Budget(store, limit)
    data = tuple(_Tape(t, code, files, types, budget).data() for t in tapes)
    archive = Archive(
        tuple(files.files), tuple(types.structs), tuple(code.functions), tuple(code.kernels), data,
        config.overwrites,
    )  # fmt: skip
    return archive, dict(zip(files.files, files.originals, strict=True))


class _Budget:
    """Hands contents to a store, up to a limit."""

    def __init__(self, store: Sink, limit: int) -> None:
        self._store, self._left = store, limit

    def put(self, values: np.ndarray[Any, Any]) -> str:
        self._left -= values.nbytes
        if self._left < 0:
            raise NotPacked("the contents of its arrays are too large")
        return self._store.put(values)


class _Tape:
    def __init__(
        self, tape: CapturedTape, code: CodeWriter, files: FileTable, types: TypeWriter,
        budget: _Budget,
    ) -> None:  # fmt: skip
        self._tape, self._code, self._files, self._types = tape, code, files, types
        self._budget = budget
        self._outlines: list[Outline] = []
        self._numbers: dict[int, int] = {}
        self._contents: list[HeldData] = []
        self._held: dict[tuple[int, int], int] = {}
        self._holds: list[Any] = []  # kept alive, as they are known by their ids

    def data(self) -> TapeData:
        tape = self._tape
        records = tuple(self._record(r) for r in tape.records)
        b = tape.first_backward
        backward = None if b is None else self._backward(b)
        facts = tuple(map(self._files.within, tape.facts))
        return TapeData(
            records, self._arrays(), backward, tape.passes, facts, tuple(self._contents)
        )

    # ---- arrays

    def _array(self, a: Any) -> int:
        if a is None:
            return -1
        found = self._numbers.get(id(a))
        if found is None:
            found = self._numbers[id(a)] = len(self._outlines)
            self._outlines.append(a)
        return found

    def _arrays(self) -> tuple[ArrayData, ...]:
        """The arrays, with addresses that count from the first, as far as they share memory."""
        starts = _moved([(a.lo, a.hi) for a in self._outlines])
        roots: dict[int, int] = {}
        out = []
        for a, start in zip(self._outlines, starts, strict=True):
            root = roots.setdefault(a.root, len(roots))
            element = self._types.text(a._info.kind)
            out.append(
                ArrayData(start + a.ptr - a.lo, a.shape, a.strides, element, a.requires_grad, root)
            )
        return tuple(out)

    def _keep(self, a: Any, hold: Any) -> int:
        """The number of what an array held."""
        key = self._array(a), id(hold)
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = len(self._contents)
            self._holds.append(hold)
            self._contents.append(self._held_data(a, hold, key[0]))
        return found

    def _held_data(self, a: Any, hold: Any, number: int) -> HeldData:
        if hold is None or hold.lost:
            return HeldData(number, why=OFF if hold is None else hold.lost)
        digests = []
        for p in placements(a, 0):
            shape, strides = p.shape + p.info.inner, p.strides + p.info.steps
            values = hold.read(p.ptr, shape, strides, p.info.numpy)
            digests.append(self._budget.put(values))
        return HeldData(number, tuple(digests))

    # ---- records

    def _record(self, r: Record) -> RecordData:
        site = self._files.place(r.site)
        launch = r.launch
        if launch is not None:
            return self._launch(launch, site)
        linear = r.linear
        if linear is None:  # code of Python does not travel
            return RecordData("function", r.name, site)
        numbers = [ArgumentData(numbers=texts(x, FLOAT64)) for x in linear.numbers]
        source = -1 if linear.source is None else self._keep(linear.src, linear.source)
        return RecordData(
            linear.kind, r.name, site, arguments=tuple(numbers),
            arrays=tuple(self._array(a) for a in r.arrays),
            written=tuple(self._array(a) for a in r.written), source=source,
        )  # fmt: skip

    def _launch(self, r: LaunchRecord, site: Any) -> RecordData:
        kernel = self._code.kernel(r.plan)
        arguments = []
        for p, value in zip(r.plan.params, r.values, strict=True):
            if p.array_kind is None:
                assert not isinstance(p.kind, ArrayType)
                arguments.append(ArgumentData(numbers=texts(_components(value), p.kind),
                                              passed=variable(r, p.index)))  # fmt: skip
                continue
            known = value is not None and p.index in r.plan.held
            held = self._keep(value, r.holds.get(p.index)) if known else -1
            arguments.append(
                ArgumentData(self._array(value), held=held, passed=variable(r, p.index))
            )
        return RecordData(
            "launch", r.name, site, kernel, tuple(r.dim), tuple(arguments), r.input_count,
            tuple(sorted(r.wrt)), tuple(sorted(r.aliased)), in_order=r.in_order,
        )  # fmt: skip

    def _backward(self, b: Backward) -> BackwardData:
        changed = []
        for (position, i), hold in b.changed.items():
            a = self._tape.records[position].args[i]  # type: ignore[attr-defined]
            changed.append(OtherData(position, i, self._keep(a, hold)))
        read = []
        for (position, i), (where, values) in b.read.items():
            digests = self._budget.put(np.asarray(where)), self._budget.put(np.asarray(values))
            read.append(OtherData(position, i, -1, *digests, len(values)))
        return BackwardData(
            b.records, tuple(self._array(a) for a in b.seeded), b.restored, tuple(changed),
            tuple(read),
        )  # fmt: skip


def _components(value: Any) -> Any:
    """A value of an argument as nested numbers, or a number."""
    if isinstance(value, (bool, int, float, np.generic)):
        return value.item() if isinstance(value, np.generic) else value
    found = np.asarray(value)
    return found.item() if found.ndim == 0 else tuple(found.reshape(-1).tolist())


def _moved(extents: Sequence[tuple[int, int]]) -> list[int]:
    """New lowest addresses: what overlaps stays as it lies, in order of first use."""
    order = sorted(range(len(extents)), key=lambda k: extents[k])
    stretch = [0] * len(extents)
    spans: list[list[int]] = []
    for k in order:
        lo, hi = extents[k]
        if spans and lo < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], hi)
        else:
            spans.append([lo, hi])
        stretch[k] = len(spans) - 1
    bases: dict[int, int] = {}
    at = _FIRST
    for k in range(len(extents)):
        s = stretch[k]
        if s not in bases:
            lo, hi = spans[s]
            shift = lo % _ALIGN % 16
            bases[s] = at + shift
            at = (bases[s] + max(hi - lo, 1) + _ALIGN - 1) // _ALIGN * _ALIGN
    return [bases[stretch[k]] + extents[k][0] - spans[stretch[k]][0] for k in range(len(extents))]
