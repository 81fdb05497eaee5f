"""Checks a tape: every launch on it, and then its backward pass as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.launch.call import LaunchCall, owners
from engine.autograd.launch.check import CheckedLaunch, check_launch
from engine.autograd.launch.experience import Experience
from engine.autograd.results import LaunchResult, Remainders, TapeResult, Unchecked, WholeResult
from engine.autograd.tape.end_to_end import check_end_to_end
from engine.autograd.tape.options import Options, Progress
from engine.autograd.tape.recorded_tape import recorded_tape
from engine.autograd.tape.taylor import of_launch, of_whole
from engine.autograd.tape.whole import WholeCheck
from engine.autograd.variables.roles import Pair
from engine.diagnostics import Diagnostic, LaunchError
from engine.tape.capture import CapturedTape
from engine.tape.records import Record
from engine.tape.tape import Tape

PARTIAL = "only some of its launches were selected"


class CheckInterrupted(KeyboardInterrupt):
    """A check was interrupted. result: what was checked by then."""

    def __init__(self, result: TapeResult) -> None:
        super().__init__("the check was interrupted")
        self.result = result


def check_tape(
    tape: Tape | CapturedTape,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    kernels: Sequence[str] = (),
    skip_kernels: Sequence[str] = (),
    max_inputs: int = -1,
    max_outputs: int = -1,
    seed: int = 0,
    progress: Progress | None = None,
    order: int = 1,
    launches: Sequence[int] = (),
    end_to_end: bool = True,
    experience: Experience | None = None,
    taylor: bool = False,
) -> TapeResult:
    """Checks each launch of a tape (or of what `engine.capturing` kept of one).

    Every launch is compared along random directions, but for those of long programs that
    the tape as a whole may answer for (see `Experience`). Single Jacobian entries are
    compared for the first launch of each kernel and shape, and wherever a direction
    disagrees; max_inputs and max_outputs limit them for each array. User arrays are
    only read. See `Tolerance` for eps, atol and rtol, and `Experience` for how closely the later
    launches of a kernel are looked at. experience: of the checks of other tapes of the same
    program, to go on from. taylor: adds the remainder test (see `taylor_test`), for kinds of
    launches and of tapes that `experience` has not seen yet.

    The tape as a whole is checked as well; where only some kernels are asked for, `whole` says that
    it was not. With order=2, the gradients of launches are checked for their own derivatives, too,
    where an adjoint can be differentiated; the result's `unchecked` says where not.

    launches: numbers of the launches to check; all where empty. end_to_end: False leaves out the
    tape as a whole.
    progress: called with how many steps are done, of how many, and the next one's kernel. A
    step is a launch, or the tape as a whole, which comes last and has an empty name.
    An interrupt (Ctrl-C) ends the check with CheckInterrupted, a KeyboardInterrupt whose
    `result` has what was found so far.
    """
    check_order(order)
    options = Options(
        Tolerance(eps, atol, rtol), tuple(kernels), tuple(skip_kernels), max_inputs, max_outputs,
        seed, order=order, whole=end_to_end, launches=tuple(launches),
        experience=experience or Experience(),
    )  # fmt: skip
    found = check(tape, options, progress)
    return replace(found, remainders=taylor_of(tape, options)) if taylor else found


def check_whole(
    tape: Tape | CapturedTape, launches: Sequence[LaunchResult], *, eps: float | None = None,
    atol: float | None = None, rtol: float | None = None, seed: int = 0,
) -> WholeResult:  # fmt: skip
    """The check of a tape as a whole, without its launches.

    launches: what their checks found, by themselves; see `check_tape` for the rest.
    """
    return check_end_to_end(tape, Tolerance(eps, atol, rtol), launches, seed)


def check_order(order: int) -> None:
    """Raises LaunchError (E405) for an order of derivatives that is not checked."""
    if not isinstance(order, int) or order not in (1, 2):
        raise LaunchError(
            Diagnostic("E405", f"order must be 1 or 2, got {order!r}",
                       help="2 checks the gradients of gradients, too")
        )  # fmt: skip


def taylor_of(
    tape: Tape | CapturedTape, options: Options, directions: int = 1
) -> tuple[Remainders, ...]:
    """The remainder tests of launches and tapes of new kinds."""
    experience = options.experience or Experience()
    found: list[Remainders] = []
    for index, record in selected(tape.records, options):
        launch = record.launch
        if launch is not None and experience.new((launch.plan.variants, tuple(launch.dim))):
            found += of_launch(index, launch, options.order, directions, options.seed)
    kernels = tuple(r.name for r in tape.records)
    if not options.partial and experience.new(kernels):
        found += of_whole(recorded_tape(tape), options.order, directions, options.seed)
    return tuple(found)


def check(
    tape: Tape | CapturedTape, options: Options, progress: Progress | None = None
) -> TapeResult:
    """The check behind `check_tape` and `gradcheck_tape`."""
    number = getattr(tape, "index", 0)
    try:
        found = with_facts(tape, check_records(tape.records, options, progress))
    except CheckInterrupted as stopped:
        raise CheckInterrupted(replace(stopped.result, tape=number)) from None
    if not options.whole:
        return found
    if options.partial:
        return replace(found, whole=WholeResult("skipped", reason=PARTIAL))
    found = with_whole(tape, options, found)
    if progress is not None:
        steps = len(found.launches) + 1
        progress(steps, steps, "")
    return found


def with_facts(tape: Tape | CapturedTape, found: TapeResult) -> TapeResult:
    """The result with the tape's number, and what was seen while it was recorded."""
    facts = () if isinstance(tape, Tape) else tuple(tape.facts)
    return replace(found, tape=getattr(tape, "index", 0), facts=facts)


