"""G012: something on the tape could not be checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.counts import counted
from adtool.endings import not_watched, unwatched_help
from adtool.report import Finding
from adtool.rules.base import Manual, Rule, grouped, named, remedy, seen
from adtool.rules.g004_broken_path import unheard
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import TapeResult
    from engine.diagnostics import Span


@dataclass(frozen=True, slots=True)
class _Gap:
    """Something unchecked. index: of the launch, or (record) among all records of the tape."""

    tape: int
    index: int
    what: str
    reason: str
    span: Span | None
    kernel: str = ""
    record: bool = False
    whole: bool = False
    follows: str = ""


class Unchecked(Rule):
    """Fires for records, launches and pairs that were skipped, unless the user asked for it.

    A warning for a tape as a whole, also where the user asked for a part of it.
    """

    code = "G012"
    name = "unchecked"
    severity = "note"
    otherwise = "warning for a whole tape, or for a framework that could not be watched"
    manual = Manual(
        what="""
            adtool could not check a part of the tape: a function that was recorded with a
            backward function, a launch without an array that has a gradient, a kernel without
            an adjoint, or a launch whose inputs are lost because copies of all inputs would
            have taken too much memory. In other frameworks: a function with complex numbers, or
            a function whose values adtool could not see. If a version of a framework lacks a
            place that adtool watches, the finding is a warning, because it is unknown what the
            script did there.

            Kernels that --kernel or --skip-kernel leave out are no finding by themselves. But
            adtool does not check a tape as a whole if only some of its kernels were selected:
            this is a warning, as it is whenever the backward pass of a tape was not compared.
            With `--as-run`, the finding also reports that the script behaves differently
            without adtool, so that the checked values may not be those of a normal run.
            """,
        why="""
            A gradient passes through this part all the same. Without the finding, you would
            think that everything had been checked.
            """,
        example="""
            tape.record_func(backward=my_backward, arrays=[x, y])

            note[G012]: a function recorded with Tape.record_func was not checked in record 3
            of tape 0: only kernel launches can be checked
            """,
        todo="""
            If a launch is skipped because no input requires a gradient, see whether
            `requires_grad=True` is missing. If copies took too much memory, allow more with
            --memory, or run once for each kernel with --kernel. Check any other part alone:
            write it as a kernel, or test its backward function against differences.

            If a framework cannot be watched, use another version of it; `adtool doctor` tests
            the installed one.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a thing and reason."""
        for group in grouped(_gaps(session), lambda g: (g.what, g.reason, g.kernel, g.follows)):
            first = group[0]
            count = len({(g.tape, g.index) for g in group})
            reason = f": {first.reason}" if first.reason else ""
            where = seen(count, first.tape, first.index, "record" if first.record else "launch")
            if first.whole or first.index < 0:
                where = f"in tape {first.tape}" if count == 1 else f"in {counted(count, 'tape')}"
            yield self.finding(
                f"{first.what} was not checked {where}{reason}",
                remedy(first.reason) or _help(first),
                span=first.span, tape=first.tape, launch=-1 if first.record else first.index,
                kernel=first.kernel, count=count,
                severity="warning" if first.whole else None, follows=first.follows,
            )  # fmt: skip
        yield from self._of_frameworks(session)
        yield from self._of_plain_runs(session)

    def _of_frameworks(self, session: Session) -> Iterator[Finding]:
        """One finding for each framework of which something could not be watched."""
        for seams in grouped(session.unwatched, lambda s: s.framework):
            yield self.finding(
                f"{not_watched(seams)}; what the script does there was not checked",
                unwatched_help(seams[0].framework),
                span=None, tape=-1, launch=-1, severity="warning",
            )  # fmt: skip

    def _of_plain_runs(self, session: Session) -> Iterator[Finding]:
        found = session.as_run
        if found is None or found.kind in ("alike", "engine", "bounds"):
            return
        message, help = {
            "failed": (
                f"the unwatched run was not compared: {found.why}",
                "adtool ran the script a second time (--as-run), so the script must be able to "
                "run twice; --no-as-run turns this off",
            ),
            "different": (
                "the script behaves differently without adtool, so its gradients were not "
                f"compared: {found.why}",
                "look for values that depend on time, on files of an earlier run, on standard "
                "input, or on adtool",
            ),
            "unsteady": (
                f"the unwatched run was not compared from backward pass {found.number} on: another "
                "run of the script gave other values (random numbers without a seed, or threads)",
                "set a seed for random numbers",
            ),
            "watched": (
                f"backward pass {found.number} of the script gave other values without adtool, "
                "both with and without compiled launches: the checked values are not those of a "
                "normal run",
                "look for values that depend on time, on uninitialised memory (`empty`), or on "
                "adtool",
            ),
            "rounding": (
                "the unwatched run agrees with the watched run up to rounding: from backward "
                f"pass {found.number} on its gradients have other last digits",
                "kernels that look for faults may round differently, especially with C++ code; "
                "--no-bounds turns them off",
            ),
            "part": (
                f"the unwatched run was compared only up to backward pass {found.number}: its "
                "gradients are too large, or its passes too many, to be stored",
                "use smaller data for the check",
            ),
        }[found.kind]
        asked = session.options.as_run
        note = not asked or found.kind in ("unsteady", "rounding", "part")
        yield self.finding(
            message, help, span=None, tape=-1, launch=-1, severity="note" if note else "warning"
        )


def _help(gap: _Gap) -> str:
    """What to do about something unchecked that has no remedy of its own."""
    if _ASKS in gap.reason:
        return f"to check it, create the arrays to differentiate with {_ASKS}"
    if gap.whole and _NOTHING in gap.reason:
        return f"to check it, create the arrays to differentiate with {_ASKS}"
    if gap.whole:
        return "`adtool explain G012` explains when adtool checks a tape as a whole"
    return "check this part alone; `adtool explain G012` says how"


# There is no gradient that could be wrong, unless launches of the tape have some.
_NOTHING = "requires a gradient"
_ASKS = "requires_grad=True"


def _repeats_g007(tape: TapeResult) -> bool:
    """Whether a launch that gives other results each time is why the tape cannot be replayed."""
    return any(p.verdict == "nondeterministic" for x in tape.launches for p in x.pairs)


def _place(tape: TapeResult) -> Span | None:
    """A call on a tape: of its first launch that was not checked, else of its first."""
    skipped = [x.site for x in tape.launches if x.skipped]
    return next((s for s in (*skipped, *(x.site for x in tape.launches)) if s is not None), None)


def _gaps(session: Session) -> Iterator[_Gap]:
    causes = unheard(session)
    for tape in session.tapes:
        whole = tape.whole
        if whole is not None and whole.verdict == "skipped":
            flows = any(p.checked or p.directional for x in tape.launches for p in x.pairs)
            flows = flows and not tape.facts_of("Broken")  # which G004 tells of
            if (flows or _NOTHING not in whole.reason) and not _repeats_g007(tape):
                what, reason = "the tape as a whole", whole.reason
                if session.options.kernels or session.options.skip_kernels:
                    reason = "with --kernel and --skip-kernel, the tape as a whole is not checked"
                yield _Gap(tape.tape, -1, what, reason, whole.site or _place(tape), whole=True)
        cause = whole.cause if whole is not None else None
        known = {(x.index, x.skipped) for x in tape.launches if x.skipped}
        for item in tape.unchecked:
            if (item.index, item.reason) in known:
                continue  # said again, with its kernel, below
            yield _Gap(tape.tape, item.index, item.what, item.reason, item.site, record=True)
        for launch in tape.launches:
            kernel = launch.kernel
            if session.options.deselects(kernel):
                continue
            if launch.skipped:
                if cause is not None and (cause.kind, cause.launch) == (
                    "no backward",
                    launch.index,
                ):
                    continue  # an error already
                # For want of an array with a gradient, which is what the cause is about.
                follows = (
                    causes.get((tape.tape, launch.index), "") if _ASKS in launch.skipped else ""
                )
                yield _Gap(
                    tape.tape, launch.index, named(launch), launch.skipped, launch.span, kernel,
                    follows=follows,
                )  # fmt: skip
                continue
            for pair in launch.pairs:
                if pair.verdict == "skipped":
                    what = f"`d {pair.output} / d {pair.input}` of {named(launch)}"
                    yield _Gap(tape.tape, launch.index, what, pair.reason, launch.span, kernel)
