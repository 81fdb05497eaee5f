"""Finds gradients that backward passes add to an earlier, unrelated gradient.

A gradient is what an earlier pass left if it holds just that, to the bit: whoever cleared it, or
changed it, knows of it. Nothing is wrong before somebody reads the mixture (`unread`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary, ref

import numpy as np

from engine.autograd.facts import Stale
from engine.autograd.watch.lasting import LastingArray, LastingMemory, block
from engine.autograd.watch.places import Geometry, Places, Weak, geometry, meeting
from engine.autograd.watch.unread import Mixture, Part, Unread
from engine.classes import dataclass
from engine.diagnostics.site import Site
from engine.ir import nodes as n
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.events import Optimized
from engine.runtime.leaves import leaf_arrays
from engine.runtime.storage import Storage
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape
from engine.tape.graph.valid_names import ValidNames
from engine.tape.naming import variable
from engine.tape.outline import root_array
from engine.tape.records import launches
from engine.tape.records.record import Record
from engine.tape.restoration import NumpyArray, present, raw

Seeds: TypeAlias = "tuple[tuple[int, bytes], ...]"
Inputs: TypeAlias = "tuple[bytes, ...]"


@dataclass(frozen=True, slots=True)
class _Digest:
    """What an array held, without a copy. version: of its memory by then."""

    version: int
    digest: bytes
    dtype: np.dtype[Any]

    @staticmethod
    def of(a: array) -> _Digest:
        """That of what it holds now."""
        held = a._host()
        return _Digest(a.storage.version, _sha256(held), held.dtype)

    def is_of(self, numbers: NumpyArray) -> bool:
        """Whether an array held those, in the order of its memory."""
        return _sha256(numbers.astype(self.dtype, copy=False)) == self.digest

    def fits(self, a: array) -> bool:
        """Whether an array holds that, to the bit."""
        known = self.version == a.storage.version and a.storage.told
        return known or _Digest.of(a).digest == self.digest


@dataclass(slots=True)
class _Left:
    """What a pass left: the gradient, and the array's own values then, as digests.

    tape, records: which tape, and how many records it had. seeds: what the pass started from.
    inputs: what the tape read that it does not compute.
    """

    grad: _Digest
    values: _Digest | None
    tape: int
    records: int
    seeds: Seeds
    inputs: Inputs
    site: Site | None


@dataclass(slots=True)
class _Shared:
    """What a pass left in the gradient of a leaf, for another array that gets the same memory.

    memory, place: where the leaf itself lies. Another array there is the same leaf.
    read: whether the program has read it since. Programs that add up gradients of several arrays
    in one memory read the sum. spent: whether a step of the array has used some of it: one that
    starts from what the array holds. Sums of gradients at several points are made before.
    size: how many numbers it has.
    """

    owner: ref[array]
    memory: LastingMemory
    place: Geometry
    left: _Left
    size: int
    read: bool = False
    spent: bool = False

    def is_of(self, a: array) -> bool:
        """Whether an array is the leaf, or was made over the same memory."""
        return self.place == geometry(a) and self.memory.is_of(a.storage)

    def step(self, reads: Sequence[array], writes: Sequence[array]) -> bool:
        """Whether a launch that reads the gradient is such a step."""
        owner = self.owner()
        return all(
            any(self.is_of(a) or (owner is not None and may_meet(owner, a)) for a in some)
            for some in (reads, writes)
        )


@dataclass(slots=True)
class _Suspect:
    """A gradient that holds what an earlier pass left, before the next pass adds to it.

    some, before: for each leaf field, which numbers do, and all of them. consumed: numbers that
    count if the pass takes them away; None where that needs not be looked at.
    """

    a: array
    kind: Literal["values", "twice", "passed on"]
    some: list[NumpyArray]
    before: list[NumpyArray]
    left: _Left
    consumed: list[NumpyArray] | None = None


@dataclass(slots=True)
class _Open:
    """A pass that runs.

    arrays: all of the tape that have a gradient. computed: by the tape. spent: the ids of those
    whose gradient a step has used, and which still hold it.
    """

    arrays: list[array]
    computed: _Computed
    suspects: list[_Suspect]
    spent: set[int]


class Accumulated:
    """Follows the gradients of a program's arrays through its backward passes."""

    def __init__(self) -> None:
        # By the array that has the gradient, and which part of it; views come and go.
        self._left: WeakKeyDictionary[array, dict[Geometry, _Left]] = WeakKeyDictionary()
        # By the memory of the gradient: arrays that are made anew may get the same.
        self._shared: Weak[dict[Geometry, _Shared]] = Weak()
        # By tape: threads may run several at a time.
        self._open: dict[int, _Open] = {}
        self._digests: WeakKeyDictionary[array, _Digest] = WeakKeyDictionary()
        self._names = ValidNames()
        self.unread = Unread()

    def began(self, tape: CapturedTape, run: Pass) -> Iterator[Mixture]:
        """To be called before a pass sets its seeds; gives what turns out to have been read."""
        yield from self.unread.began(run)
        computed = _Computed(run)
        opened = self._open[id(tape)] = _Open(_arrays(run), computed, [], set())
        for a in opened.arrays:
            if self._spent(a):
                opened.spent.add(id(a))
            left = self._left.get(root_array(a), {}).get(geometry(a))
            found = None if left is None else self._suspect(tape, run, computed, a, left)
            if found is None and not computed.has(a):
                other = self._of_another(a, left)
                if other is not None:
                    found = self._suspect(tape, run, computed, a, other)
            if found is not None:
                opened.suspects.append(found)

    def reading(self, arrays: Sequence[array], written: Sequence[array] = ()) -> None:
        """To be called before the program reads arrays. written: by the launch that does."""
        for a in arrays:
            for shared in self._at(a.storage).values():
                shared.read = True
                shared.spent = shared.spent or (bool(written) and shared.step(arrays, written))

    def optimized(self, steps: Sequence[Optimized]) -> None:
        """To be called after an optimizer of another framework has made a step."""
        left = [s for known in self._shared.values() for s in known.values() if not s.spent]
        for step in steps:
            some = [s for s in left if s.size == step.size]
            if some:
                gradient = step.gradient()
                for s in some:
                    s.spent = s.spent or s.left.grad.is_of(gradient)

    def _spent(self, a: array) -> bool:
        grad = a.existing_grad
        if grad is None:
            return False
        shared = self._at(grad.storage).get(geometry(grad))
        return shared is not None and shared.spent and shared.left.grad.fits(grad)

    def _at(self, memory: Storage) -> dict[Geometry, _Shared]:
        """What passes left in some memory."""
        return (self._shared.get(block(memory)) or {}) if self._shared else {}

    def _of_another(self, a: array, own: _Left | None) -> _Left | None:
        """What a pass left in the gradient of another array, of which this one has the memory.

        own: what one left in that of the array itself, if any. An array over other memory counts
        if the other one is gone and the program has read the gradient.
        """
        grad = a.existing_grad
        shared = None if grad is None else self._at(grad.storage).get(geometry(grad))
        if shared is None or (own is not None and shared.left.grad is own.grad):
            return None
        gone = own is None and shared.read and shared.owner() is None
        return shared.left if gone or shared.is_of(a) else None

    def _suspect(
        self, tape: CapturedTape, run: Pass, computed: _Computed, a: array, left: _Left
    ) -> _Suspect | None:
        grad = a.existing_grad
        if grad is None or not left.grad.fits(grad):
            return None
        seeded = [x for x, _ in run.seeds if root_array(x) is root_array(a)]
        some = [_not_zero(g) & ~meeting(x, seeded) for x, g in _leaves(a, grad)]
        if not any(x.any() for x in some):
            return None
        before = [present(g) for _, g in _leaves(a, grad)]
        if computed.has(a):
            consumed = []
            for (x, _), numbers in zip(_leaves(a, grad), some, strict=True):
                sure, unsure = computed.passed(x)
                if (numbers & (sure | unsure if a.retain_grad else sure)).any():
                    return _Suspect(a, "passed on", some, before, left)
                consumed.append(numbers & unsure)
            if not any(x.any() for x in consumed):
                return None
            return _Suspect(a, "passed on", some, before, left, consumed)
        if left.values is not None and not left.values.fits(a):
            return _Suspect(a, "values", some, before, left)
        if (left.tape, left.records) == (id(tape), len(run.records)) and (
            left.seeds == _seeds(run) and left.inputs == self._inputs(run, computed)
        ):
            return _Suspect(a, "twice", some, before, left)
        return None

    def inputs(self, tape: CapturedTape) -> list[array]:
        """The inputs of a tape that require a gradient, while its pass runs."""
        opened = self._open[id(tape)]
        return [a for a in opened.arrays if not opened.computed.has(a)]

    def ended(self, tape: CapturedTape, run: Pass) -> None:
        """To be called after the pass: notes what it added to that it should not have."""
        self.unread.ended()
        opened = self._open.pop(id(tape))
        told: dict[tuple[Geometry, str], Mixture] = {}
        for s in opened.suspects:
            if _came_true(s):
                # Several views of one array, or arrays over one memory, are one mixture.
                key = geometry(root_array(s.a)), s.kind
                if key not in told:
                    told[key] = Mixture(tape, self._stale(run, s), [], _moved(s.a), False)
                told[key].parts += _parts(run, s)
                told[key].spent |= s.kind != "values" or id(s.a) in opened.spent
        for m in told.values():
            self.unread.add(m)
        added = {id(s.a) for s in opened.suspects}
        for a in opened.arrays:
            if id(a) not in added and (grad := a.existing_grad) is not None:
                for x, _ in _leaves(a, grad):
                    self.unread.cleared(x)
        seeds, computed = _seeds(run), opened.computed
        inputs = self._inputs(run, computed)
        for a in opened.arrays:
            grad = a.existing_grad
            if grad is not None and any(np.count_nonzero(g._host()) for _, g in _leaves(a, grad)):
                left = _Left(
                    _Digest.of(grad), None if computed.has(a) else self._values(a), id(tape),
                    len(run.records), seeds, inputs, run.site,
                )  # fmt: skip
                self._left.setdefault(root_array(a), {})[geometry(a)] = left
                if left.values is not None:
                    known = self._shared.setdefault(block(grad.storage), {})
                    # Versions are of the array's own memory.
                    left = replace(left, values=replace(left.values, version=-1))
                    size = sum(g.size * prod(g._info.inner) for _, g in _leaves(a, grad))
                    known[geometry(grad)] = _Shared(
                        ref(root_array(a)), LastingMemory(a.storage), geometry(a), left, size,
                        spent=id(a) in opened.spent,
                    )  # fmt: skip

    def _stale(self, run: Pass, s: _Suspect) -> Stale:
        passed, site, name = name_of(run, s.a), run.site, ""
        if site is not None:
            code, whole = site.code, root_array(s.a)
            name = self._names.of(code, s.a, passed) or self._names.of(code, whole, "")
        return Stale(
            s.kind, name or passed, _span(site), _span(s.left.site), valid=bool(name)
        )  # fmt: skip

    def _values(self, a: array) -> _Digest:
        """What an array holds, as a digest that was made before if it can be."""
        known = self._digests.get(a)
        if known is None or known.version != a.storage.version or not a.storage.told:
            known = self._digests[a] = _Digest.of(a)
        return known

    def _inputs(self, run: Pass, computed: _Computed) -> Inputs:
        """What a tape reads and does not compute."""
        found = {id(a): a for r in run.records for a in r.arrays if isinstance(a, array)}
        return tuple(self._values(a).digest for a in found.values() if not computed.has(a))

    def left(self, tape: CapturedTape) -> None:
        """To be called when a pass is over: what an exception has left is no gradient."""
        self._open.pop(id(tape), None)


