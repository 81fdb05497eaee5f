"""A recorded tape as one function, from its leaf arrays to its results in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np

from engine.autograd.launch.confirmed import ruled
from engine.autograd.launch.derived import can_lift, generated
from engine.autograd.tape.discovery import Leaf, discover
from engine.autograd.tape.memory import (
    Memories,
    Memory,
    Placement,
    Region,
    mixed,
    placements,
    stretches,
)
from engine.autograd.tape.operations import (
    NotReplayable,
    Operation,
    OutsideWrite,
    ReplayedLaunch,
    ReplayedLinear,
    operations_of,
)
from engine.autograd.tape.recorded_tape import RecordedTape
from engine.autograd.tape.stretches import ReplayedStretch
from engine.classes import dataclass
from engine.compile.pipeline import prefetch
from engine.runtime import events
from engine.runtime.watch import watching
from engine.tape.captured_pass import Other
from engine.tape.outline import root_of

# Bytes of arrays whose whole tape is still checked: about ten times as much is needed for it.
LIMIT = 512 << 20


@dataclass(frozen=True)
class Replay:
    """A tape's operations on memory of their own.

    after: writes between the last operation and the backward pass. leaves: what comes from
    outside; start: the contents of all memory before the tape. outputs: what gets cotangents.
    inside: whether it is known that no operation accesses anything outside, wherever leaves are.
    """

    operations: Sequence[Operation]
    after: Sequence[OutsideWrite]
    leaves: Sequence[Leaf]
    outputs: Sequence[Placement]
    memories: Memories
    start: Memory
    inside: bool

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Where integers that come of floats may be indices, accesses outside do nothing."""
        with nullcontext() if self.inside or events.sanitizers() else watching():
            yield

    def begin(self) -> None:
        """Puts the contents from before the tape into memory."""
        self.memories.main.take(self.start)

    def forward(self) -> None:
        """Runs all from what is in memory."""
        for s in self.operations:
            s.forward()

    def record(self) -> None:
        """Runs all from the start, ready for `backward`."""
        self.begin()
        for s in self.operations:
            s.forward_recorded()
        for s in self.after:
            s.forward()

    def record_rounded(self) -> None:
        """The same with every value rounded to its own precision between the operations."""
        own, main = self.memories.own, self.memories.main
        self.begin()
        steps = (*self.operations, *self.after)
        with np.errstate(all="ignore"):
            for p in {p.key: p for s in steps for p in s.touched}.values():
                own.view(p)[...] = main.view(p)
            for s in steps:
                s.forward_recorded()
                s.forward_own()
                for p in s.writes:
                    main.view(p)[...] = own.view(p)

    @contextmanager
    def healed(self) -> Iterator[None]:
        """Has adjoints read what their launches did, whatever was overwritten since."""
        launches = [s for s in self.operations if isinstance(s, ReplayedLaunch)]
        before = [(s.other, s.restored) for s in launches]
        for s, _, meeting in _overwritten(self.operations, self.after, self.memories.spans):
            s.other, s.restored = {}, frozenset(meeting)
        stretches = [s for s in self.operations if isinstance(s, ReplayedStretch)]
        kept = [s.restored for s in stretches]
        for x in stretches:
            x.restored = True
        try:
            yield
        finally:
            for x, was in zip(stretches, kept, strict=True):
                x.restored = was
            for s, (other, restored) in zip(launches, before, strict=True):
                s.other, s.restored = other, restored

    @property
    def ruled(self) -> bool:
        """Whether no launch has a derivative that is written by hand."""
        return all(
            ruled(s.plan.variants.ir) for s in self.operations if isinstance(s, ReplayedLaunch)
        )

    @property
    def generated(self) -> bool:
        """Whether no launch has a derivative that is written by hand; replays may be."""
        return all(
            generated(s.plan.variants) for s in self.operations if isinstance(s, ReplayedLaunch)
        )

    def close(self) -> None:
        """Gives memory back."""
        for s in self.operations:
            s.close()


