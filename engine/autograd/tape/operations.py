"""Runs the operations of a tape on other memory: forward, backward, and with tangents."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.launch.derived import lifted, plain, planned
from engine.autograd.launch.evaluation import EvaluationFailed, QuietRuns, plain_accesses
from engine.autograd.launch.recorded_arguments import as_passed
from engine.autograd.tape.memory import (
    Gradients,
    Memories,
    Memory,
    Placement,
    placements,
    stretches,
)
from engine.cached import cached_property
from engine.compile.backend import Journal
from engine.compile.forms import Form
from engine.compile.pipeline import Request, Variants
from engine.diagnostics import EngineError, Span
from engine.draws import default_rng
from engine.runtime import events
from engine.runtime.device import HOST
from engine.runtime.execute import foreseen
from engine.runtime.plan import Plan
from engine.tape.captured_pass import Other
from engine.tape.outline import root_of
from engine.tape.records import LaunchRecord, LinearRecord, Record
from engine.tape.records.foreign import ForeignRecord

Array = NDArray[Any]

# The two sides of the test of a linear record differ by rounding alone: float64's, as a part.
_SAME = 1e-9


class NotReplayable(Exception):
    """Why a tape as a whole cannot be checked. site: the call that is to blame, if it is one."""

    def __init__(self, why: str, site: Span | None = None) -> None:
        super().__init__(why)
        self.site = site


class Operation:
    """One operation. reads, writes: the parts that it does so to. Does nothing by itself."""

    reads: Sequence[Placement] = ()
    writes: Sequence[Placement] = ()
    # Position among the tape's launches, -1 for what is none; the record behind it.
    launch = -1
    record: Record | None = None
    # Whether it left what some order of threads makes of it: that of a GPU, which has none.
    unordered = False

    @property
    def uses(self) -> Sequence[Placement]:
        """What its results depend on, beside what they are added to."""
        return self.reads

    @property
    def touched(self) -> Sequence[Placement]:
        """All that it needs to know the memory of."""
        return (*self.reads, *self.writes)

    def bind(self, memories: Memories) -> None:
        """Makes the views into a memories's memory that the other methods use."""

    def forward_own(self) -> None:
        """Runs it in its own precision."""

    def forward_seen(self) -> bool:
        """The same, and says whether other forms of it are known to stay inside of its arrays."""
        self.forward_own()
        return True

    def trust(self) -> None:
        """From now on it is not watched."""

    def forward(self) -> None:
        """Runs it lifted."""

    def forward_recorded(self) -> None:
        """Runs it lifted and keeps what its adjoint needs."""
        self.forward()

    def backward(self) -> None:
        """Runs its lifted adjoint, as the tape would."""

    def tangent(self) -> None:
        """Runs it lifted together with its tangent."""
        self.forward()

    def close(self) -> None:
        """Gives memory back."""


