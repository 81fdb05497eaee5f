"""The results of gradient checks as frozen data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from engine.autograd.facts import Fact, Handwritten, Peer
from engine.classes import dataclass
from engine.diagnostics import Span

# The reason of a pair whose adjoint fails by that.
NOT_LINEAR = "its adjoint is not linear in its cotangents, as a derivative is"

Verdict = Literal[
    "pass", "fail", "nan", "kink", "inconclusive", "nondeterministic", "rounding", "skipped"
]


@dataclass(frozen=True, slots=True)
class Entry:
    """One Jacobian entry: `row` counts scalars of the output, `col` those of the input.

    `ad` is the adjoint's value, `oracle` the reference's. For directional entries
    (see PairResult.directional) row and col are -1. relative: its error relative to the oracle, as
    in `PairResult.max_rel_error`; None where the oracle is zero as far as can be told. allowed: the
    largest error that is none; None where that is not known. row_name, col_name: the scalars by
    their arrays' own indices, as in `u[2, 3]` (components of vectors last).
    """

    row: int
    col: int
    ad: float
    oracle: float
    relative: float | None = None
    allowed: float | None = None
    row_name: str = ""
    col_name: str = ""


@dataclass(frozen=True, slots=True)
class NonFinite:
    """Where a NaN or Inf first appears in an adjoint.

    `array` and `element` (a full index, components last) name the gradient entry;
    `span` the source line of the operation whose derivative is not finite, and
    `operands` its operand names and values there (empty where not found). expression: the
    operation as the source has it, `log(x[i])`; empty where it is not to be had on one line.
    selected: whether it stands among what a `where` or `select` chooses from.
    overflow: whether its result is too large for its type, and its slope is no trouble.
    """

    array: str
    element: tuple[int, ...]
    value: float
    span: Span | None = None
    operation: str = ""
    operands: tuple[tuple[str, str], ...] = ()
    expression: str = ""
    selected: bool = False
    overflow: bool = False


@dataclass(frozen=True, slots=True)
class Corner:
    """The operation that has a kink: its place, and its text (empty where not on one line)."""

    span: Span
    expression: str = ""


@dataclass(frozen=True, slots=True)
class PairResult:
    """The check of d output / d input of one launch.

    checked: Jacobian entries compared one by one. directional: random directions compared over the
    whole pair. max_rel_error is |ad - oracle| / |oracle| where the oracle exceeds the error allowed
    there (else it is zero as far as can be told), 0 where it nowhere does; a direction's is
    relative to the parts of its sum if these are larger. tolerance: the largest max_rel_error of a
    pair that passes; None where the user gave an absolute tolerance, or nothing was compared. An
    error that passes only since derivatives near by are larger is relative to these, by the part
    that the tolerance counts them for. reason: what there is to say of a verdict that is no pass;
    may be empty. digits_lost: decimal digits of the launch's own precision that rounding costs the
    adjoint. corner: of a kink, the operation that has it, where that was looked for and found.
    scale, off: the largest element of the adjoint times random cotangents, and what it is off by in
    the launch's own precision; 0 where that was not looked at. forward_error: how far the adjoint
    is from forward mode along a random direction, relative to its parts, both in float64; None
    where differences are close enough, or a derivative is written by hand. by_whole: this launch,
    of whose kind many were compared, had a glance alone; the check of its tape as a whole passed.
    joint: it was compared along one direction through several inputs at once, so that the errors
    are those of their sum, and no entry is known that is the worst.
    """

    input: str
    output: str
    verdict: Verdict
    checked: int = 0
    directional: int = 0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    worst: Entry | None = None
    reason: str = ""
    nonfinite: NonFinite | None = None
    digits_lost: float = 0.0
    corner: Corner | None = None
    scale: float = 0.0
    off: float = 0.0
    forward_error: float | None = None
    by_whole: bool = False
    tolerance: float | None = None
    joint: bool = False


@dataclass(frozen=True, slots=True)
class Blame:
    """A derivative written by hand that is wrong: of which function, its own name and place.

    operands: names and values of a call's operands where it is furthest off. parts: of the
    operands by which it is wrong there: name, the derivative of the sum of the results as the
    user's code has it, and by differences. Empty where no call could be looked at. replay: it
    is a replay that gives the backward pass other values than the function had.
    """

    function: str
    derivative: str
    span: Span
    operands: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, str, str], ...] = ()
    replay: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """What runs of one launch on a GPU differ by, because its threads have another order each time.

    of: `results`, or `gradients` of one and the same run. array: the one that differs most, by
    `part` of its largest value. what: what decides, at `span`.
    """

    of: str
    array: str
    part: float
    device: str
    what: str
    span: Span | None = None

    @property
    def text(self) -> str:
        """The same for a sentence."""
        part = f"{self.part:.1e} of the largest value of {self.array!r}"
        return f"{self.of} differ by {part} from run to run on {self.device}"


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """The check of one launch. span: the kernel's definition; site: the launch call.

    culprits: places of user-written derivatives (func_grad) that the launch runs. iterated: the
    functions of these with loops that end by a comparison of floats, and the relative error that
    the loops may leave in the reference.
    stops: places of native functions without an adjoint, at which gradients end.
    skipped: why nothing of it was checked, empty where something was. no_second: why its
    second derivatives were not, where they were asked for. blame: the culprits that are
    wrong, where a pair fails. changed_inputs: of a Python function (index -1), the inputs in
    which a run of it leaves other values and which it does not return. unassigned: variables
    that a thread read before they had a value, with the places. detached: arrays without a
    gradient that the kernel writes and reads back, where pairs fail for want of it. by_hand: of an
    operation of another framework; the kernel is its name then, and the span that of its gradient.
    peer: of a launch of another package, whose adjoint is what was compared. spreads: of a launch
    on a GPU, what its runs differ by.
    """

    index: int
    kernel: str
    dim: tuple[int, ...]
    pairs: tuple[PairResult, ...]
    span: Span
    site: Span | None = None
    culprits: tuple[tuple[str, Span], ...] = ()
    stops: tuple[tuple[str, Span], ...] = ()
    skipped: str = ""
    no_second: str = ""
    blame: tuple[Blame, ...] = ()
    changed_inputs: tuple[str, ...] = ()
    unassigned: tuple[tuple[str, Span], ...] = ()
    detached: tuple[str, ...] = ()
    by_hand: Handwritten | None = None
    peer: Peer | None = None
    spreads: tuple[Spread, ...] = ()
    iterated: tuple[tuple[str, float], ...] = ()

    @property
    def stopped(self) -> bool:
        """Whether it has places where gradients end, and nothing else is to blame."""
        return bool(self.stops and not self.blame)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Something on the tape that no check covers (a recorded function, a lost input).

    index: of the launch; for what is no launch, the position among the tape's records, or -1.
    """

    index: int
    what: str
    reason: str
    site: Span | None = None