def replay(tape: RecordedTape) -> Replay:
    """A tape, ready to be run again. Raises NotReplayable where that cannot be."""
    operations = operations_of(tape.records, ReplayedStretch)
    for s in operations:
        if isinstance(s, ReplayedLaunch) and not can_lift(s.plan.variants):
            raise NotReplayable(
                f"kernel {s.plan.kernel.key!r} has no equivalent float64 form",
                s.record.site,
            )
    seeded = [p for a in tape.seeded for p in placements(a, root_of(a)) if p.float]
    touched = [p for s in operations for p in s.touched] + seeded
    parts = list({p.key: p for p in touched}.values())
    spans = stretches((p.lo, p.hi) for p in parts)
    if sum(hi - lo for lo, hi in spans) > LIMIT:
        raise NotReplayable("its arrays are too large to be replayed in one piece")
    if mixed(parts, spans):
        raise NotReplayable("some memory is read as two types")
    outputs = seeded or _ends(operations, spans)
    if not outputs:
        raise NotReplayable("nothing that it computes requires a gradient")
    memories = Memories(spans, parts)
    for p in parts:
        memories.main.view(p)
        if p.float:
            memories.tangents.view(p)
    for s in operations:
        s.bind(memories)
    start = memories.main.zeros()
    found = discover(tape, operations, parts, memories, start)
    if found.inside:
        for s in operations:
            s.trust()
    prefetch([r for s in operations if isinstance(s, ReplayedLaunch) for r in s.requests()])
    for s in (*found.operations, *found.after):
        if isinstance(s, OutsideWrite):
            s.bind(memories)
    _restore_inputs(tape, found.operations, found.after, spans)
    return Replay(
        found.operations, found.after, found.leaves, outputs, memories, start, found.inside
    )


def _ends(operations: Sequence[Operation], spans: Sequence[tuple[int, int]]) -> list[Placement]:
    """Float arrays with gradients that the tape writes last and that nothing reads then."""
    found: list[Placement] = []
    used = Region(spans)
    for s in reversed(operations):
        if not (isinstance(s, ReplayedLinear) and s.fills):
            ends = [p for p in s.writes if p.wants and not used.meets(p)]
            found += {p.key: p for p in ends}.values()
        for p in (*s.reads, *s.writes):
            used.add(p)
    return found


def _restore_inputs(
    tape: RecordedTape, operations: Sequence[Operation], after: Sequence[OutsideWrite],
    spans: Sequence[tuple[int, int]],
) -> None:  # fmt: skip
    """Says which launches must keep copies of what they read, for their adjoints.

    A backward pass that nobody ran is not run here with integers that were overwritten:
    they may be indices into another array.
    """
    for s in operations:
        if isinstance(s, ReplayedStretch):
            s.restored = tape.restored
    others: dict[int, dict[int, Other]] = {}
    for (position, i), other in tape.read.items():
        others.setdefault(id(tape.records[position]), {})[i] = other
    for launch, inputs, meeting in _overwritten(operations, after, spans):
        launch.other = others.get(id(launch.record), {})
        kept = {i for i in meeting if tape.restored or not (inputs[i].float or tape.ran)}
        launch.restored = frozenset(launch.other) | kept


def _overwritten(
    operations: Sequence[Operation], after: Sequence[OutsideWrite],
    spans: Sequence[tuple[int, int]],
) -> Iterator[tuple[ReplayedLaunch, Mapping[int, Placement], set[int]]]:  # fmt: skip
    """The launches, last first, with their inputs, and which of these are written to later."""
    later = Region(spans)
    for late in after:
        later.add(late.writes[0])
    for s in reversed(operations):
        if isinstance(s, ReplayedLaunch):
            inputs = {i: p for i, p in s.parts.items() if i in s.plan.inputs}
            yield s, inputs, {i for i, p in inputs.items() if later.meets(p)}
        for p in s.writes:
            later.add(p)