class ReplayedLaunch(Operation):
    """A kernel launch.

    restored: inputs that its adjoint reads as they were at the launch. other: of these, numbers
    that it reads otherwise.
    """

    def __init__(
        self, record: LaunchRecord, launch: int, runs: dict[frozenset[str] | None, QuietRuns],
        places: dict[object, Placement],
    ) -> None:  # fmt: skip
        """runs, places: what the launches of a tape share, to resolve each form and array once."""
        self.record: LaunchRecord = record
        self.launch = launch
        self.plan = record.plan
        self.exact: Variants = lifted(record.plan.variants)
        self.own_plan = planned(record.plan.kernel, record.plan.variants)
        self.exact_plan = planned(record.plan.kernel, self.exact)
        self.restored: frozenset[int] = frozenset()
        self.other: dict[int, Other] = {}
        self.parts: dict[int, Placement] = {}
        for p in self.plan.array_params:
            a = record.values[p.index]
            if a is not None:
                key = (a.ptr, tuple(a.shape), tuple(a.strides), id(a._info), root := root_of(a),
                       bool(a.requires_grad))  # fmt: skip
                part = places.get(key)
                if part is None:
                    part = places[key] = placements(a, root)[0]
                self.parts[p.index] = part
        self.reads = [self.parts[i] for i in self.plan.inputs if i in self.parts]
        self.writes = [self.parts[i] for i in self.plan.writes if i in self.parts]
        self.wrt = frozenset(
            p.name for p in self.plan.floats if p.index in self.parts and self.parts[p.index].wants
        )
        self.moving = frozenset(p.name for p in self.plan.floats if p.index in self.parts)
        self.journaled = self.exact.journaled(record.aliased)
        self._runs = runs.setdefault(self.journaled, QuietRuns(self.journaled))
        self._own_runs = runs.setdefault(None, QuietRuns(frozenset()))
        written = self.plan.variants.written
        self.useful = bool(self.wrt & written) and self.plan.kernel.enable_backward
        self.idle = 0 in record.dim
        self._journal: Journal | None = None
        self._kept: list[Array] = []

    @property
    def uses(self) -> Sequence[Placement]:
        return [self.parts[i] for i in self.plan.reads if i in self.parts]

    @property
    def touched(self) -> Sequence[Placement]:
        return list(self.parts.values())

    @cached_property
    def unordered(self) -> bool:  # type: ignore[override]
        if self.record.in_order or self.idle:
            return False
        classes = self.record.classes()
        return not classes.known or any(g.sharing == "ordered" for g in classes.groups)

    def requests(self) -> list[Request]:
        """What to compile before it runs lifted."""
        if self.idle:
            return []
        none: frozenset[str] = frozenset()
        host = HOST.backend
        out: list[Request] = [(host, self.exact, "forward", none, none)]
        if self.useful:
            out.append((host, self.exact, "adjoint", self.wrt, self.journaled))
            if self.exact.needs_journal(self.wrt, self.journaled):
                out.append((host, self.exact, "recorded", self.wrt, self.journaled))
        if self._runs.inside:
            return out
        return [foreseen(r, self.record.dim, self.args) for r in out]

    def bind(self, memories: Memories) -> None:
        self._memories = memories
        self.own_args = self._pack(self.own_plan, memories.own)
        self.args = self._pack(self.exact_plan, memories.main)
        self.adjoints = self._along(memories.grads, self.wrt)
        self.moved = self._along(memories.tangents, self.moving)

    def _along(self, memory: Memory | Gradients, names: frozenset[str]) -> bytes:
        """Gradients or tangents of some arrays, as further arguments."""
        return b"".join(
            memory.packed(self.parts[p.index], p.array_kind.ndim)
            for p in self.plan.floats
            if p.name in names and p.array_kind is not None
        )

    @property
    def views(self) -> dict[int, Array]:
        """Its arrays in the lifted memory, by parameter."""
        return {i: self._memories.main.view(p) for i, p in self.parts.items()}

    @property
    def tangents(self) -> dict[int, Array]:
        """Their tangents, of those that have any."""
        every = self.parts.items()
        return {i: self._memories.tangents.view(p) for i, p in every if p.float}

    def _pack(self, plan: Plan, memory: Memory, views: Mapping[int, Array] | None = None) -> bytes:
        """The arguments. views: of those arrays that are not the ones in the memory."""
        out: list[bytes] = []
        known = self.plan.variants.ir.params
        for i, (p, own) in enumerate(zip(plan.params, known, strict=True)):
            if views and i in views:
                out.append(p.packed(views[i]))
            elif p.array_kind is None:
                out.append(p.packed(as_passed(own.type, self.record.values[i])))
            elif i in self.parts:
                out.append(memory.packed(self.parts[i], p.array_kind.ndim))
            else:
                out.append(p.null)
        return b"".join(out)

    def _run(
        self, plan: Plan, form: Form, args: bytes, wrt: frozenset[str] = frozenset(),
        journal: Journal | None = None,
    ) -> Journal | None:  # fmt: skip
        return self._runs.run(plan, form, self.record.dim, args, wrt, journal=journal)

    def forward_own(self) -> None:
        self._own_runs.run(self.own_plan, "forward", self.record.dim, self.own_args)

    def forward_seen(self) -> bool:
        if not events.sanitizers():
            self.forward_own()
            return True
        inside = self._own_runs.run_inside(self.own_plan, self.record.dim, self.own_args)
        return inside and plain_accesses(self.plan.variants)

    def trust(self) -> None:
        self._runs.inside = True

    def forward(self) -> None:
        self._run(self.exact_plan, "forward", self.args)

    def forward_recorded(self) -> None:
        if self.idle:
            return
        args = self.args
        if self.restored:
            every = self.views
            views = {i: every[i].copy() for i in self.restored}
            for i, (where, values) in self.other.items():
                views[i][where] = values
            self._kept = list(views.values())
            args = self._pack(self.exact_plan, self._memories.main, views)
        self.adjoint_args = args + self.adjoints
        form: Form = "recorded" if self.useful else "forward"
        self._journal = self._run(self.exact_plan, form, self.args, self.wrt)

    def backward(self) -> None:
        if not self.useful or self.idle:
            return
        # What native replays write is put back, as the tape does.
        params, kept = self.plan.params, {}
        if self.exact.rewritten:
            written = (i for i in self.parts if params[i].name in self.exact.rewritten)
            kept = {i: self.views[i].copy() for i in written}
        self._run(self.exact_plan, "adjoint", self.adjoint_args, self.wrt, self._journal)
        for i, was in kept.items():
            self.views[i][...] = was

    def tangent(self) -> None:
        if self.idle:
            return
        made = self.exact
        try:
            made.tangent_ir(self.moving)
        except EngineError:  # a gradient of the user's own that has no transpose: by its code
            made = plain(made)
        try:
            made.tangent_ir(self.moving)
        except (TypeError, EngineError) as why:
            raise EvaluationFailed(f"{self.plan.kernel.key!r} has no forward mode: {why}") from None
        plan = planned(self.plan.kernel, made)
        self._run(plan, "tangent", self.args + self.moved, self.moving)

    def close(self) -> None:
        self._journal = None


