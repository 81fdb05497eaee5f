"""Jacobians of recorded launches, computed in the child process and returned as data."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adtool import codec, endings, files
from adtool.folds import measures
from adtool.jacobian_choice import chosen as chosen_kernel
from adtool.job import JacobianOptions
from adtool.outcome import Outcome
from adtool.pair_errors import known_errors
from adtool.results import pair_of
from adtool.rules.base import remedy
from engine.autograd import (
    Jacobians,
    MatrixSummary,
    Share,
    check_recorded,
    error_jacobians,
    recorded_jacobians,
    summarise,
)
from engine.classes import dataclass

if TYPE_CHECKING:
    from engine import CapturedTape, EngineError
    from engine.autograd import PairResult


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says of one pair: see `adtool.report.Pair`.

    error, rel_error: of the worst entry, or (direction) of the worst random direction, as the table
    of `adtool check` has them; None where that is not known.
    """

    input: str
    output: str
    verdict: str
    max_abs_error: float | None
    max_rel_error: float | None
    reason: str = ""
    error: float | None = None
    rel_error: float | None = None
    direction: bool = False


@dataclass(frozen=True, slots=True)
class JacobianReport:
    """The Jacobians of one recorded launch.

    tape, launch: its numbers; `launches` of kernels that match `pattern` were recorded. file,
    line: the kernel; call_file, call_line: the launch. error: what was plotted in place of the
    Jacobian.
    verdicts: of a check, where errors were asked for. why: it is this kernel, where none was
    named.
    """

    kernel: str
    tape: int
    launch: int
    launches: int
    dim: tuple[int, ...]
    file: str
    line: int
    call_file: str | None
    call_line: int | None
    matrices: tuple[MatrixSummary, ...]
    error: str = ""
    verdicts: tuple[Verdict, ...] = ()
    pattern: str = ""
    why: str = ""

    @property
    def wrong(self) -> bool:
        """Whether something is not as it should be: a wrong or non-finite entry."""
        bad = any(v.verdict in ("fail", "nan") for v in self.verdicts)
        return bad or any(m.nonfinite for m in self.matrices)


def look(
    tapes: Sequence[CapturedTape], options: JacobianOptions, folder: Path, share: Share
) -> Outcome | None:
    """Evaluates, plots and writes the report of one launch; or says why there is none.

    share: which derivatives to evaluate. Of a part of them, those are written and nothing else.
    Raises EngineError for arguments that the kernel does not have, or has no gradients of.
    """
    launches = [(t, *found) for t, tape in enumerate(tapes) for found in _launches(tape)]
    why = ""
    if launches and not options.kernel:
        choice = chosen_kernel(launches, options)
        if isinstance(choice, Outcome):
            return choice
        options, why = choice
    mine = [x for x in launches if fnmatchcase(x[2].kernel.key, options.kernel)]
    failed = _missing(launches, mine, options)
    if failed is not None:
        return failed
    chosen = (x for x in mine if options.launch in (None, x[:2]))
    number, index, record = next(chosen)
    if record.launch is None:
        return Outcome("target", f"kernel `{record.kernel.key}` cannot be run: {record.why}",
                       remedy(record.why))  # fmt: skip
    given = (record, options.inputs, options.outputs)
    found = recorded_jacobians(*given, share=share)
    if not share.whole:
        if options.error:
            recorded_jacobians(*given, differences=True, share=share)
        (folder / files.DERIVATIVES).write_text(codec.dumps(share.found), encoding="ascii")
        return None
    verdicts: tuple[Verdict, ...] = ()
    shown = found
    if options.error:
        reference = recorded_jacobians(*given, differences=True, share=share)
        shown = error_jacobians(found, reference, options.error == "relative")
        result = check_recorded(*given).launches[0]
        verdicts = tuple(map(_verdict, result.pairs))
    if options.plot:
        _draw(shown, options, folder, f"{record.kernel.key} (launch {number}:{index})")
    span, site = record.definition, record.site
    report = JacobianReport(
        record.kernel.key, number, index, len(mine), tuple(record.dim), span.file, span.line,
        None if site is None else site.file, None if site is None else site.line,
        summarise(found), options.error, verdicts, options.kernel, why,
    )  # fmt: skip
    (folder / files.JACOBIAN).write_text(codec.dumps(report), encoding="ascii")
    return None


def why_none(error: EngineError, options: JacobianOptions) -> str:
    """Why there is no Jacobian, in a line above the error itself."""
    if error.diagnostics[0].code == "E405":  # of a name, which it says
        return "--input or --output names no array with a gradient"
    which = f"kernel `{options.kernel}`" if options.kernel else "the kernel"
    return f"{which} has no Jacobian"


def _verdict(p: PairResult) -> Verdict:
    m = measures(pair_of(p))
    return Verdict(
        p.input, p.output, p.verdict, *known_errors(p), p.reason, m.error, m.relative, m.direction
    )


def _launches(tape: CapturedTape) -> list[tuple[int, Any]]:
    return list(enumerate(r for r in tape.records if r.kernel is not None))


def _missing(
    launches: Sequence[Any], mine: Sequence[Any], options: JacobianOptions
) -> Outcome | None:
    """Why there is nothing to look at; None where there is."""
    if not launches:
        return Outcome("target", *endings.no_launch("jacobian"))
    if not mine:
        known = dict.fromkeys(x[2].kernel.key for x in launches)
        return Outcome(
            "target", f"no launch of a kernel `{options.kernel}` was recorded",
            "the tapes hold " + ", ".join(f"`{k}`" for k in known),
        )  # fmt: skip
    if options.launch is not None and options.launch not in [x[:2] for x in mine]:
        wanted = ":".join(map(str, options.launch))
        some = ", ".join(f"{t}:{i}" for t, i, _ in mine[:12])
        return Outcome(
            "target", f"launch {wanted} is not a launch of kernel `{options.kernel}`",
            f"its launches are {some}" + (" ..." if len(mine) > 12 else ""),
        )  # fmt: skip
    return None


def _draw(shown: Jacobians, options: JacobianOptions, folder: Path, title: str) -> None:
    from adtool.figures.heatmaps import save

    save(shown, folder / files.PLOT, options.plot, title, options.error)