class _Computed:
    """The memory that a tape's records write."""

    def __init__(self, run: Pass) -> None:
        self._by: dict[Storage, list[tuple[Record, array]]] = {}
        self._keys: dict[Storage, set[Geometry]] = {}
        for r in run.records:
            for a in r.written:
                self._by.setdefault(a.storage, []).append((r, a))
                self._keys.setdefault(a.storage, set()).add(geometry(a))

    def has(self, a: array) -> bool:
        """Whether a record may write to an array."""
        if geometry(a) in self._keys.get(a.storage, ()):
            return True
        return any(may_meet(a, b) for _, b in self._by.get(a.storage, ()))

    def passed(self, a: array) -> tuple[NumpyArray, NumpyArray]:
        """The numbers of an array whose gradient is passed on; those of which it may be.

        Launches may store some elements of an array and leave others: those count whose gradient
        the pass consumes.
        """
        sure: list[array] = []
        unsure: list[array] = []
        for r, b in self._by.get(a.storage, ()):
            if may_meet(a, b) and r.passes_gradient(b):
                known = _accumulates(r, b) or r.fills(b)
                (sure if known else unsure).append(b)
        return meeting(a, sure), meeting(a, unsure)


def _accumulates(record: Record, b: array) -> bool:
    """Whether a launch adds to an array by atomics: its gradient stays, and is passed on."""
    r = record.launch
    if r is None:
        return False
    mine = {r.plan.params[i].name for i in r.plan.writes if r.values[i] is b}
    body = n.walk(r.plan.variants.prepared.body)
    return any(isinstance(s, n.Atomic) and s.array.name in mine for s in body)


