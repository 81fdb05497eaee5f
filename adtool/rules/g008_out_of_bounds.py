"""G008: a kernel accessed an array out of bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from adtool.accesses import is_small, told
from adtool.counts import counted, more
from adtool.report import Finding
from adtool.rules.base import Manual, Rule, grouped

if TYPE_CHECKING:
    from adtool.faults import Seen
    from adtool.session import Session
    from engine import Fault
    from engine.diagnostics import Span


class OutOfBounds(Rule):
    """Fires for each place of the code at which a launch left an array, view or vector."""

    code = "G008"
    name = "out-of-bounds"
    severity = "error"
    manual = Manual(
        what="""
            A thread read, wrote or updated an element outside of its array, or named a place
            outside of a view, or a component outside of a vector, matrix or local array. An
            index from -n to -1 counts from the end and is valid; an index below -n is out of
            bounds.

            adtool looks at every launch of the script, on a tape or not, and at its adjoint. It
            cannot look into native functions (func_native).
            """,
        why="""
            Without adtool, the launch reads or destroys other memory: another row, another
            array, the memory of Python itself. Results and gradients are then arbitrary, and
            differ from run to run. Under `adtool check` the run is safe: such a load gives
            zero, and such a store or atomic update does nothing.
            """,
        example="""
            i = wp.tid()
            d[i] = x[i + 1] - x[i]      # launched with dim=len(x)

            error[G008]: kernel `differences` reads `x[64]` outside of its shape (64,)
            in thread 63
            """,
        todo="""
            Launch fewer threads, skip the threads at the border (`if i + 1 < x.shape[0]`), or
            clamp the index. If indices are data, check how they are computed. --no-bounds turns
            this check off.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a place."""
        outside = [s for s in session.faults if s.fault.kind == "outside"]
        forward = {(s.fault.kernel, s.fault.span.line) for s in outside if own(s.fault)}
        for group in grouped(outside, lambda s: _line(s.fault)):
            seen = group[0]
            fault = seen.fault
            if not own(fault) and (fault.kernel, fault.span.line) in forward:
                continue  # the adjoint goes where the kernel went
            kernel = f"kernel `{fault.kernel}`" if own(fault) else (
                f"the adjoint of kernel `{fault.kernel}`"
            )  # fmt: skip
            launches = max(s.count for s in group)
            at = where(replace(seen, count=launches))
            others = sum(s.fault.count for s in group) - 1
            yield self.finding(
                f"{kernel} {told(fault)} in thread {fault.at}{at}",
                f"{_TODO[is_small(fault)]}; such loads gave zero here, and such stores did nothing",
                span=fault.span, tape=seen.tape, launch=seen.index, kernel=fault.kernel,
                count=launches,
                notes=(f"{more(others, 'such access')} in the same launch",) if others else (),
            )  # fmt: skip


_TODO = {
    False: "launch fewer threads, guard the access, or correct the index",
    True: "correct the index, or guard the access",
}


def _line(f: Fault) -> tuple[object, ...]:
    """The same for all accesses of one line of a kernel to one array."""
    return f.kernel, own(f), f.span.file, f.span.line, f.name


def own(fault: Fault) -> bool:
    """Whether the kernel itself did it, not its adjoint or tangent."""
    return fault.form == "forward"


def where(seen: Seen, which: str = "") -> str:
    """The launch, to be put behind a message. which: of which launches it was the first."""
    many = f", first of {counted(seen.count, 'launch')}{which}" if seen.count > 1 else ""
    if seen.tape >= 0:
        return f", launch {seen.index} of tape {seen.tape}{many}"
    site = seen.fault.site
    return (f", launched {place(site, seen.fault)}" if site is not None else "") + many


def place(span: Span, fault: Fault) -> str:
    """Where something stands, in a sentence about a fault."""
    line = f"in line {span.line}"
    return line if span.file == fault.span.file else f"{line} of {Path(span.file).name}"
