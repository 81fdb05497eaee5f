"""Checks every launch of a tape, at the values that its arguments had when it was recorded."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engine.autograd.blame import blame
from engine.autograd.launch_check import Block, LaunchCheck, Pair
from engine.autograd.nonfinite import locate
from engine.autograd.places import element
from engine.autograd.problem import Argument, LaunchFailed, Problem, lifted
from engine.autograd.results import (
    LaunchResult,
    PairResult,
    TapeResult,
    Unchecked,
    WholeResult,
)
from engine.autograd.second import NoSecond, check_second
from engine.autograd.tolerance import Tolerance
from engine.autograd.whole.check import check_whole
from engine.diagnostics import Diagnostic, LaunchError, Span
from engine.ir.nodes import Call, Function, walk
from engine.lang.types import ArrayType, is_float
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.tape.capture import CapturedTape
from engine.tape.records import LaunchRecord
from engine.tape.tape import Tape

Progress = Callable[[int, int, str], None]
Mask = Sequence[tuple[str | int, str | int]]


@dataclass(frozen=True)
class Options:
    """What to check and how. Kernel names are glob patterns; empty means all."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    kernels: tuple[str, ...] = ()
    skip_kernels: tuple[str, ...] = ()
    max_inputs: int = -1
    max_outputs: int = -1
    seed: int = 0
    masks: Mapping[str, Mask] | None = None
    reverse: bool = False
    skip_to: int = 0
    all_entries: bool = False
    whole: bool = True
    order: int = 1
    # Called with the result and the compared entries of each launch (for plots).
    keep: Callable[[LaunchResult, Mapping[Pair, Block]], None] | None = None

    @property
    def partial(self) -> bool:
        """Whether only a part of the tape was asked for."""
        return bool(self.kernels or self.skip_kernels or self.masks or self.skip_to)

    def wants(self, kernel: str) -> bool:
        if any(fnmatch.fnmatchcase(kernel, p) for p in self.skip_kernels):
            return False
        return not self.kernels or any(fnmatch.fnmatchcase(kernel, p) for p in self.kernels)


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
) -> TapeResult:
    """Checks each launch of a tape (or of what `engine.capturing` kept of one).

    Every launch is compared along random directions. Single Jacobian entries are
    compared for the first launch of each kernel and shape, and wherever a direction
    disagrees; max_inputs and max_outputs limit them for each array. User arrays are
    only read. See `Tolerance` for eps, atol and rtol.

    The tape as a whole is checked as well, unless only some kernels are asked for. With
    order=2, the gradients of launches are checked for their own derivatives, too, where an
    adjoint can be differentiated; the result's `unchecked` says where not.

    progress: called with how many launches are done, of how many, and the next one's kernel.
    An interrupt (Ctrl-C) ends the check with CheckInterrupted, a KeyboardInterrupt whose
    `result` has what was found so far.
    """
    if order not in (1, 2):
        raise LaunchError(
            Diagnostic("E405", f"order must be 1 or 2, got {order!r}",
                       help="2 checks the gradients of gradients, too")
        )  # fmt: skip
    options = Options(
        Tolerance(eps, atol, rtol), tuple(kernels), tuple(skip_kernels), max_inputs, max_outputs,
        seed, order=order,
    )  # fmt: skip
    return run_checks(tape, options, progress)


def run_checks(
    tape: Tape | CapturedTape, options: Options, progress: Progress | None = None
) -> TapeResult:
    """The check behind `check_tape` and `gradcheck_tape`."""
    launches: list[LaunchResult] = []
    unchecked: list[Unchecked] = []
    seen: set[Any] = set()
    todo = list(_selected(tape.records, options, unchecked))
    for done, (index, record) in enumerate(todo):
        try:
            if progress is not None:
                progress(done, len(todo), record.kernel.key)
            launches.append(_check_launch(index, record, options, seen))
        except KeyboardInterrupt:
            raise CheckInterrupted(_result(tape, launches, unchecked)) from None
    if progress is not None:
        progress(len(todo), len(todo), "")
    whole = None
    if options.whole and not options.partial and isinstance(tape, (Tape, CapturedTape)):
        try:
            whole = check_whole(tape, options.tolerance, launches, options.seed)
        except KeyboardInterrupt:
            raise CheckInterrupted(_result(tape, launches, unchecked)) from None
    return _result(tape, launches, unchecked, whole)


