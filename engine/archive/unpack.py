"""Converts data to captured tapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from engine.archive.code_reader import CodeReader, UntrustedCode
from engine.archive.data import (
    Archive,
    ArchiveError,
    ArgumentData,
    ArrayData,
    HeldData,
    OtherData,
    Place,
    RecordData,
    Supply,
    TapeData,
)
from engine.archive.numbers import components
from engine.archive.places import FileReader
from engine.archive.types import TypeReader
from engine.autograd.tape.memory import placements
from engine.classes import dataclass
from engine.diagnostics import UNKNOWN, EngineError, Span
from engine.diagnostics.site import Site
from engine.lang.strided import byte_range
from engine.lang.types import FLOAT64, ArrayType, ValueType, shape_of
from engine.lang.values import value_class
from engine.runtime.annotation import MAX_DIMS, element_info
from engine.runtime.base import HEADER
from engine.runtime.kernel import Kernel
from engine.runtime.plan import Plan
from engine.runtime.storage import Hold
from engine.tape.capture import Capture, CapturedTape
from engine.tape.captured_pass import Backward
from engine.tape.outline import Outline
from engine.tape.records import FunctionRecord, kind_of
from engine.tape.records.captured import BarredLaunch, CapturedLaunch
from engine.tape.records.record import Record

_ADDRESS = 1 << 62
_THREADS = 1 << 62
TRUST = "it runs C++ code of the capture, in `{}`, which is compiled only on request"


def unpack(archive: Archive, store: Supply, *, trust: bool = False, limit: int = 1 << 40
           ) -> list[CapturedTape]:  # fmt: skip
    """The tapes of an archive, ready for `engine.autograd.check_tape`.

    store: has the contents of arrays, which are asked for when they are needed. trust: whether C++
    text in the archive may be compiled; launches of kernels that have some are skipped else.
    limit: of the bytes that the arrays of a tape may take up.

    Raises:
        ArchiveError: something in it names nothing, does not fit, or is too large.
    """
    try:
        return _unpacked(archive, store, trust, limit)
    except _ASTRAY as error:  # what nobody thought of, deep inside of the engine
        raise ArchiveError(f"it is damaged ({type(error).__name__}: {str(error)[:80]})") from None


_ASTRAY = (
    RecursionError, LookupError, AssertionError, TypeError, AttributeError, ArithmeticError,
    MemoryError, NotImplementedError,
)  # fmt: skip


def _unpacked(archive: Archive, store: Supply, trust: bool, limit: int) -> list[CapturedTape]:
    files, types = FileReader(archive.files), TypeReader(archive.structs)
    code = CodeReader(archive.functions, files, types, trust)
    plans: list[Plan | BareKernel] = []
    for number, k in enumerate(archive.kernels):
        try:
            plans.append(BareKernel(code.bare(k), UNKNOWN, k.why[:400]) if k.why else code.plan(k))
        except UntrustedCode as why:
            plans.append(BareKernel(code.bare(k), why.span, TRUST.format(why)))
        except ArchiveError as error:
            raise ArchiveError(f"kernel {number}: {error}") from None
    capture = Capture(open=False)
    for number, t in enumerate(archive.tapes):
        try:
            capture.tapes.append(_Tape(t, plans, files, types, store, limit).made(number, capture))
        except ArchiveError as error:
            raise ArchiveError(f"tape {number}: {error}") from None
        except EngineError as error:
            raise ArchiveError(f"tape {number}: {error.diagnostics[0].message}") from None
    return capture.tapes


@dataclass(frozen=True, slots=True)
class BareKernel:
    """A kernel that cannot be run. span: its definition, as far as known; why: the reason."""

    kernel: Kernel
    span: Span
    why: str


class ArchivedSite(Site):
    """A call whose place is known, and no more of it."""

    __slots__ = ()

    def __init__(self, span: Span) -> None:
        self._span = span
        self.line = span.line
        self.code = cast(Any, None)
        self.instruction = 0

    @property
    def file(self) -> str:
        """The file of the call."""
        return self.span.file


class ArchivedOutline(Outline):
    """An array as an archive describes it."""

    __slots__ = ()

    def __init__(self, data: ArrayData, types: TypeReader) -> None:
        info = element_info(types.element(data.element))
        shape, strides = data.shape, data.strides
        if not 1 <= len(shape) <= MAX_DIMS or len(strides) != len(shape):
            raise ArchiveError(f"an array has {len(shape)} dimensions and {len(strides)} strides")
        if min(shape) < 0 or math.prod(shape) >= _ADDRESS // info.size:
            raise ArchiveError(f"no array has the shape {shape}")
        if not all(abs(s) < _ADDRESS for s in strides):
            raise ArchiveError("a stride is out of range")
        self.ptr, self.shape, self.strides = data.address, shape, strides
        self.lo, self.hi = byte_range(self.ptr, shape, strides, info.size)
        if not 0 < self.lo <= self.hi < _ADDRESS:
            raise ArchiveError("an address is out of range")
        self.size = math.prod(shape)
        self._info = info
        self._packed = HEADER[len(shape)](self.ptr, *shape, *strides)
        self._flag = data.requires_grad and info.floating
        self.root = data.root
        self._array = cast(Any, _nothing)
        self._key = None
        self._geometry = None


def _nothing() -> None:
    return None


class KeptHold(Hold):
    """What an array held, in a store."""

    __slots__ = ("_digests", "_store", "_why")

    def __init__(self, a: ArchivedOutline, data: HeldData, store: Supply) -> None:
        parts = placements(a, 0)
        if not data.why and len(data.digests) != len(parts):
            raise ArchiveError("contents of an array are missing")
        self.storage, self.unseen, self.version = None, False, 0
        self.lo, self.hi, self.start, self.end = a.lo, a.hi, a.lo, a.hi
        self.chunks, self._lost = (), data.why[:400]
        self._store = store
        self._digests = {
            (p.ptr, p.shape + p.info.inner, p.strides + p.info.steps): (digest, p.info.numpy)
            for p, digest in zip(parts, data.digests, strict=False)
        }

    def read(self, ptr: int, shape: Any, strides: Any, dtype: Any) -> np.ndarray[Any, Any] | None:
        """A copy of the array, or of a field of it, as it was; None where it is lost."""
        found = self._digests.get((ptr, tuple(shape), tuple(strides)))
        if self._lost or found is None:
            return None
        return np.array(self._store.get(found[0], tuple(shape), found[1]))


class ArchivedLaunch(CapturedLaunch):
    """A launch of an archive. names: what the user passed for each parameter."""

    __slots__ = ("in_order", "names")
    in_order: bool

    def __init__(
        self, plan: Plan, dim: tuple[int, ...], values: list[Any], holds: dict[int, Hold],
        site: Site | None, data: RecordData,
    ) -> None:  # fmt: skip
        self.plan, self.dim, self.values = plan, dim, values
        self.held = tuple(map(holds.get, plan.held))
        self.blob, self.input_count = b"", data.inputs
        self._site, self.aliased = site, frozenset(data.aliased)
        mask = sum(1 << bit for bit, p in enumerate(plan.floats) if p.name in data.wrt)
        self.selection = plan.selection(mask, self.aliased)
        self.journal, self.stack_bytes = None, 0
        self.in_order = data.in_order
        self.names = [a.passed[:200] for a in data.arguments]


class _Tape:
    def __init__(
        self, data: TapeData, plans: Sequence[Plan | BareKernel], files: FileReader,
        types: TypeReader, store: Supply, limit: int,
    ) -> None:  # fmt: skip
        self._data, self._plans, self._files, self._store = data, plans, files, store
        self._outlines = [ArchivedOutline(a, types) for a in data.arrays]
        if sum(_bytes(a) for a in self._outlines) > limit:
            raise ArchiveError(f"its arrays take more than {limit} bytes")
        self._holds: dict[int, Hold] = {}

    def made(self, number: int, capture: Capture) -> CapturedTape:
        data = self._data
        records: list[Record] = []
        for position, r in enumerate(data.records):
            try:
                records.append(self._record(r))
            except ArchiveError as error:
                raise ArchiveError(f"operation {position}: {error}") from None
        tape = CapturedTape(number, capture, records, facts=list(self._files.known(data.facts)))
        tape.passes = data.passes
        tape.numbers = [0] * len(records)
        tape.source = None
        if data.backward is not None:
            tape.first_backward = self._backward(records)
        return tape

    # ---- arrays

    def _array(self, k: int) -> ArchivedOutline | None:
        if k == -1:
            return None
        if not 0 <= k < len(self._outlines):
            raise ArchiveError(f"there is no array {k}")
        return self._outlines[k]

    def _some(self, ks: Sequence[int]) -> list[Any]:
        out = [self._array(k) for k in ks]
        if None in out:
            raise ArchiveError("an array is missing")
        return out

    def _hold(self, k: int, a: Any) -> Hold:
        if not 0 <= k < len(self._data.contents):
            raise ArchiveError(f"there are no contents {k}")
        data = self._data.contents[k]
        if self._array(data.array) is not a or a is None:
            raise ArchiveError(f"contents {k} belong to another array")
        found = self._holds.get(k)
        if found is None:
            found = self._holds[k] = KeptHold(a, data, self._store)
        return found

    def _site(self, place: Place) -> Site | None:
        span = self._files.span(place)
        return None if span is None else ArchivedSite(span)

    # ---- records

    def _record(self, data: RecordData) -> Record:
        site = self._site(data.site)
        if data.kind == "launch":
            return self._launch(data, site)
        if data.kind == "function":
            return FunctionRecord(_named(data.name), [], site)
        return self._linear(data, site)

    def _linear(self, data: RecordData, site: Site | None) -> Record:
        try:
            kind = kind_of(data.kind)
        except KeyError:
            raise ArchiveError(f"there is no kind of operation {data.kind[:40]!r}") from None
        arrays, written = self._some(data.arrays), self._some(data.written)
        if len(arrays) != (1 if kind.from_host else 2) or len(written) != 1:
            raise ArchiveError(f"a {data.kind} of {len(arrays)} arrays")
        if written[0] is not arrays[0]:
            raise ArchiveError("it writes another array than it names")
        parts = [placements(a, 0) for a in arrays]
        if arrays[0].shape != arrays[-1].shape or len(parts[0]) != len(parts[-1]):
            raise ArchiveError(f"a {data.kind} of an array of another form")
        if any(p.info.inner != q.info.inner for p, q in zip(parts[0], parts[-1], strict=True)):
            raise ArchiveError(f"a {data.kind} of an array of another type")
        if len(data.arguments) != kind.constants:
            raise ArchiveError(f"a {data.kind} with {len(data.arguments)} numbers")
        numbers = [_value(x, FLOAT64) for x in data.arguments]
        source = None if data.source == -1 else self._hold(data.source, arrays[-1])
        src = None if kind.from_host else arrays[1]
        return kind(data.name, arrays[0], src, site, source, numbers)

    def _launch(self, data: RecordData, site: Site | None) -> Record:
        if not 0 <= data.kernel < len(self._plans):
            raise ArchiveError(f"there is no kernel {data.kernel}")
        plan, dim = self._plans[data.kernel], data.dim
        if not 1 <= len(dim) <= MAX_DIMS or min(dim) < 0 or math.prod(dim) >= _THREADS:
            raise ArchiveError(f"no launch has the dimensions {dim}")
        if isinstance(plan, BareKernel):
            return BarredLaunch(plan.kernel, dim, plan.span, plan.why, site)
        if len(data.arguments) != len(plan.params):
            raise ArchiveError(f"{len(data.arguments)} arguments of {len(plan.params)}")
        values, holds = [], {}
        for p, x in zip(plan.params, data.arguments, strict=True):
            if p.array_kind is None:
                values.append(_value(x, p.kind))
                continue
            a = self._array(x.array)
            if a is not None and (a._info.kind, len(a.shape)) != (
                p.array_kind.element, p.array_kind.ndim,
            ):  # fmt: skip
                raise ArchiveError(f"argument {p.name!r} is an array of another type")
            if a is None and p.index in plan.needed and 0 not in dim:
                raise ArchiveError(f"argument {p.name!r} is missing")
            values.append(a)
            if x.held != -1:
                holds[p.index] = self._hold(x.held, a)
        names = {p.name for p in plan.params}
        if not names.issuperset((*data.wrt, *data.aliased)):
            raise ArchiveError("it names a parameter that the kernel does not have")
        return ArchivedLaunch(plan, dim, values, holds, site, data)

    def _backward(self, records: Sequence[Record]) -> Backward:
        b = self._data.backward
        assert b is not None
        if not 0 <= b.records <= len(records):
            raise ArchiveError("its backward pass has more operations than the tape")
        changed = {self._key(x, records): self._other_hold(x, records) for x in b.changed}
        read = {self._key(x, records): self._other(x, records) for x in b.read}
        return Backward(b.records, tuple(self._some(b.seeded)), b.restored, changed, read)

    def _key(self, x: OtherData, records: Sequence[Record]) -> tuple[int, int]:
        self._argument(x, records)
        return x.record, x.parameter

    def _argument(self, x: OtherData, records: Sequence[Record]) -> ArchivedOutline:
        r = records[x.record] if 0 <= x.record < len(records) else None
        launch = None if r is None else r.launch
        if launch is not None and x.parameter in launch.plan.held:
            a = launch.values[x.parameter]
            if isinstance(a, ArchivedOutline):
                return a
        raise ArchiveError(f"operation {x.record} has no array {x.parameter}")

    def _other_hold(self, x: OtherData, records: Sequence[Record]) -> Hold:
        return self._hold(x.held, self._argument(x, records))

    def _other(self, x: OtherData, records: Sequence[Record]) -> tuple[Any, Any]:
        a = self._argument(x, records)
        (p,) = placements(a, 0)
        where = self._store.get(x.where, p.shape + p.info.inner, np.dtype(bool))
        if int(np.count_nonzero(where)) != x.count:
            raise ArchiveError(f"operation {x.record}: other values are missing")
        return where, self._store.get(x.values, (x.count,), p.info.numpy)


def _named(name: str) -> Callable[[], Any]:
    def gone() -> None:
        raise NotImplementedError

    gone.__name__ = name[:200]
    return gone


def _value(x: ArgumentData, kind: Any) -> Any:
    assert not isinstance(kind, ArrayType)
    if x.array != -1 or x.held != -1:
        raise ArchiveError("an array is passed for a value")
    flat = components(x.numbers, kind)
    return value_class(kind)(*flat) if shape_of(cast(ValueType, kind)) else flat[0]


def _bytes(a: ArchivedOutline) -> int:
    return max(a.hi - a.lo, a.size * a._info.size)
