"""The report as data, with its versioned schema: what `--format json` prints.

Fields may be added under the same schema number; none changes its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from adtool.codec import CodecError, decode, dumps, parse
from adtool.exits import Exit
from adtool.taylor_report import Taylor
from engine.classes import dataclass

SCHEMA = 1
LINES = frozenset({"launches"})  # of the JSON, of which each item is a line: there may be many

Severity = Literal["error", "warning", "note"]
Verdict = Literal[
    "pass", "fail", "nan", "kink", "inconclusive", "nondeterministic", "rounding", "skipped"
]

_RANK: dict[str, int] = {"note": 0, "warning": 1, "error": 2}


class ReportError(CodecError):
    """A text is no report of this schema."""


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst Jacobian entry: `row` counts scalars of the output, `col` of the input.

    Both are -1 for a random direction over the whole pair. ad, oracle: NaN where there is no
    number. row_name, col_name: the scalars by their arrays' own indices, as `u[2, 3]`. rel_error:
    its error relative to the oracle (of a direction, to the parts of its sum if these are larger);
    None where the oracle is zero as far as the comparison can tell. allowed: the largest error
    that passes there; None where that is not known.
    """

    row: int
    col: int
    ad: float
    oracle: float
    row_name: str = ""
    col_name: str = ""
    rel_error: float | None = None
    allowed: float | None = None


FAULTS = ("G008", "G009")  # found as launches ran, whatever their gradients are
_AGREES = 1e-4  # entries with a reference that are no further off were compared, and are right


@dataclass(frozen=True, slots=True)
class Pair:
    """The check of one output against one input. checked: Jacobian entries compared.

    max_abs_error, max_rel_error: the largest over all that was compared, entries and directions,
    which need not be of the same one: see `worst` for that. None where nothing was compared, the
    latter also where no reference is large enough to be relative to, NaN where the adjoint is not
    finite. directional: random directions compared. reason: what there is to say of a verdict that
    is no pass, such as why it is inconclusive or skipped; may be empty. digits_lost: decimal digits
    of the kernel's own precision that rounding costs the adjoint. scale, off: the largest element
    of the adjoint times random cotangents, and what rounding in the kernel's own precision puts it
    off by. forward_error: how far the adjoint is from forward mode, both in float64. These four are
    None where that was not looked at. tolerance: the largest max_rel_error of a pair that passes,
    None where an absolute one was asked for. by_whole: many launches of its kind were compared by
    themselves; this one was looked at briefly, and compared as a part of its tape as a whole alone.
    joint: several of its kind were compared pair by pair; of this one, all pairs of some inputs
    were compared together, along one direction, so that the errors are those of their sum and
    `worst` is None.
    """

    input: str
    output: str
    verdict: Verdict
    checked: int
    max_abs_error: float | None
    max_rel_error: float | None
    worst: Worst | None
    directional: int = 0
    reason: str = ""
    digits_lost: float | None = None
    scale: float | None = None
    off: float | None = None
    forward_error: float | None = None
    by_whole: bool = False
    tolerance: float | None = None
    joint: bool = False

    @property
    def decided(self) -> bool:
        """Whether the verdict stands on at least one trustworthy comparison."""
        if self.verdict == "pass":
            return self.by_whole or self.checked + self.directional > 0
        if self.verdict == "inconclusive":  # of some entries, as at the edge of a domain
            return self.checked > 0 and 0.0 < (self.max_rel_error or 0.0) <= _AGREES
        return self.verdict in ("fail", "nan", "kink", "rounding")