def _came_true(s: _Suspect) -> bool:
    """Whether a pass added to a gradient, or passed it on."""
    grad = s.a.existing_grad
    if s.consumed is not None:
        if grad is None:
            return False
        pairs = zip(_leaves(s.a, grad), s.consumed, strict=True)
        return any((x & ~_not_zero(g)).any() for (_, g), x in pairs)
    if s.kind == "passed on":
        return True
    if grad is None:
        return False
    pairs = zip(_leaves(s.a, grad), s.before, strict=True)
    return any((raw(present(g)) != raw(b)).any() for (_, g), b in pairs)


def _moved(a: array) -> Callable[[], bool]:
    """A question for later: has an array other values than now?"""
    found, values = LastingArray(a), _Digest.of(a)

    def answer() -> bool:
        alive = found()
        return alive is not None and not values.fits(alive)

    return answer


def _parts(run: Pass, s: _Suspect) -> Iterator[Part]:
    """Where a mixture is after the pass: in the gradient, or wherever it was passed on to."""
    if s.kind != "passed on":
        grad = s.a.existing_grad
        if grad is not None:
            for (x, g), some in zip(_leaves(s.a, grad), s.some, strict=True):
                yield Part(g, some, x)
        return
    for a in _upstream(run, s.a):
        grad = a.existing_grad
        if grad is not None:
            for x, g in _leaves(a, grad):
                yield Part(g, _not_zero(g), x)


