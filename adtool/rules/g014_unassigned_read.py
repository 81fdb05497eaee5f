"""G014: a variable was read before it had a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.report import Finding
from adtool.rules.base import Manual, Rule, grouped, seen

if TYPE_CHECKING:
    from adtool.session import Session


class UnassignedRead(Rule):
    """Fires for reads that found no value in a launch, once a place."""

    code = "G014"
    name = "unassigned-read"
    severity = "warning"
    manual = Manual(
        what="""
            A thread read a variable before its assignment: the assignment stands in a branch
            that the thread did not take, or in a loop that ran no iteration.
            """,
        why="""
            Python raises an error in this case. Here the variable is zero, so results and
            gradients depend on a value that the program never wrote; other engines leave it
            undefined.
            """,
        example="""
            if x[i] > 0.0:
                s = x[i]
            y[i] = s            # where x[i] <= 0.0, nothing has been assigned

            warning[G014]: kernel `k` reads `s` before it has a value in launch 0 of tape 0
            """,
        todo="""
            Assign the variable on every path, or once before the branch or loop.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a place."""
        reads = [
            (tape.tape, launch, name, span)
            for tape in session.tapes for launch in tape.launches
            for name, span in launch.unassigned
        ]  # fmt: skip
        for group in grouped(reads, lambda r: (r[1].kernel, r[2], r[3])):
            tape, launch, name, span = group[0]
            yield self.finding(
                f"kernel `{launch.kernel}` reads `{name}` before it has a value "
                f"{seen(len(group), tape, launch.index)}",
                f"assign `{name}` on every path, or once before",
                span=span, tape=tape, launch=launch.index, kernel=launch.kernel,
                count=len(group),
            )  # fmt: skip
