"""Shrinks a capture to a smaller one with the same finding.

Every candidate is checked as the whole was, and kept if it has a finding of the same code and
kernel, and no access outside of an array that the whole did not have.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import engine
from adtool import codec, memory
from adtool.captures import container
from adtool.captures.container import CaptureReader, CaptureWriter
from adtool.captures.head import Source, Written
from adtool.captures.run import Run
from adtool.checking import check_tapes
from adtool.exits import because
from adtool.faults import Seen
from adtool.job import TRACES
from adtool.outcome import Outcome
from adtool.report import Finding
from adtool.rules import load_rules
from adtool.session import Session
from adtool.traces import Traces
from engine.archive import Archive, ArchiveError, only, unpack, with_contents, with_dim, with_length
from engine.autograd import trace
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.job import Job, ReduceOptions
    from adtool.status import StatusWriter
    from engine import CapturedTape, Fault

_ORDER = {"error": 0, "warning": 1, "note": 2}
_TRUST = "; --trust also checks launches that run C++ code"


def reduced(run: Run, job: Job, page: StatusWriter) -> Outcome:
    """Shrinks a capture, and writes what is left to the job's file.

    The outcome is that of its check. Raises ArchiveError.
    """
    assert job.reduce is not None
    assert job.keep is not None
    archive, store = run.archive(), _Overlay(run.reader)
    search = _Search(store, job, page)
    first = search.checked(archive)
    wanted = _wanted(search.findings(first, run.faults()), job.reduce)
    if wanted is None:
        of = "" if job.reduce.kernel == "*" else f" of `{job.reduce.kernel}`"
        return Outcome(
            "target", (
                "nothing to reduce: the check of the capture gives no "
                f"{job.reduce.code or 'finding'}{of}"
            ),
            "name an existing finding with --code and --kernel",
        )  # fmt: skip
    trusted = job.options.trust or "--trust" not in wanted.help
    if (wanted.severity == "note" or not trusted) and not job.reduce.code:
        return Outcome(
            "target", f"nothing to reduce: the check of the capture only gives {wanted.code}",
            "name the note to keep, with --code" + _TRUST * (not job.options.trust),
        )  # fmt: skip
    if not any(_same(f, wanted) for f in search.findings(first)):
        return Outcome(
            "target", f"{wanted.code} cannot be reduced: adtool found it while the program ran, "
                      "and a check of the capture does not show it",
            "name another finding with --code, or reduce the program",
        )  # fmt: skip
    search.wanted = wanted
    search.outside = any(s.fault.kind == "outside" for s in first.faults)
    small = search.smallest(archive)
    final = search.checked(small)
    try:
        written = Written(_write(search, run, small, Path(job.keep.path)))
    except OSError as error:
        written = Written(why=because(error), failed=True)
    return replace(final.outcome, written=written, found=wanted)


def _write(search: _Search, run: Run, small: Archive, path: Path) -> tuple[Source, ...]:
    """Writes what is left, but for what the parent completes it with. Raises OSError."""
    with CaptureWriter(path) as out:
        digests = {d for t in small.tapes for h in t.contents for d in h.digests}
        for t in small.tapes:
            for x in () if t.backward is None else t.backward.read:
                digests |= {x.where, x.values}
        for d in sorted(digests):
            out.raw(d, search.store.raw(d))
        out.text(container.TAPES, codec.dumps(small))
        # What `adtool graph` and `adtool trace` show. It never ran, so it has no times and norms.
        tapes = tuple(trace(t, TRACES) for t in search.unpacked(small))
        out.text(container.TRACES, codec.brief(Traces(tapes, len(tapes))))
        sources: list[Source] = []
        for s in run.head.sources:
            if s.name in small.files:
                member = f"{container.SOURCES}{len(sources)}.txt"
                out.text(member, run.reader.text(s.member))
                sources.append(Source(s.name, member))
    return tuple(sources)


@dataclass
class _Checked:
    outcome: Outcome
    faults: tuple[Seen, ...] = ()


@dataclass
class _Overlay:
    """Contents of a capture, and more that is made of them."""

    reader: CaptureReader
    made: dict[str, bytes] = field(default_factory=dict)

    def put(self, values: np.ndarray[Any, Any]) -> str:
        digest, data = container.packed(values)
        self.made[digest] = data
        return digest

    def get(self, digest: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        data = self.made.get(digest)
        if data is None:
            return self.reader.get(digest, shape, dtype)
        return container.expected(digest, data, shape, dtype)

    def raw(self, digest: str) -> bytes:
        found = self.made.get(digest)
        return self.reader.raw(digest) if found is None else found


class _Search:
    """Looks for something smaller, until nothing is, or there is no time for more."""

    def __init__(self, store: _Overlay, job: Job, page: StatusWriter) -> None:
        assert job.reduce is not None
        self.store, self._job, self._page = store, job, page
        self._left = self._most = job.reduce.most
        self._limit = memory.limit(job.options.memory, memory.CAPTURED)
        self.wanted: Finding | None = None
        self.outside = False
        gc.freeze()

    # ---- one candidate

    def checked(self, archive: Archive) -> _Checked:
        """The check of an archive. Raises ArchiveError."""
        self._page.check(0, 1, 0, self._most - self._left, self._most, "reducing")
        tapes = self.unpacked(archive)
        faults: dict[Any, Seen] = {}

        def note(f: Fault) -> None:
            faults.setdefault((f.kind, f.kernel, f.span, f.access), Seen(f, -1, 1, 0, -1))

        with engine.watching(note, races=True):
            outcome = check_tapes(tapes, self._job.options)
        return _Checked(outcome, tuple(faults.values()))

    def unpacked(self, archive: Archive) -> list[CapturedTape]:
        """The tapes of an archive. Raises ArchiveError."""
        return unpack(archive, self.store, trust=self._job.options.trust, limit=self._limit)

    def findings(self, found: _Checked, more: Sequence[Seen] = ()) -> list[Finding]:
        """What the rules say of it, the worst first."""
        o = found.outcome
        session = Session(
            self._job.target, self._job.options, o.tapes, o.kernels, recorded=o.recorded,
            faults=(*more, *found.faults),
        )  # fmt: skip
        out = [f for rule in load_rules() for f in rule.check(session)]
        return sorted(out, key=lambda f: _ORDER[f.severity])

    def shows(self, archive: Archive) -> bool:
        """Whether it still has the finding. Counts."""
        assert self.wanted is not None
        if self._left <= 0:
            return False
        self._left -= 1
        try:
            found = self.checked(archive)
        except ArchiveError:
            return False
        if not self.outside and any(s.fault.kind == "outside" for s in found.faults):
            return False
        return any(_same(f, self.wanted) for f in self.findings(found))

    # ---- what to try

    def smallest(self, archive: Archive) -> Archive:
        """The smallest archive that was found."""
        archive = self._launches(archive)
        before = None
        while archive != before and self._left > 0:
            before = archive
            archive = self._threads(archive)
            archive = self._elements(archive)
        return self._values(archive)

    def _try(self, make: Callable[[], Archive]) -> Archive | None:
        try:
            small = make()
        except (ArchiveError, ValueError, IndexError):
            return None
        return small if self.shows(small) else None

    def _launches(self, archive: Archive) -> Archive:
        f = self.wanted
        assert f is not None
        tape = f.tape if 0 <= f.tape < len(archive.tapes) else 0
        records = list(range(len(archive.tapes[tape].records)))
        if not records:
            return archive
        whole = only(archive, tape, records)
        if len(archive.tapes) > 1 and not self.shows(whole):
            return archive
        if len(records) == 1:
            return whole
        launches = [i for i, r in enumerate(archive.tapes[tape].records) if r.kind == "launch"]
        if 0 <= f.launch < len(launches):
            found = self._try(partial(only, whole, 0, [launches[f.launch]]))
            if found is not None:
                return found
        return self._fewer(whole, records)

    def _fewer(self, whole: Archive, records: list[int]) -> Archive:
        """Leaves out ever smaller parts of a tape's operations (delta debugging)."""
        best, parts = whole, 2
        while len(records) > 1 and self._left > 0:
            size = max(1, len(records) // parts)
            for start in range(0, len(records), size):
                rest = records[:start] + records[start + size :]
                found = self._try(partial(only, whole, 0, rest)) if rest else None
                if found is not None:
                    best, records, parts = found, rest, max(2, parts - 1)
                    break
            else:
                if size == 1:
                    break
                parts = min(len(records), parts * 2)
        return best

    def _threads(self, archive: Archive) -> Archive:
        for i, r in enumerate(archive.tapes[0].records):
            for axis in range(len(r.dim)):

                def made(a: Archive, n: int, i: int = i, axis: int = axis) -> Archive:
                    dim = a.tapes[0].records[i].dim
                    return with_dim(a, i, (*dim[:axis], n, *dim[axis + 1 :]))

                archive = self._least(archive, r.dim[axis], made)
        return archive

    def _elements(self, archive: Archive) -> Archive:
        for k, x in enumerate(archive.tapes[0].arrays):
            for axis in range(len(x.shape)):

                def made(a: Archive, n: int, k: int = k, axis: int = axis) -> Archive:
                    return with_length(a, self.store, k, axis, n)

                archive = self._least(archive, x.shape[axis], made)
        return archive

    def _least(
        self, archive: Archive, size: int, made: Callable[[Archive, int], Archive]
    ) -> Archive:  # fmt: skip
        """The archive with the least of some size that still shows the finding."""
        low, best = 1, size
        if size > 1 and (found := self._try(partial(made, archive, 1))) is not None:
            return found
        smallest = archive
        while low + 1 < best and self._left > 0:
            middle = (low + best) // 2
            found = self._try(partial(made, archive, middle))
            if found is None:
                low = middle
            else:
                smallest, best = found, middle
        return smallest

    def _values(self, archive: Archive) -> Archive:
        for k, h in enumerate(archive.tapes[0].contents):
            if h.why:
                continue
            for f in (_zeros, _ones, _rounded):
                found = self._try(partial(with_contents, archive, self.store, k, f))
                if found is not None:
                    archive = found
                    break
        return archive


def _same(a: Finding, b: Finding) -> bool:
    return (a.code, a.kernel) == (b.code, b.kernel)


def _zeros(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.zeros_like(x)


def _ones(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if x.dtype.kind != "f":
        raise ValueError("an index")
    return np.ones_like(x)


def _rounded(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """To two digits, as people write numbers."""
    if x.dtype.kind != "f":
        raise ValueError("an index")
    flat = [float(f"{v:.2g}") if np.isfinite(v) else v for v in x.astype(np.float64).ravel()]
    out: np.ndarray[Any, Any] = np.array(flat, np.float64).reshape(x.shape).astype(x.dtype)
    return out


def _wanted(found: Sequence[Finding], options: ReduceOptions) -> Finding | None:
    for f in found:
        if options.code in ("", f.code) and fnmatchcase(f.kernel, options.kernel):
            return f
    return None