def with_whole(
    tape: Tape | CapturedTape, options: Options, found: TapeResult, check: WholeCheck | None = None
) -> TapeResult:
    """The check of a tape as a whole, added to that of its launches.

    Launches that were left to it are looked at by themselves where it cannot answer for them.
    check: that was begun, if one was. Raises CheckInterrupted.
    """
    try:
        return _with_whole(tape, options, found, check or WholeCheck(tape, options))
    except CheckInterrupted as stopped:
        raise CheckInterrupted(_joined(seen(found), stopped.result)) from None
    except KeyboardInterrupt:
        raise CheckInterrupted(seen(found)) from None


def _with_whole(
    tape: Tape | CapturedTape, options: Options, found: TapeResult, check: WholeCheck
) -> TapeResult:
    result = check.result(found.launches)
    right = result.verdict == "pass" or result.parts_right
    covered = _launches(check.replayed.records) if right else 0
    left = {x.index for x in found.launches if _is_left(x) and x.index >= covered}
    if left:
        alone = check_records(tape.records, replace(options, launches=tuple(left), whole=False))
        others = (x for x in found.launches if x.index not in left)
        found = _joined(replace(found, launches=tuple(others)), alone)
        if not right and result.verdict != "skipped":
            result = check.result(found.launches)  # tells of what is wrong with its launches
    return replace(found, whole=result)


def _launches(records: Sequence[Record]) -> int:
    return sum(r.kernel is not None for r in records)


def _is_left(x: LaunchResult) -> bool:
    return any(p.by_whole for p in x.pairs)


def seen(found: TapeResult) -> TapeResult:
    """Without the launches that were left to the tape as a whole."""
    return replace(found, launches=tuple(x for x in found.launches if not _is_left(x)))


def _joined(a: TapeResult, b: TapeResult) -> TapeResult:
    """Both of one tape. unchecked: the functions on it are in both."""
    launches = sorted((*a.launches, *b.launches), key=lambda x: x.index)
    unchecked = dict.fromkeys((*a.unchecked, *b.unchecked))
    return replace(a, launches=tuple(launches), unchecked=tuple(unchecked))


def check_records(
    records: Sequence[Record], options: Options, progress: Progress | None = None
) -> TapeResult:
    """The check of the launches among some records, each by itself.

    Raises CheckInterrupted.
    """
    found: list[LaunchResult] = []
    experience = options.experience or Experience()
    todo = list(selected(records, options))
    steps = len(todo) + options.end_to_end
    try:
        for done, (index, record) in enumerate(todo):
            if progress is not None:
                progress(done, steps, record.name)
            checked = check_one(index, record, options, experience)
            found.append(checked.result)
            if options.keep is not None and checked.blocks is not None:
                options.keep(checked.result, checked.blocks)
    except KeyboardInterrupt:
        raise CheckInterrupted(seen(result_of(records, found))) from None
    if progress is not None:
        progress(len(todo), steps, "")
    return result_of(records, found)


def check_call(call: LaunchCall, pairs: Sequence[Pair] | None, options: Options) -> TapeResult:
    """The check of one launch. pairs: those to look at; None for all that it reads and writes."""
    if pairs is not None:
        mask = [
            (a, b) for p in pairs for a in owners(call, p.input) for b in owners(call, p.output)
        ]
        options = replace(options, masks={call.record.name: mask})
    return check_records([call.record], options)


def check_one(
    index: int, record: Record, options: Options, experience: Experience
) -> CheckedLaunch:
    """The check of one of the selected launches, by its number."""
    launch, r = record.launch, record
    if launch is None:
        assert r.definition is not None
        barred = LaunchResult(index, r.name, r.dim, (), r.definition, r.site, skipped=r.why)
        return CheckedLaunch(barred)
    # Who wants to keep what was compared wants that of each launch.
    key = experience.equal.key(launch) if options.keep is None else None
    same = experience.equal.found(key)
    if same is not None:
        return CheckedLaunch(replace(same, index=index, site=r.site))
    checked = check_launch(index, launch, options.of_launch(r.name), experience)
    experience.equal.add(key, checked.result)
    return checked


def selected(records: Sequence[Record], options: Options) -> Iterator[tuple[int, Record]]:
    """The launches to check, with their numbers."""
    launches = list(enumerate(r for r in records if r.kernel is not None))
    launches = launches[options.skip_to :]
    asked = frozenset(options.launches)
    for index, r in reversed(launches) if options.reverse else launches:
        if options.wants(r.name) and (not asked or index in asked):
            yield index, r


def result_of(records: Sequence[Record], found: Sequence[LaunchResult]) -> TapeResult:
    """The result for a tape of these records, with what was found of launches."""
    launches = sorted(found, key=lambda r: r.index)
    unchecked = [
        Unchecked(
            position, "a function recorded with Tape.record_func",
            "only kernel launches can be checked; its backward code is the user's own", r.site,
        )
        for position, r in enumerate(records)
        if r.function is not None
    ]  # fmt: skip
    for x in launches:
        if x.skipped:
            unchecked.append(Unchecked(x.index, f"launch of kernel {x.kernel}", x.skipped, x.site))
        if x.no_second:
            what = f"second derivative of kernel {x.kernel}"
            unchecked.append(Unchecked(x.index, what, x.no_second, x.site))
    return TapeResult(0, tuple(launches), tuple(unchecked))