def _upstream(run: Pass, a: array) -> list[array]:
    """An array, and those with a gradient that the tape may compute it from."""
    places: Places[None] = Places()
    places.put(a, None)
    found = {geometry(a): a}
    for r in reversed(run.records):
        some = [b for b in r.arrays if isinstance(b, array)]
        into = [*r.written, *r.declared]
        if any(places.meets(b) for b in into):
            for b in some:
                places.put(b, None)
                if b.requires_grad:
                    found[geometry(b)] = b
    return list(found.values())


def _arrays(run: Pass) -> list[array]:
    """All arrays of a tape that have a gradient by now, the larger ones first."""
    found = {
        (id(root_array(a)), geometry(a)): a
        for r in run.records for a in r.arrays if isinstance(a, array)
    }  # fmt: skip
    return sorted((a for a in found.values() if a.requires_grad), key=lambda a: -a.size)


def _leaves(a: array, grad: array) -> list[tuple[array, array]]:
    """An array with its gradient; of structs, each field of floats."""
    if a._info.numpy.names is None:
        return [(a, grad)]
    pairs = zip(leaf_arrays(a), leaf_arrays(grad), strict=True)
    return [(x, g) for x, g in pairs if x._info.floating]


def _sha256(held: NumpyArray) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(held).reshape(-1).view(np.uint8).data).digest()


def _not_zero(a: array) -> NumpyArray:
    return np.asarray(a._host() != 0)


def _seeds(run: Pass) -> Seeds:
    return tuple((id(a), np.asarray(c).tobytes()) for a, c in run.seeds)


def name_of(run: Pass, a: array) -> str:
    """What the user calls an array, where a launch got it."""
    fallback = ""
    for r in launches(run.records):
        for i, v in enumerate(r.values):
            if v is a or getattr(v, "_whole", None) is a:
                found = variable(r, i)
                if found:
                    return found.partition(".")[0] if v is not a else found
                fallback = fallback or r.plan.params[i].name
    return fallback


def _span(site: Site | None) -> Any:
    return None if site is None else site.span