def _result(
    tape: Tape | CapturedTape, launches: list[LaunchResult], unchecked: list[Unchecked],
    whole: WholeResult | None = None,
) -> TapeResult:  # fmt: skip
    launches.sort(key=lambda r: r.index)
    for r in launches:
        if r.skipped:
            unchecked.append(Unchecked(r.index, f"launch of kernel {r.kernel}", r.skipped, r.site))
        if r.no_second:
            what = f"second derivative of kernel {r.kernel}"
            unchecked.append(Unchecked(r.index, what, r.no_second, r.site))
    return TapeResult(getattr(tape, "index", 0), tuple(launches), tuple(unchecked), whole)


def _selected(
    records: Sequence[Any], options: Options, unchecked: list[Unchecked]
) -> Iterator[tuple[int, LaunchRecord]]:
    numbered = list(enumerate(records))
    launches = []
    index = -1
    for position, r in numbered:
        if isinstance(r, LaunchRecord):
            index += 1
            launches.append((index, r))
        elif type(r).__name__ == "FuncRecord":
            what = "a function recorded with Tape.record_func"
            reason = "only kernel launches can be checked; its backward code is the user's own"
            unchecked.append(Unchecked(position, what, reason, getattr(r, "site", None)))
    launches = launches[options.skip_to :]
    if options.reverse:
        launches.reverse()
    for index, r in launches:
        if options.wants(r.kernel.key):
            yield index, r


def culprits_of(fn: Function) -> tuple[tuple[str, Span], ...]:
    """User-written derivatives that a kernel runs: function name and place."""
    out: dict[str, Span] = {}

    def visit(f: Function) -> None:
        for s in walk(f.body):
            if isinstance(s, Call):
                if s.func.grad is not None:
                    out.setdefault(s.func.name, s.func.grad.span)
                visit(s.func)

    visit(fn)
    return tuple(out.items())


def _check_launch(
    index: int, record: LaunchRecord, options: Options, seen: set[Any]
) -> LaunchResult:
    variants = record.plan.variants
    result = LaunchResult(
        index, record.kernel.key, tuple(record.dim), (), variants.ir.span, record.site,
        culprits_of(variants.ir),
    )  # fmt: skip
    if not record.selection.useful and record.selection.wrt & variants.written:
        return replace(result, skipped="gradients stop at it: its enable_backward is False")
    args, reason = arguments(record)
    if reason:
        return replace(result, skipped=reason)
    if not np.prod(record.dim, dtype=np.int64):
        return replace(result, skipped="the launch has no threads")
    problem = None
    try:
        problem = Problem(variants, lifted(variants), args, record.dim)
        if not problem.inputs or not problem.outputs:
            return replace(result, skipped=_why_nothing(problem, variants.ir, args))
        pairs = _masked(record, problem, options)
        # A stream of its own: the user's data may come from the same seed.
        rng = np.random.default_rng([0xC0DE, options.seed, index])
        check = LaunchCheck(
            problem, options.tolerance, rng, options.max_inputs, options.max_outputs, pairs,
            keep_blocks=options.keep is not None,
        )  # fmt: skip
        key = (record.kernel.key, id(variants), tuple(record.dim),
               tuple(np.shape(a.value) for a in args))  # fmt: skip
        ends = variants.stops(problem.own.wrt)
        result = replace(result, stops=tuple((f.name, f.span) for f in ends))
        found = check.run(options.all_entries or key not in seen)
        seen.add(key)
        result = replace(result, pairs=tuple(_explained(p, problem, rng) for p in found))
        if any(p.verdict == "fail" for p in found):
            result = replace(result, blame=blame(problem.exact, args, problem.outputs, rng))
        if options.keep is not None:
            options.keep(result, check.blocks)
        if options.order > 1:
            try:
                more = check_second(problem, args, options.tolerance, rng)
                result = replace(result, pairs=(*result.pairs, *more))
            except NoSecond as why:
                result = replace(result, no_second=str(why))
        return result
    except MemoryError:
        return replace(result, skipped="its check does not fit into memory")
    except LaunchFailed as failed:
        return replace(result, skipped=f"its check could not run: {failed}")
    finally:
        if problem is not None:
            problem.close()