class ReplayedLinear(Operation):
    """A linear function of an array, or a fill: what that wrote is seen when it is read.

    Its backward pass is `reverse` of the record, which tapes run, on arrays in the lifted memory.
    """

    def __init__(
        self, record: LinearRecord, writes: Sequence[Placement], reads: Sequence[Placement]
    ) -> None:
        self.record: LinearRecord = record
        self.writes, self.reads = writes, reads
        self._pairs = list(zip(writes, reads, strict=True)) if reads else []

    @staticmethod
    def of(record: LinearRecord) -> ReplayedLinear:
        """A record on its own arrays."""
        dest, *sources = (placements(a, root_of(a)) for a in record.arrays)
        return ReplayedLinear(record, dest, sources[0] if sources else [])

    @property
    def fills(self) -> bool:
        """Whether the values are of the host, and not known here."""
        return self.record.from_host

    @property
    def kind(self) -> Hashable:
        """Equal for those of which one test of their backward pass is enough."""
        parts = ((p.shape, p.strides, id(p.info), p.wants) for p in self.touched)
        return self.record.kind, self.record.numbers, *parts

    def bind(self, memories: Memories) -> None:
        own, main, tangents = memories.own, memories.main, memories.tangents
        self._own = [(own.view(d), own.view(s)) for d, s in self._pairs]
        self._main = [(main.view(d), main.view(s)) for d, s in self._pairs]
        self._moved = [(tangents.view(d), tangents.view(s))
                       for d, s in self._pairs if d.float and s.float]  # fmt: skip
        moving = {id(d) for d, s in self._pairs if s.float}
        self._still = [tangents.view(d) for d in self.writes if d.float and id(d) not in moving]
        self._records = [
            self.record.on(*map(memories.array, parts))
            for parts in (self._pairs or zip(self.writes)) if parts[0].wants
        ]  # fmt: skip

    def _store(self, pairs: Sequence[tuple[Array, Array]]) -> None:
        with np.errstate(all="ignore"):
            for dest, src in pairs:
                np.copyto(dest, self.record.forward(src.copy()), casting="unsafe")

    def forward_own(self) -> None:
        self._store(self._own)

    def forward(self) -> None:
        self._store(self._main)

    def tangent(self) -> None:
        self.forward()
        self._store(self._moved)
        for x in self._still:
            x.fill(0)

    def backward(self) -> None:
        before = events.without_recording()
        try:
            for r in self._records:
                r.reverse()
        finally:
            events.restore(before)

    def mismatch(self) -> tuple[float, float] | None:
        """What its backward pass and its tangent say of a displacement, where these differ.

        That is <v, J'w> and <Jv, w>, in memory of its own where no two of its arrays meet.
        """
        rng = default_rng(0x11EA)
        apart = 1 << 62  # more than the addresses that arrays have
        writes = [replace(p, root=0) for p in self.writes]
        reads = [replace(p, root=1, ptr=p.ptr + apart) for p in self.reads]
        parts = [*writes, *reads]
        memories = Memories(stretches((p.lo, p.hi) for p in parts), parts)
        alone = ReplayedLinear(self.record, writes, reads)
        alone.bind(memories)
        for p in parts:
            if p.wants:  # numbers of one sign do not cancel
                for memory in (memories.tangents, memories.grads):
                    memory.view(p)[...] = rng.uniform(0.5, 1.5, p.shape + p.info.inner)
        v = memories.tangents.copy()
        alone.tangent()
        forward = memories.grads.dot(memories.tangents)
        alone.backward()
        backward = memories.grads.dot(v)
        if not np.isfinite(forward):  # constants that are not, or that are too large
            return None
        close = abs(forward - backward) <= _SAME * max(abs(forward), abs(backward))
        return None if close else (backward, forward)