@dataclass(frozen=True, slots=True)
class Launch:
    """The check of one launch; file and line are of the kernel, call_* of the launch call.

    skipped: why nothing of it was checked, empty where something was. framework: whose function
    it is a call of, empty for a launch; the kernel is that function then, and file and line are
    those of its gradient.
    """

    tape: int
    index: int
    kernel: str
    file: str
    line: int
    dim: tuple[int, ...]
    pairs: tuple[Pair, ...]
    call_file: str | None = None
    call_line: int | None = None
    skipped: str = ""
    framework: str = ""


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """The check of a whole tape. reason: why it is inconclusive or was skipped.

    rel_error: None where nothing was compared, NaN where the derivative is not finite. rounding:
    what the gradient is off by because the program's values are rounded to their own precision, as
    a part of it; None where that was not looked at. tolerance: the largest rel_error that passes.
    """

    tape: int
    verdict: Verdict
    rel_error: float | None
    reason: str = ""
    rounding: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a file, and the text that takes its place.

    Lines and columns count from 1, columns in characters; the end column is exclusive. An
    insertion ends where it begins.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A mechanical cure of a finding. safe: whether nothing else can change by it."""

    message: str
    safe: bool
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. Lines and columns count from 1; the end column is exclusive.

    tape and launch name the first place (launch is -1 for what is no launch), `count` how
    many launches the finding stands for. What has no place has None in its stead. arrays: what the
    user calls those that it is about, and near: files and lines of calls on the tape that it is
    about, where `launch` and its own place do not say it. suppressed: it
    does not count at the gate; suppressed_by says whether `--ignore`, `--select`, a `comment` or
    a `baseline` asked for that. fingerprint: see `adtool.fingerprints`. source: the lines of the
    place, from the first. fix: a change of the program that makes it go away, where one is known.
    follows: the fingerprint of the finding that is its cause, empty for none. idle: nothing needs
    to be done about it.
    """

    code: str
    name: str
    severity: Severity
    message: str
    help: str
    kernel: str
    tape: int
    launch: int
    file: str | None
    line: int | None
    column: int | None
    end_line: int | None = None
    end_column: int | None = None
    count: int = 1
    notes: tuple[str, ...] = ()
    suppressed: bool = False
    suppressed_by: Literal["--ignore", "--select", "comment", "baseline"] | None = None
    arrays: tuple[str, ...] = ()
    near: tuple[tuple[str, int], ...] = ()
    fingerprint: str = ""
    source: tuple[str, ...] = ()
    fix: Fix | None = None
    follows: str = ""
    idle: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnostic of the engine, or a syntax error, that stopped the run. file may be None."""

    code: str
    message: str
    help: str = ""
    severity: Severity = "error"
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the tool could not do its job. detail: the user's traceback, where there is one."""

    kind: str
    message: str
    help: str = ""
    detail: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a step of the check took: of a launch, or (launch -1) of a tape as a whole."""

    tape: int
    launch: int
    kernel: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run of `adtool check` has to say.

    ok: nothing failed and no finding is at the gate; with `--exit-zero` the exit code may be 0
    all the same. script, device: None where the usage was wrong. durations: the slowest checks,
    where they were asked for. gate_accuracy: what each pair must reach, where that was asked for.
    partial: whether only a part was asked for of what the script records. recorded: how many
    launches each tape has, by its number, whether or not they were checked; empty where that is
    not known. sampled: the frameworks of whose equal calls not all were checked in full.
    """

    schema: int
    tool: str
    script: str | None
    device: str | None
    ok: bool
    exit_code: int
    launches: tuple[Launch, ...]
    end_to_end: tuple[EndToEnd, ...]
    findings: tuple[Finding, ...]
    error: Failure | None = None
    gate: Severity = "error"
    tapes: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    durations: tuple[Duration, ...] = ()
    taylor: tuple[Taylor, ...] = ()
    gate_accuracy: float | None = None
    partial: bool = False
    recorded: tuple[int, ...] = ()
    sampled: tuple[str, ...] = ()

    @property
    def decided(self) -> int:
        """Pairs whose verdict stands on a trustworthy comparison."""
        return sum(p.decided for launch in self.launches for p in launch.pairs)

    @property
    def foreign(self) -> bool:
        """Whether all that was checked are functions of other frameworks, which have no tape."""
        return all(x.framework for x in self.launches) and bool(self.launches)


def at_gate(severity: str, gate: str) -> bool:
    """Whether a finding of this severity makes the run fail."""
    return _RANK[severity] >= _RANK[gate]


def gate_words(report: Report) -> str:
    """The gate as `--gate` takes it."""
    if report.gate_accuracy is None:
        return report.gate
    return f"{report.gate}, accuracy={report.gate_accuracy:g}"


def exit_code(findings: tuple[Finding, ...], gate: str, failed: bool) -> Exit:
    """The exit code of a run: a failure of the tool outweighs findings."""
    if failed:
        return Exit.FAILURE
    wrong = any(at_gate(f.severity, gate) for f in findings if not f.suppressed)
    return Exit.FINDINGS if wrong else Exit.CLEAN


def runs_exit_code(reports: Sequence[Report]) -> int:
    """The exit code of several runs: the largest, but for those that were not to be begun.

    That of no runs at all is 0: there was nothing to check.
    """
    began = [r for r in reports if r.error is None or r.error.kind != "not-run"]
    return max((r.exit_code for r in began), default=int(Exit.CLEAN))


def failed_report(failure: Failure, tool: str) -> Report:
    """The report of a run that came to nothing because of how it was called."""
    return Report(SCHEMA, tool, None, None, False, int(Exit.FAILURE), (), (), (), failure)


def to_json(report: Report) -> str:
    """The report as strict JSON, one object, with NaN and infinities as strings."""
    return dumps(report, indent=2, lines=LINES)


def from_json(text: str) -> Report:
    """The report written in `text`; nothing in it is ever executed.

    Raises:
        ReportError: not strict JSON, another schema, or a field that does not fit.
    """
    try:
        return from_data(parse(text, Report))
    except CodecError as error:
        raise ReportError(str(error)) from None


def from_data(data: object) -> Report:
    """The report that plain data of JSON stands for. Raises ReportError."""
    try:
        report: Report = decode(Report, data)
    except CodecError as error:
        raise ReportError(str(error)) from None
    if report.schema != SCHEMA:
        raise ReportError(f"schema {report.schema} is unknown: this adtool reads {SCHEMA}")
    return report
