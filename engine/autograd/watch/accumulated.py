"""Gradients that backward passes add to, though they were made for something else.

A gradient is what an earlier pass left if it holds just that, to the bit: whoever cleared it, or
changed it, knows of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from engine.autograd.facts import Stale
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Storage
from engine.tape.capture import CapturedTape, Pass
from engine.tape.naming import variable
from engine.tape.records import LaunchRecord
from engine.tape.restoration import NumpyArray, present, raw

Seeds = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class _Digest:
    """What an array held, without a copy. version: of its memory by then."""

    version: int
    digest: bytes

    @staticmethod
    def of(a: array) -> _Digest:
        """That of what it holds now."""
        found = hashlib.blake2b(a._host().tobytes(), digest_size=16)
        return _Digest(a.storage.version, found.digest())

    def fits(self, a: array) -> bool:
        """Whether an array holds that, to the bit."""
        known = self.version == a.storage.version and a.storage.told
        return known or _Digest.of(a).digest == self.digest


@dataclass(slots=True)
class _Left:
    """What a pass left: the gradient, and the array's own values then, as digests.

    tape, records: which tape, and how many records it had. seeds: what the pass started from.
    """

    grad: _Digest
    values: _Digest | None
    tape: int
    records: int
    seeds: Seeds
    site: Site | None


@dataclass(slots=True)
class _Suspect:
    """A gradient that holds what an earlier pass left, before the next pass adds to it."""

    a: array
    kind: Literal["values", "twice", "passed on"]
    before: NumpyArray
    earlier: Site | None


class Accumulated:
    """Follows the gradients of a program's arrays through its backward passes."""

    def __init__(self) -> None:
        self._left: WeakKeyDictionary[array, _Left] = WeakKeyDictionary()
        self._suspects: list[_Suspect] = []
        self._arrays: list[array] = []

    def began(self, tape: CapturedTape, run: Pass) -> None:
        """To be called before a pass sets its seeds."""
        self._arrays = _arrays(run)
        seeds = _seeds(run)
        seeded = [a for a, _ in run.seeds]
        computed = _Computed(run)
        self._suspects = []
        for a in self._arrays:
            left = self._left.get(a)
            grad = a.existing_grad
            if left is None or grad is None or any(a is s for s in seeded):
                continue
            if not left.grad.fits(grad):
                continue
            now = present(grad)
            if not _any(now):
                continue
            kind: Literal["values", "twice", "passed on"]
            if computed.has(a):
                kind = "passed on"
            elif left.values is not None and not left.values.fits(a):
                kind = "values"
            elif (left.tape, left.records, left.seeds) == (id(tape), len(run.records), seeds):
                kind = "twice"
            else:
                continue
            self._suspects.append(_Suspect(a, kind, now, left.site))

    def ended(self, tape: CapturedTape, run: Pass) -> Iterator[Stale]:
        """To be called after the pass; gives what it added to that it should not have."""
        for s in self._suspects:
            grad = s.a.existing_grad
            added = grad is not None and (raw(present(grad)) != raw(s.before)).any()
            if added or s.kind == "passed on":
                yield Stale(
                    s.kind, name_of(run, s.a), _span(run.site), _span(s.earlier)
                )  # fmt: skip
        seeds, computed = _seeds(run), _Computed(run)
        for a in self._arrays:
            grad = a.existing_grad
            if grad is not None:
                self._left[a] = _Left(
                    _Digest.of(grad), None if computed.has(a) else _Digest.of(a), id(tape),
                    len(run.records), seeds, run.site,
                )  # fmt: skip
        self._suspects, self._arrays = [], []


class _Computed:
    """The memory that a tape's records write."""

    def __init__(self, run: Pass) -> None:
        self._by: dict[Storage, list[array]] = {}
        for r in run.records:
            for a in r.written:
                known = self._by.setdefault(a.storage, [])
                if not any(a is b for b in known):
                    known.append(a)

    def has(self, a: array) -> bool:
        """Whether a record may write to an array."""
        return any(may_meet(a, b) for b in self._by.get(a.storage, ()))


def _arrays(run: Pass) -> list[array]:
    """All arrays of a tape that have a gradient by now."""
    found = {id(a): a for r in run.records for a in r.arrays if isinstance(a, array)}
    return [a for a in found.values() if a.requires_grad]


def _seeds(run: Pass) -> Seeds:
    return tuple((id(a), np.asarray(c).tobytes()) for a, c in run.seeds)


def _any(x: NumpyArray) -> bool:
    """Whether a gradient has a number that is not zero."""
    names = x.dtype.names
    if names is None:
        return bool(np.any(x))
    return any(_any(x[name]) for name in names)


def name_of(run: Pass, a: array) -> str:
    """What the user calls an array, where a launch got it."""
    fallback = ""
    for r in run.records:
        if isinstance(r, LaunchRecord):
            for i, v in enumerate(r.values):
                if v is a or getattr(v, "_whole", None) is a:
                    found = variable(r, i)
                    if found:
                        return found.partition(".")[0] if v is not a else found
                    fallback = fallback or r.plan.params[i].name
    return fallback


def _span(site: Site | None) -> Any:
    return None if site is None else site.span


def merged(facts: Sequence[Stale]) -> list[Stale]:
    """Those that are alike as one."""
    out: dict[tuple[object, ...], Stale] = {}
    for f in facts:
        key = (f.kind, f.array, f.site, f.earlier, f.by, f.text)
        known = out.get(key)
        out[key] = f if known is None else replace(known, passes=known.passes + 1)
    return list(out.values())