class OutsideWrite(Operation):
    """Elements that got other values between two records, unseen by the tape.

    before: the operation that found them there. silent: the tape knows of the write.
    """

    def __init__(
        self, part: Placement, where: Array, values: Array, before: Operation, silent: bool
    ) -> None:
        self.writes = [part]
        self.before = before
        self.silent = silent
        self._where, self._values = where, values

    def bind(self, memories: Memories) -> None:
        (part,) = self.writes
        self._main = memories.main.view(part)
        self._own = memories.own.view(part)
        self._tangent = memories.tangents.view(part) if part.float else None

    def forward(self) -> None:
        self._main[self._where] = self._values

    def forward_own(self) -> None:
        self._own[self._where] = self._values

    def tangent(self) -> None:
        self.forward()
        if self._tangent is not None:
            self._tangent[self._where] = 0.0


def operations_of(
    records: Sequence[Record], foreign: Callable[[ForeignRecord], Operation]
) -> list[Operation]:
    """The operations of a tape's records, one for each. Raises NotReplayable.

    foreign: makes those of other frameworks.
    """
    maker = _Maker(foreign)
    for r in records:
        r.replay(maker)
    return maker.made


class _Maker:
    """Makes the operations of a tape."""

    def __init__(self, foreign: Callable[[ForeignRecord], Operation]) -> None:
        self.made: list[Operation] = []
        self._foreign = foreign
        self._launches = 0
        self._runs: dict[frozenset[str] | None, QuietRuns] = {}
        self._places: dict[object, Placement] = {}

    def launch(self, record: LaunchRecord) -> None:
        self.made.append(ReplayedLaunch(record, self._launches, self._runs, self._places))
        self._launches += 1

    def linear(self, record: LinearRecord) -> None:
        self.made.append(ReplayedLinear.of(record))

    def foreign(self, record: ForeignRecord) -> None:
        self.made.append(self._foreign(record))

    def refuse(self, record: Record, why: str) -> None:
        raise NotReplayable(why, record.site)