def entry_name(pair: PairResult) -> str:
    """`d y[1, 2] / d x[3]` for a pair's worst entry; `d y / d x` where no entry is known."""
    e = pair.worst
    if e is None or e.row < 0 or e.col < 0:
        return f"d {pair.output} / d {pair.input}"
    row = e.row_name or f"{pair.output}[{e.row}]"
    return f"d {row} / d {e.col_name or f'{pair.input}[{e.col}]'}"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why launches that are right by themselves do not make a right gradient.

    overwrite: `argument` of a launch held something else at the backward pass; `other_*` name
    the operation that wrote it, launch -1 and an empty name for one that is not on the tape.
    no gradient: `argument` depends on the leaves and has no requires_grad. outside: what
    `argument` held at the launch was written by nothing on the tape. no backward: the kernel
    was made without. aliasing: two arrays share memory, and their gradients do not.
    stretch: a function of another framework has a gradient of its own that is wrong.

    launch: which, -1 for what is no launch. variable: what the user passed as the argument. site:
    its call; span: the kernel's definition. further: of no gradient, the arguments, variables
    and calls further on in the same chain, to which none flows either; silent: the launches through
    which the leaves act on what has none.
    """

    kind: Literal["overwrite", "no gradient", "outside", "no backward", "aliasing", "stretch",
                  "unknown"]  # fmt: skip
    launch: int = -1
    kernel: str = ""
    argument: str = ""
    site: Span | None = None
    span: Span | None = None
    other_launch: int = -1
    other: str = ""
    other_site: Span | None = None
    variable: str = ""
    further: tuple[tuple[str, str, Span | None], ...] = ()
    silent: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeResult:
    """The check of a whole tape, from the arrays that it reads to those that it leaves.

    directional: random directions compared. ad, oracle: the derivative by the backward pass
    and by the reference along the worst of them. cause: where the launches are right and the
    whole is wrong. reason: why it is inconclusive or was skipped. site: the call on the tape that
    is the reason, where it is one. rounding: how far the gradient at the values that the program
    has, rounded to their own precision, is from that with all in float64, as a part of it; None
    where that was not looked at. parts_right: the derivative is wrong, and right where all that was
    overwritten is put back: so are the derivatives of the launches. rel_error: of one that passes,
    relative to the parts of the derivative's sum if these are larger, and at most the tolerance.
    tolerance: None where nothing was compared.
    """

    verdict: Verdict
    directional: int = 0
    ad: float = 0.0
    oracle: float = 0.0
    rel_error: float = 0.0
    reason: str = ""
    cause: Cause | None = None
    site: Span | None = None
    rounding: float | None = None
    parts_right: bool = False
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class RemainderRow:
    """Taylor remainders at one step, of orders 0, 1 and 2, and the rates since the last step.

    NaN where an order was not asked for, and for the rates of the first step. rounding: whether
    the remainder is no longer clear of rounding.
    """

    step: float
    zeroth: float
    first: float
    second: float
    rate_zeroth: float
    rate_first: float
    rate_second: float
    rounding: bool = False


@dataclass(frozen=True, slots=True)
class Remainders:
    """The remainder test along one random direction. launch: -1 for the tape as a whole.

    derivative: along the direction, by the adjoint. rate: of the highest order, the median over
    the rows that stand clear of rounding; NaN where there are none. floor: what rounding makes of
    the function.
    """

    launch: int
    kernel: str
    order: int
    direction: int
    verdict: Verdict
    derivative: float = float("nan")
    rate: float = float("nan")
    floor: float = float("nan")
    rows: tuple[RemainderRow, ...] = ()
    reason: str = ""

    def judged(self, verdict: Verdict, reason: str) -> Remainders:
        """With a verdict."""
        return replace(self, verdict=verdict, reason=reason)


@dataclass(frozen=True, slots=True)
class TapeResult:
    """The check of one tape, launches in recorded order. whole: None where not asked for.

    facts: what was seen while the program ran, where somebody watched, and what came of runs of it
    that were to show more. remainders: of the Taylor test, where that was asked for. sampled: the
    framework of calls of which equal ones were left out, or only looked at quickly; empty where all
    were checked.
    """

    tape: int
    launches: tuple[LaunchResult, ...]
    unchecked: tuple[Unchecked, ...] = ()
    whole: WholeResult | None = None
    facts: tuple[Fact, ...] = ()
    remainders: tuple[Remainders, ...] = ()
    sampled: str = ""

    def facts_of(self, kind: str) -> tuple[Any, ...]:
        """The facts of a class, by its name."""
        return tuple(f for f in self.facts if type(f).__name__ == kind)

    @property
    def checked(self) -> int:
        """How many pairs have a verdict; skipped and inconclusive ones have none."""
        open_ = ("skipped", "inconclusive", "nondeterministic")
        return sum(p.verdict not in open_ for launch in self.launches for p in launch.pairs)

    @property
    def passed(self) -> bool:
        """True where something was checked and nothing is wrong or not finite.

        A tape without launches, of functions of other frameworks, is checked as a whole alone.
        """
        bad = any(p.verdict in ("fail", "nan") for x in self.launches for p in x.pairs)
        whole = self.whole
        if whole is not None and whole.verdict in ("fail", "nan"):
            bad = True
        alone = not self.launches and whole is not None and whole.verdict == "pass"
        return (self.checked > 0 or alone) and not bad
