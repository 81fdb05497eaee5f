"""G018: an unwatched run gave other gradients than the watched one: a fault of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.report import Finding
from adtool.rules.base import Manual, Rule
from engine.diagnostics import Span

if TYPE_CHECKING:
    from adtool.session import Session


class UnlikeAsRun(Rule):
    """Fires where an unwatched run gives other gradients than the watched one, in every run."""

    code = "G018"
    name = "unlike-as-run"
    severity = "error"
    manual = Manual(
        what="""
            adtool runs a short script a second time without watching it (any script with
            `--as-run`), and compares the gradients and losses after each backward pass with the
            watched run, bit for bit. For at least one backward pass, the two runs differ.
            Further runs confirm it: the result with compiled launches always differs from the
            result without them, or the result with kernels that look for faults always differs,
            by more than rounding, from the result without them. This is a fault of the engine
            and not of the script, unless the script reads
            uninitialised memory (`empty`).
            """,
        why="""
            The check looks at launches one by one. In long runs, compiled code takes over
            launches and backward passes, and must compute the same values. Where it does not,
            the script trains with gradients that no check has seen.
            """,
        example="""
            adtool check --as-run train.py

            error[G018]: backward pass 3 gave another gradient of argument `x` of kernel `f` in
            operation 0 without adtool:  element [1] is 12, and 32 without
            compiled launches
            """,
        todo="""
            Please report it, with the script and the capture that the help names. Until it is
            repaired, set `engine.config.native_after = -1` (or ENGINE_NATIVE_AFTER=-1 in the
            environment) to run the script without compiled launches; `--no-bounds` checks it
            without kernels that look for faults.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding: later passes follow from the first that differs."""
        found = session.as_run
        if found is None or found.kind not in ("engine", "bounds"):
            return
        loss = found.name == "the loss"
        what = "another value of the loss" if loss else f"another gradient of {found.name}"
        element = f"element [{found.index}]" if found.index else "it"
        span = Span(found.file, found.line, 1, found.line, 1) if found.file else None
        with_it = f"the script and the capture `{found.capture}`" if found.capture else "the script"
        if found.kind == "engine":
            values = f"{found.other}, and {found.plain} without compiled launches"
            avoid = "ENGINE_NATIVE_AFTER=-1 avoids it"
        else:
            values = f"{found.plain}, and {found.other} with kernels that look for faults"
            avoid = "--no-bounds checks the values of the unwatched run"
        yield self.finding(
            f"backward pass {found.number} gave {what} without adtool: {element} is {values}",
            f"this is a fault of the engine: report it, with {with_it}; {avoid}",
            span=span, tape=-1, launch=-1,
        )  # fmt: skip
