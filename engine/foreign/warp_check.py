"""Watches and checks tapes of NVIDIA Warp."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import ModuleType

from engine.autograd.facts import Overwritten
from engine.autograd.launch.experience import Experience
from engine.autograd.results import LaunchResult, TapeResult, Unchecked
from engine.autograd.tape.check import CheckInterrupted
from engine.autograd.tape.options import Options
from engine.foreign.collection import Collection
from engine.foreign.seams import Part
from engine.foreign.warp_launches import LaunchCheck, meaning_warps
from engine.foreign.warp_overwrites import overwritten
from engine.foreign.warp_tapes import WarpTape, WarpWatch
from engine.foreign.warp_whole import FoundWhole, check_whole, some_wrong

# Called with the number of launches that are done, of how many, and the next one's kernel.
Progress = Callable[[int, int, str], None]


class Watcher:
    """Watches the tapes of Warp. See `engine.foreign.watched`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._watch = WarpWatch(collection.budget.take, collection.wants)

    def parts(self, module: ModuleType) -> Mapping[str, Part]:
        """Nothing where what is called Warp is the engine, or something else."""
        if "__is_engine__" in vars(module) or not hasattr(module, "Tape"):
            return {}
        self._collection.tapes = self
        return self._watch.parts(module)

    def remove(self) -> None:
        """Ends it."""
        self._watch.uninstall()

    @property
    def _tapes(self) -> list[WarpTape]:
        return [t for t in self._watch.tapes if t.launches or t.functions]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many launches each tape has."""
        return tuple(len(t.launches) for t in self._tapes)

    @property
    def names(self) -> tuple[str, ...]:
        """The kernels that were launched on tapes."""
        return tuple(dict.fromkeys(x.kernel.key for t in self._tapes for x in t.launches))

    def results(
        self, first: int, options: Options, launches_of: Callable[[int], tuple[int, ...] | None],
        progress: Progress | None,
    ) -> Iterator[TapeResult]:  # fmt: skip
        """Checks the tapes, one after the other, and forgets them."""
        check = LaunchCheck(
            self._watch.warp, self._watch.translation, options.experience or Experience()
        )
        tapes = self._tapes
        steps = Steps(sum(len(t.launches) for t in tapes), progress)
        for number, tape in enumerate(tapes, first):
            wanted = launches_of(number)
            if wanted is not None:
                own = replace(options, launches=wanted)
                yield self._checked(number, tape, check, own, steps)
            tape.launches.clear()
            tape.gradients.clear()

    def _checked(
        self, number: int, tape: WarpTape, check: LaunchCheck, options: Options, steps: Steps
    ) -> TapeResult:
        found: dict[int, LaunchResult] = {}
        left: dict[int, LaunchResult] = {}  # to the check of the tape as a whole
        try:
            with meaning_warps():
                for index, launch in enumerate(tape.launches):
                    key = launch.kernel.key
                    steps.next(key)
                    chosen = not options.launches or index in options.launches
                    if not chosen or not options.wants(key):
                        continue
                    like = None if options.partial else check.left(index, launch, options)
                    if like is not None:
                        left[index] = like
                    else:
                        found[index] = check.check(index, launch, options)
                if options.partial:
                    return _result(number, tape, found)
                lost = tuple(overwritten(self._watch.warp, tape, self._watch.writes))
                writes = self._watch.writes
                whole = check_whole(check, tape, tuple(found.values()), writes, bool(lost))
                for index, like in left.items():
                    answered = index in whole.answered
                    found[index] = (
                        like if answered else check.check(index, tape.launches[index], options)
                    )
                if left and some_wrong(found.values()):
                    whole = FoundWhole(None)
        except KeyboardInterrupt:
            raise CheckInterrupted(_result(number, tape, found)) from None
        return replace(_result(number, tape, found, lost), whole=whole.result)


class Steps:
    """Counts launches, and tells of them."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def next(self, kernel: str) -> None:
        """Says which launch comes next."""
        if self._progress is not None:
            self._progress(self._done, self._total, kernel)
        self._done += 1


def _result(
    number: int, tape: WarpTape, launches: Mapping[int, LaunchResult],
    lost: tuple[Overwritten, ...] = (),
) -> TapeResult:  # fmt: skip
    found = [launches[index] for index in sorted(launches)]
    unchecked = [
        Unchecked(x.index, f"launch of kernel {x.kernel}", x.skipped, x.site)
        for x in found if x.skipped
    ]  # fmt: skip
    unchecked += [
        Unchecked(
            -1, "a function recorded with Tape.record_func",
            "only kernel launches can be checked; its backward code is the user's own",
            site.span if site is not None else None,
        )
        for site in tape.functions
    ]  # fmt: skip
    if tape.functions:  # which may solve for what a launch computes the residual of
        meant = [f for f in lost if f.kind == "outside"]
        lost = tuple(f for f in lost if f not in meant)
        unchecked += [
            Unchecked(
                -1, f"the array that kernel {f.kernel} reads as `{f.argument}`",
                "it has other contents during the backward pass, and the functions "
                "recorded with Tape.record_func may need that", f.site,
            )
            for f in meant
        ]  # fmt: skip
    return TapeResult(number, tuple(found), tuple(unchecked), facts=lost)
