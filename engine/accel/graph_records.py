"""Launches that a captured graph records on a tape in one call, and their backward pass.

What is the same each time the graph runs is worked out once. Records are made where somebody looks
at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

from engine import config
from engine.accel.backward import is_guarded
from engine.accel.batch import Batch
from engine.accel.graph_steps import (
    STALE,
    Writes,
    as_one,
    as_step,
    is_compiled,
    is_quiet,
    limits,
)
from engine.accel.launcher import maker, row_words
from engine.compile.backend import Journal, Limits, Outcome, Step
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.deferred import DeferredLaunch, Operation
from engine.runtime.execute import Executable
from engine.runtime.guards import Guard
from engine.runtime.plan_parts import NOBODY, Selection
from engine.runtime.storage import Hold, Storage
from engine.tape.records import LaunchRecord, Record

_MOST = 256  # parts of one memory that launches of one call hold or write
Place = tuple[Storage, int, int]


class _Range:
    """What launches of one call do to a range of bytes, in this order."""

    __slots__ = ("held", "held_again", "written")

    def __init__(self) -> None:
        self.held = self.written = self.held_again = False

    def hold(self) -> None:
        if self.written:
            self.held_again = True
        else:
            self.held = True


class Ranges(dict[Storage, tuple[int, int]]):
    """What may be read again: by memory, a range of addresses around all of it."""

    def add(self, a: array) -> None:
        lo, hi = self.get(a.storage, (a.lo, a.hi))
        self[a.storage] = (min(a.lo, lo), max(a.hi, hi))

    def meets(self, a: array) -> bool:
        """Whether an array may have some of it."""
        known = self.get(a.storage)
        return known is not None and a.lo < known[1] and known[0] < a.hi


class _Order:
    """What launches of one call hold, write and may read again, by memory.

    A hold is taken before all of them run and anything is announced, or after that. It is as if
    each launch ran by itself where no range is written after it was held again, and none that an
    earlier launch may read again.

    read: what that is. holds: of each launch, the ranges that it holds, and whether again.
    """

    def __init__(self) -> None:
        self._known: dict[Storage, dict[tuple[int, int], _Range]] = {}
        self.read = Ranges()
        self.holds: list[list[tuple[Place, bool]]] = []

    def fits(self, launch: GraphLaunch) -> bool:
        """Whether a launch may follow the others; takes note of it, either way."""
        if any(map(self.read.meets, launch.writes)):
            return False
        holds = []
        for a in launch.held:
            found = self._range(a, writing=False)
            if found is None:
                return False
            found.hold()
            holds.append(((a.storage, a.lo, a.hi), found.held_again))
        for a in launch.writes:
            found = self._range(a, writing=True)
            if found is None or found.held_again:
                return False
            found.written = True
        for a in launch.watched:
            self.read.add(a)
        self.holds.append(holds)
        return True

    def held(self) -> tuple[list[Place], list[Place]]:
        """What is held before writes are announced, and after that."""
        all_of_it = [(s, *ends, r) for s, ranges in self._known.items()
                     for ends, r in ranges.items()]  # fmt: skip
        return (
            [(s, lo, hi) for s, lo, hi, r in all_of_it if r.held],
            [(s, lo, hi) for s, lo, hi, r in all_of_it if r.held_again],
        )

    def _range(self, a: array, writing: bool) -> _Range | None:
        """That of an array; None where others meet it, unless all do the same."""
        ranges = self._known.setdefault(a.storage, {})
        mine = (a.lo, a.hi)
        if mine not in ranges and len(ranges) >= _MOST:
            return None
        for ends, r in ranges.items():
            if ends != mine and ends[0] < a.hi and a.lo < ends[1]:
                if (r.held if writing else r.written) or r.held_again:
                    return None
        return ranges.setdefault(mine, _Range())


class GraphLaunch:
    """A launch that is recorded, as it is each time."""

    __slots__ = ("aliased", "call", "held", "selection", "site", "step", "watched", "writes")

    def __init__(self, operation: DeferredLaunch, now: Limits) -> None:
        call = self.call = operation.launch
        plan, values = call.plan, call.values
        self.site = operation.launch.site
        self.aliased = plan.aliased(values) if plan.pairs else NOBODY
        self.selection: Selection = plan.select(values, self.aliased)
        self.step: Step | None = None
        if not self.selection.saves_journal:
            self.step = as_step(self.selection.executable, call, now)
        self.held = _arrays(values, plan.held)
        self.writes = _arrays(values, plan.writes)
        self.watched = _arrays(values, self.selection.watched)

    def arrays(self) -> list[array]:
        """All of them."""
        return _arrays(self.call.values, [p.index for p in self.call.plan.array_params])

    @property
    def adjoint(self) -> Executable | Literal[False] | None:
        """What runs it backward: False where nothing does, None where a record has to look."""
        selection = self.selection
        if not selection.useful:
            # That no gradient gets there is told.
            return None if selection.wrt & self.call.plan.variants.written else False
        return selection.adjoint if self.call.dim in selection.ready_grids else None

    def back(self, adjoint: Executable, grads: Iterable[array], now: Limits) -> Step | None:
        """Its adjoint as one of several launches. grads: what it adds to."""
        blob = b"".join([self.call.blob, *(g._packed for g in grads)])
        return adjoint.step(self.call.dim, blob, now)


class Asked:
    """What decides how launches are recorded: whether arrays require gradients, and kernels."""

    __slots__ = ("_flags", "_kernels", "_words")

    def __init__(self, arrays: Iterable[array], launches: Iterable[GraphLaunch]) -> None:
        self._flags = tuple((a, asks(a)) for a in arrays)
        self._words = row_words(self._flags, array)
        kernels = {x.call.plan.kernel for x in launches}
        self._kernels = tuple((k, k.enable_backward) for k in kernels)

    def is_same(self) -> bool:
        """Whether all of that is as it was."""
        functions, words = maker.functions, self._words
        if functions is None or words is None or not functions.ask_same(words.at):
            for a, did in self._flags:
                if asks(a) is not did:
                    return False
        for k, did in self._kernels:  # noqa: SIM110  # generators take twice the time
            if k.enable_backward is not did:
                return False
        return True


def _held(places: Iterable[Place]) -> list[Hold]:
    """Holds on what is there now."""
    return [s.hold(lo, hi) for s, lo, hi in places]


def floats_of(launches: Iterable[GraphLaunch]) -> dict[int, array]:
    """The arrays of launches that may have gradients, each once."""
    return {id(a): a for x in launches for p in x.call.plan.floats
            if (a := x.call.values[p.index]) is not None}  # fmt: skip


def _arrays(values: Sequence[Any], places: Sequence[int]) -> list[array]:
    return [values[i] for i in places if values[i] is not None]


class _Back:
    """How a piece goes backward. grads: arrays with their gradients. numbers: of the launches."""

    __slots__ = ("_words", "batch", "grads", "numbers", "writes")

    def __init__(
        self, batch: Batch, grads: dict[int, tuple[array, array]], numbers: list[int],
        writes: Writes,
    ) -> None:  # fmt: skip
        self.batch = batch
        self.grads = tuple(grads.values())
        self._words = row_words(self.grads, array)
        self.numbers = numbers
        self.writes = writes

    def is_ready(self, now: Limits) -> bool:
        """Whether it adds to the gradients that arrays have now."""
        if self.batch.limits != now or not (self.batch.fits() and self.writes.are_free()):
            return False
        functions = maker.functions
        words = self._words
        if functions is not None and words is not None and functions.have_same(words.at):
            return True
        for a, g in self.grads:  # noqa: SIM110  # a generator takes twice the time
            if a._grad is not g and a.grad is not g:
                return False
        return True


class Piece:
    """Launches of a graph that one call runs and records, on the tape that is active."""

    def __init__(
        self, launches: Sequence[GraphLaunch], operations: Sequence[Operation], order: _Order,
        batch: Batch,
    ) -> None:  # fmt: skip
        self._operations = operations
        self._batch = batch
        self._order = order
        self.launches = launches
        self._writes = Writes(a for x in launches for a in x.writes)
        first, again = order.held()
        self._before, self._after = first, again
        before = {p: k for k, p in enumerate(first)}
        after = {p: k for k, p in enumerate(again, len(before))}
        # Of each launch, where its holds are.
        self._slots = [
            [(after if again else before)[place] for place, again in holds] for holds in order.holds
        ]
        self.floats = tuple(floats_of(launches).values())
        wholes = [a if a._whole is None else a._whole for x in launches for a in x.arrays()]
        self.arrays = tuple({id(a): a for a in wholes}.values())  # as records have them
        self._asked = Asked(self.floats, launches)
        self._back: _Back | None = None
        self._alone: Limits | None = None  # with which adjoints have to run one by one

    def __call__(self) -> object:
        tape: Any = events.tape()
        same = self._asked.is_same()  # each is recorded, and goes backward, as it did
        if not (
            same and is_quiet() and tape.has_default_settings() and self._batch.fits()
            and self._writes.are_free() and not self._writes.meet(tape._overwrites._read)
        ):  # fmt: skip
            for operation in self._operations:
                operation()
            return None if same else STALE
        holds = _held(self._before)
        self._writes.announce()
        holds += _held(self._after)
        tape._overwrites.watched(self._order.read)
        done = [0]
        try:
            self._batch.run(partial(self._tell, done), done)
        finally:
            tape.keep(Replay(self, holds, done[0]))
        return None

    def _tell(self, done: list[int], number: int, came: Outcome) -> None:
        launch = self.launches[number]

        def ran(journal: Journal | None) -> None:
            assert journal is None
            done[0] = number + 1

        launch.selection.executable.finish(came, launch.call.dim, ran)

    def held(self, number: int, holds: Sequence[Hold]) -> list[Hold | None]:
        """What a launch holds, of the holds of a run."""
        call = self.launches[number].call
        mine = (holds[k] for k in self._slots[number])
        return [None if call.values[i] is None else next(mine) for i in call.plan.held]

    def back(self) -> _Back | None:
        """What runs all of it backward now; None where each record has to look."""
        if not self._asked.is_same():
            return None
        now = limits()
        if self._back is None or not self._back.is_ready(now):
            self._back = None if self._alone == now else self._prepared_back(now)
        return self._back

    def _prepared_back(self, now: Limits) -> _Back | None:
        steps: list[Step] = []
        numbers: list[int] = []
        grads: dict[int, tuple[array, array]] = {}
        written: list[array] = []
        for number in range(len(self.launches) - 1, -1, -1):
            launch = self.launches[number]
            adjoint = launch.adjoint
            if adjoint is None:
                return None
            if adjoint is False:
                continue
            mine = []
            for i in launch.selection.gradients:
                a = launch.call.values[i]
                if id(a) not in grads:
                    grad = None if a._shared is not None else a.grad
                    if grad is None:
                        return None
                    grads[id(a)] = (a, grad)
                mine.append(grads[id(a)][1])
            written += mine
            step = launch.back(adjoint, mine, now)
            if step is None:
                self._alone = now
                return None
            steps.append(step)
            numbers.append(number)
        batch = as_one(steps, now)
        found = None if batch is None else _Back(batch, grads, numbers, Writes(written))
        return found if found is not None and found.is_ready(now) else None


class Replay:
    """What one run of a piece recorded. holds: on what its inputs contained. count: its launches.

    stacks: memory that threads of the last backward pass saved, by launch, where there is any.
    """

    __slots__ = ("count", "holds", "piece", "stacks")

    def __init__(self, piece: Piece, holds: Sequence[Hold], count: int) -> None:
        self.piece = piece
        self.holds = holds
        self.count = count
        self.stacks: dict[int, int] = {}

    @property
    def arrays(self) -> Sequence[array]:
        """The arrays of its launches."""
        return self.piece.arrays

    def records(self) -> Iterator[Record]:
        """The records that it stands for."""
        holds, piece = self.holds, self.piece
        for number in range(self.count):
            x = piece.launches[number]
            call = x.call
            record = LaunchRecord(
                call.plan, call.dim, call.values, call.blob, call.inputs, x.site, x.aliased,
                x.selection,
            )  # fmt: skip
            record.held = piece.held(number, holds)
            record.stack_bytes = self.stacks.get(number, 0)
            yield record

    def back(self) -> _Back | None:
        """What runs all of it backward; None where each record has to look."""
        return self.piece.back() if self.count == len(self.piece.launches) else None

    def backward(self, back: _Back) -> None:
        """Runs it so."""
        self.stacks = {}
        back.writes.announce()
        back.batch.run(partial(self._tell, back), [0])

    def _tell(self, back: _Back, number: int, came: Outcome) -> None:
        number = back.numbers[number]
        launch = self.piece.launches[number]
        adjoint = launch.selection.adjoint
        assert adjoint is not None
        self.stacks[number] = adjoint.finish(came, launch.call.dim).stack_bytes


def asks(a: array) -> bool:
    """Whether it counts as one with a gradient (see `Plan.select`)."""
    return a._flag and (a._origin is None or a.requires_grad)


def may_go_back(replays: Sequence[Replay]) -> Sequence[_Back] | None:
    """What runs replays backward, as one call each; None where each record has to look.

    Nothing happens here.
    """
    if not is_quiet() or config.overwrites == "present":
        return None
    if Guard.made and any(is_guarded(a) for r in replays for a in r.piece.arrays):
        return None
    found = []
    for r in replays:
        back = r.back()
        if back is None:
            return None
        if array.retains and any(a.retain_grad and a.requires_grad for a in r.piece.floats):
            return None
        found.append(back)
    return found


def pieces(operations: Sequence[DeferredLaunch], now: Limits) -> list[Operation] | None:
    """Captured launches on a tape, in as few calls as can be; None where that is not known yet."""
    out: list[Operation] = []
    some: list[tuple[GraphLaunch, DeferredLaunch]] = []
    order = _Order()

    def close() -> None:
        nonlocal order
        if some:
            launches = [x for x, _ in some]
            batch = as_one([x.step for x in launches if x.step is not None], now)
            mine = [o for _, o in some]
            out.extend(mine if batch is None else [Piece(launches, mine, order, batch)])
        some.clear()
        order = _Order()

    for operation in operations:
        launch = GraphLaunch(operation, now)
        if not (launch.selection.saves_journal or is_compiled(launch.selection.executable)):
            return None  # the runs so far ended before it
        alone = launch.step is None or not _Order().fits(launch)
        if alone or not order.fits(launch):
            order = _Order()  # it has taken note of one more
            for x, _ in some:
                order.fits(x)
            close()
            order.fits(launch)
        if alone:
            out.append(operation)
            order = _Order()
        else:
            some.append((launch, operation))
    close()
    return out
