"""Gradients that mix evaluations, until the program reads them.

A mixture that is cleared before anything reads it does no harm: of two players who take turns, each
clears its own gradients, and leaves alone what the other's backward passes add to them.

Numbers count as long as they are what the pass left, to the bit: whoever overwrites them needs not
be watched. The host may read or write what it was lent: which of the two it did is seen at the next
thing that happens.

A mixture that was read is watched further, up to the next backward pass: a program *uses* it where
one launch reads it and writes the array whose gradient it is, as steps of optimizers do; where an
optimizer of another framework got it, and the array then holds what that computed (`optimized`); or
where two changes of the array, one after the other, are steps along it (`steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from weakref import ref

import numpy as np

from engine.autograd.facts import Stale
from engine.autograd.watch.lasting import LastingArray, LastingMemory, block
from engine.autograd.watch.places import Geometry, Weak, geometry, meeting
from engine.autograd.watch.steps import Step, step_of
from engine.classes import dataclass
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.events import Optimized
from engine.runtime.storage import Storage
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape
from engine.tape.outline import Outline, outline
from engine.tape.restoration import NumpyArray, present, raw


class Part:
    """Numbers of a gradient that are a mixture. Keeps the gradient's memory alive while it is lent.

    where: which of them still are, as booleans in its shape, components last. owner: the array
    whose gradient it is.
    """

    __slots__ = ("_all", "_computed", "_held", "_lent", "_memory", "_owner", "_start", "place",
                 "where")  # fmt: skip

    def __init__(self, grad: array, where: NumpyArray, owner: array) -> None:
        self._owner = LastingArray(owner)
        self._start = present(owner).copy()
        self._all = where
        self._computed: list[NumpyArray] = []  # by optimizers of other frameworks, of its numbers
        self._memory = LastingMemory(grad.storage)
        self._lent: tuple[Storage, NumpyArray] | None = None
        self.place: Outline = outline(grad)
        self.where = where
        self._held = _contents(grad.storage, self.place)

    @property
    def exposed(self) -> bool:
        """Whether user code may read and write the memory unseen."""
        memory = self._memory()
        return memory is not None and memory.exposed

    def belongs(self, arrays: Sequence[array]) -> bool:
        """Whether the array whose gradient it is may be among these."""
        owner = self._owner()
        return owner is not None and any(may_meet(owner, a) for a in arrays)

    @property
    def owner(self) -> array | None:
        """The array whose gradient it is, while that lives."""
        return self._owner()

    def got(self, step: Optimized) -> bool:
        """Whether an optimizer had it as its gradient. What that computed is kept."""
        if step.size != self._held.size or not self.look():
            return False
        gradient = step.gradient()
        given = gradient.reshape(self._held.shape).astype(self._held.dtype, copy=False)
        if not _same(given, self._held)[self.where].all():
            return False
        self._computed.append(np.array(step.values()))
        return True

    def holds_computed(self) -> bool:
        """Whether the array was changed to what an optimizer has computed from it."""
        owner = self._owner()
        if owner is None or not self._computed:
            return False
        now = present(owner)
        if _same(now, self._start).all():
            return False
        for x in self._computed:
            if x.size == now.size:
                computed = x.reshape(now.shape).astype(now.dtype, copy=False)
                if _same(computed, now)[self._all].all():
                    return True
        return False

    def stands_alone(self, step: Step) -> bool:
        """Whether one step is evidence if nothing comes after it."""
        return step.stands_alone(self._start.astype(np.float64))

    def step(self) -> Step | None:
        """How the array has changed, as a step along the gradient that this was at first."""
        owner = self._owner()
        if owner is None:
            return None
        moved = present(owner).astype(np.float64) - self._start.astype(np.float64)
        return step_of(np.where(self._all, moved, 0.0), self._all * self._held.astype(np.float64))

    def look(self) -> bool:
        """Drops what is no longer there. Whether anything is."""
        memory = self._memory()
        if memory is None:
            self.where = np.zeros_like(self.where)
        else:
            self.where = self.where & _same(_contents(memory, self.place), self._held)
        return bool(self.where.any())

    def meets(self, arrays: Sequence[array]) -> bool:
        """Whether some of what is there lies in one of these."""
        near = self._near(arrays)
        return bool(near) and self.look() and bool((self.where & meeting(self.place, near)).any())

    def lend(self, arrays: Sequence[array]) -> None:
        """The host gets these: it may read or write them."""
        memory = self._memory()
        if memory is not None and self.meets(arrays):
            self._lent = memory, self.where & meeting(self.place, arrays)

    def settle(self) -> bool:
        """Whether the host has read what it was lent, and not just set it to zero."""
        if self._lent is None:
            return False
        (memory, lent), self._lent = self._lent, None
        now = _contents(memory, self.place)
        changed = lent & ~_same(now, self._held)
        return not changed.any() or bool((changed & (now != 0)).any())

    def renew(self) -> None:
        """A pass has added to it, or has consumed it."""
        memory = self._memory()
        if memory is None:
            self.where = np.zeros_like(self.where)
        else:
            self._held = _contents(memory, self.place)
            self.where = self.where & (self._held != 0)

    def joins(self, other: Part) -> bool:
        """Takes over what another says of the same numbers, at the same time; else False."""
        memory, key = self._memory(), geometry(self.place)
        if memory is None or memory is not other._memory() or key != geometry(other.place):
            return False
        self.where, self._all = self.where | other.where, self._all | other._all
        self._start, self._owner = other._start, other._owner
        return True

    def replaced(self, arrays: Sequence[array]) -> None:
        """These are about to be overwritten."""
        near = self._near(arrays)
        if near:
            self.where = self.where & ~meeting(self.place, near)

    def _near(self, arrays: Sequence[array]) -> list[array]:
        return [a for a in arrays if a.lo < self.place.hi and self.place.lo < a.hi]


@dataclass(slots=True)
class Mixture:
    """What one pass made of an array's gradient, and of those views of it.

    moved: says whether the array has got other values since. spent: whether a step that uses it is
    wrong. One that uses a sum of gradients at several points is not, unless an earlier step has
    used the gradient that the pass added to.
    """

    tape: CapturedTape
    fact: Stale
    parts: list[Part]
    moved: Callable[[], bool] = field(default=lambda: False)
    spent: bool = True

    def used_unseen(self) -> bool:
        """Whether somebody who can read it unseen must have: the array was moved by something."""
        return any(p.exposed and p.look() for p in self.parts) and self.moved()

    def used(self) -> Mixture:
        """The same, to be added to what was said of it: the program has used it."""
        return replace(self, fact=replace(self.fact, passes=0, used=True))

    def settle(self) -> bool:
        """Whether the host has read some of what it was lent."""
        return True in [p.settle() for p in self.parts]

    def absorbs(self, new: Mixture) -> bool:
        """Makes one of two that are alike and of the same gradients; else False."""
        if replace(self.fact, passes=1) != new.fact or len(self.parts) != len(new.parts):
            return False
        if not all(p.joins(q) for p, q in zip(self.parts, new.parts, strict=True)):
            return False
        self.fact, self.moved = replace(self.fact, passes=self.fact.passes + 1), new.moved
        self.spent = new.spent
        return True


class Unread:
    """The mixtures that nobody has read. All methods give those that turn out to have been."""

    def __init__(self) -> None:
        self._mixtures: list[Mixture] = []
        self._lent: list[Mixture] = []
        self._read: list[Mixture] = []  # since the last pass, and were not seen to be used
        # Steps that are evidence if nothing follows them, by the memory of the array.
        self._last: list[tuple[ref[object], Geometry, Mixture]] = []
        # How an array changed when it was last looked at, by its memory and place there.
        self._steps: Weak[dict[Geometry, Step]] = Weak()

    @property
    def empty(self) -> bool:
        """Whether there is none, so that nothing needs to be told."""
        return not (self._mixtures or self._lent or self._read)

    def add(self, mixture: Mixture) -> None:
        """A pass made a mixture. Those that repeat themselves are one, which counts them."""
        for m in self._mixtures:
            if m.absorbs(mixture):
                return
        self._mixtures.append(mixture)

    def reading(
        self, arrays: Sequence[array], host: bool, written: Sequence[array] = ()
    ) -> Iterator[Mixture]:
        """Arrays are about to be read; by host code, which may write them as well.

        written: what the launch that reads them writes.
        """
        yield from self.settle()
        yield from self._reading(arrays, host)
        if written and self._read:
            yield from self._used(
                m for m in self._read
                if m.spent and any(p.belongs(written) and p.meets(arrays) for p in m.parts)
            )  # fmt: skip

    def _reading(self, arrays: Sequence[array], host: bool) -> Iterator[Mixture]:
        for m in list(self._mixtures):
            if not any(p.meets(arrays) for p in m.parts):
                continue
            if not host:
                yield from self._told([m])
                continue
            for p in m.parts:
                p.lend(arrays)
            self._lent.append(m)

    def settle(self) -> Iterator[Mixture]:
        """To be called whenever something happens: what has the host done meanwhile?"""
        if self._lent:
            lent, self._lent = self._lent, []
            yield from self._told([m for m in lent if m.settle()])

    def optimized(self, steps: Sequence[Optimized]) -> Iterator[Mixture]:
        """An optimizer of another framework has made a step."""
        yield from self.settle()
        got = [
            m for m in (*self._mixtures, *self._read)
            if True in [p.got(x) for p in m.parts for x in steps]
        ]  # fmt: skip
        yield from self._told([m for m in got if any(m is x for x in self._mixtures)])
        yield from self._used(
            m for m in got if m.spent and any(p.holds_computed() for p in m.parts)
        )

    def began(self, run: Pass) -> Iterator[Mixture]:
        """A backward pass is about to set its seeds."""
        yield from self.closed(False)
        self._read.clear()
        grads = [g for a, _ in run.seeds if (g := a.existing_grad) is not None]
        for m in self._mixtures:
            for p in m.parts:
                p.look()
                p.replaced(grads)

    def cleared(self, a: array) -> None:
        """A pass has not added to the gradient of an array: its last step does not count."""
        (self._steps.get(block(a.storage)) or {}).pop(geometry(a), None)

    def ended(self) -> None:
        """The pass has run: what it left is what there is now."""
        for m in self._mixtures:
            for p in m.parts:
                p.renew()
        self._mixtures = [m for m in self._mixtures if any(p.where.any() for p in m.parts)]

    def closed(self, ends: bool = True) -> Iterator[Mixture]:
        """Nothing more will happen. What is still there was not read as far as anybody knows.

        ends: False where a backward pass comes next.
        """
        yield from self.settle()
        yield from self._told([m for m in self._mixtures if m.used_unseen()])
        along = self._along()
        yield from self._used(
            m for m in self._read
            if any(p in along or (m.spent and p.holds_computed()) for p in m.parts)
        )  # fmt: skip
        if ends:
            yield from (m.used() for m in {id(m): m for *_, m in self._last}.values())
            self._last.clear()

    def _along(self) -> set[Part]:
        """Those parts of what was read along which their arrays moved, this time and before."""
        out, steps = set[Part](), list[tuple[object, Geometry, Step | None]]()
        last = list[tuple[ref[object], Geometry, Mixture]]()
        for m in self._read:
            for p in m.parts:
                if (owner := p.owner) is None:
                    continue
                memory, key, step = block(owner.storage), geometry(owner), p.step()
                before = (self._steps.get(memory) or {}).get(key)
                if step is not None and before is not None and step.confirms(before):
                    out.add(p)
                elif m.spent and step is not None and before is None and p.stands_alone(step):
                    last.append((ref(memory), key, m))
                steps.append((memory, key, step))
        for memory, key, step in steps:
            known = self._steps.setdefault(memory, {})
            known.pop(key, None)
            if step is not None:
                known[key] = step
        looked_at = [(memory, key) for memory, key, _ in steps]
        self._last = [
            x for x in self._last if not any(x[0]() is m and x[1] == k for m, k in looked_at)
        ] + last
        return out

    def _told(self, found: Iterable[Mixture]) -> Iterator[Mixture]:
        for m in found:
            self._mixtures = [x for x in self._mixtures if x is not m]
            self._read.append(m)
            yield m

    def _used(self, found: Iterable[Mixture]) -> Iterator[Mixture]:
        for m in list(found):
            self._read = [x for x in self._read if x is not m]
            yield m.used()


def _contents(memory: Storage, o: Outline) -> NumpyArray:
    """What the numbers of an array are now, as a copy on the host, components last."""
    info = o._info
    view = memory.view(o.ptr, o.shape + info.inner, o.strides + info.steps, info.numpy)
    return np.array(memory.device.backend.to_host(view))


def _same(a: NumpyArray, b: NumpyArray) -> NumpyArray:
    """Which numbers are equal, to the bit."""
    return np.asarray((raw(a) == raw(b)).all(-1))