def _explained(pair: PairResult, problem: Problem, rng: np.random.Generator) -> PairResult:
    pair = _placed(pair, problem)
    if pair.verdict != "nan":
        return pair
    w = rng.standard_normal(problem.own.initial[pair.output].shape)
    return replace(pair, nonfinite=locate(problem.own, pair.output, w, pair.input))


def _placed(pair: PairResult, problem: Problem) -> PairResult:
    """The pair with the names of its worst entry's scalars."""
    e = pair.worst
    if e is None or e.row < 0 or e.col < 0:
        return pair
    initial = problem.exact.initial
    row = element(pair.output, e.row, initial[pair.output].shape)
    col = element(pair.input, e.col, initial[pair.input].shape)
    return replace(pair, worst=replace(e, row_name=row, col_name=col))


def arguments(record: LaunchRecord) -> tuple[list[Argument], str]:
    """The launch's arguments at record time, or why they are not known."""
    out: list[Argument] = []
    owners: dict[Any, str] = {}
    contents = record.inputs_at_record()
    read, written = record.plan.variants.read, record.plan.variants.written
    views: list[tuple[array, str]] = []
    params = record.plan.variants.ir.params
    for position, (p, value, now) in enumerate(zip(params, contents, record.args, strict=True)):
        if not isinstance(p.type, ArrayType):
            out.append(Argument(p.name, value))
            continue
        if now is None:
            shape = (0,) * p.type.ndim
            out.append(Argument(p.name, np.zeros(shape)))
            continue
        if value is None:
            return [], f"the contents of argument {p.name!r} at launch time are lost"
        key = (now.ptr, tuple(now.shape), tuple(now.strides))
        for other_view, other in views:
            if owners.get(key) != other and {p.name, other} & written and _overlap(now, other_view):
                return [], f"arguments {other!r} and {p.name!r} overlap in memory"
        alias = owners.get(key, "") if now.size else ""
        if not alias:
            owners[key] = p.name
            views.append((now, p.name))
        elif p.name in read:  # the one that is read has the contents at launch
            out = [replace(x, value=value) if x.name == alias else x for x in out]
        grad = bool(now.requires_grad) and is_float(p.type)
        if is_float(p.type) and position not in record.plan.inputs:
            # What was there before does not matter, and is not known: it may be NaN.
            value = np.where(np.isfinite(value), value, 0)
        out.append(Argument(p.name, value, grad, alias))
    return out, ""


def _overlap(a: array, b: array) -> bool:
    """Whether two views share an element; where that is hard to tell, they do."""
    if not may_meet(a, b):
        return False
    share: Any = np.shares_memory
    try:
        return bool(share(a._parts, b._parts, max_work=100_000))
    except Exception:  # too hard to tell
        return True


def _why_nothing(problem: Problem, ir: Function, args: Sequence[Argument]) -> str:
    side = "input" if not problem.inputs else "output"
    return f"no {side} array of it has floating point elements and requires_grad=True"


def _masked(record: LaunchRecord, problem: Problem, options: Options) -> frozenset[Pair] | None:
    """The pairs that a mask names, None for all. Raises LaunchError for unknown names."""
    if not options.masks or not options.masks.get(record.kernel.key):
        return None  # an empty mask is none, as in Warp
    ir = record.plan.variants.ir
    leaves = [p.name for p in ir.params]
    arguments = record.plan.arguments
    names = leaves if arguments is None else arguments.names
    inputs = record.input_count or len(names)

    def found(which: str | int, offset: int, role: str) -> list[str]:
        """The leaves that an argument (or a leaf's own name) stands for."""
        if isinstance(which, str) and which in leaves:
            return [which]
        if isinstance(which, int):
            which = which + offset if which >= 0 else -1
        if arguments is not None:
            place = arguments.place(which)
            if place is not None:
                return [leaves[k] for k in place]
        elif isinstance(which, int) and 0 <= which < len(names):
            return [names[which]]
        raise LaunchError(
            Diagnostic(
                "E405",
                f"kernel {record.kernel.key!r} has no {role} {which!r}",
                ir.span,
                help=f"its arguments are {', '.join(names)}",
            )
        )

    offset = inputs if inputs < len(names) else 0
    owner = problem.own.owner
    return frozenset(
        (owner.get(a, a), owner.get(b, b))
        for i, o in options.masks[record.kernel.key]
        for a in found(i, 0, "input")
        for b in found(o, offset, "output")
    )
