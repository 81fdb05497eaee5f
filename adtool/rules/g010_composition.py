"""G010: every launch is right alone, but the gradient of the whole tape is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.counts import counted
from adtool.report import Finding
from adtool.rules.base import Manual, Rule, grouped, number
from adtool.rules.g004_broken_path import KINDS

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import Cause


class Composition(Rule):
    """Fires for tapes whose backward pass is wrong as a whole, once a cause."""

    code = "G010"
    name = "composition"
    severity = "error"
    manual = Manual(
        what="""
            The backward pass of the tape does not give the derivative of the whole tape,
            although each launch on it has a right derivative. adtool replayed the tape in
            float64 along a random direction in its input arrays, and ran its backward pass as
            the program does: with the contents of the arrays at that time (see
            engine.config.overwrites), and only through arrays with requires_grad=True. The
            finding names the first operation from the end where the two differ, and the reason.
            If an array was overwritten, the finding is G003; if a path is broken, G004.
            """,
        why="""
            A check of single kernels cannot see this. The loss often still goes down, slowly or
            to the wrong place, because a part of the gradient is right.
            """,
        example="""
            a = engine.array(data, copy=False, requires_grad=True)
            b = engine.array(data, copy=False, requires_grad=True)          # the same memory
            engine.launch(f, dim=n, inputs=[x], outputs=[a])
            engine.launch(g, dim=n, inputs=[b], outputs=[loss])

            error[G010]: the gradient of tape 0 as a whole is wrong: an array that kernel `f` in
            launch 0 writes shares memory with another array that has a separate gradient
            """,
        todo="""
            If arrays share memory, use one array object, or views of it, instead of two arrays
            over the same memory.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a cause."""
        found = [
            (t.tape, t.whole, t.whole.cause)
            for t in session.tapes
            if t.whole is not None
            and t.whole.verdict in ("fail", "nan")
            and t.whole.cause is not None
            and t.whole.cause.kind not in (*KINDS, "overwrite", "stretch")  # G004, G003, G001
        ]
        for group in grouped(
            found, lambda f: (f[2].kind, f[2].kernel, f[2].argument, f[2].other, f[2].site)
        ):
            tape, whole, cause = group[0]
            many = f"the gradient of tape {tape} as a whole is wrong"
            if len(group) > 1:
                more = counted(len(group), "tape")
                many = f"the gradients of {more} as wholes are wrong, first that of tape {tape}"
            why, help = _why(cause)
            notes: tuple[str, ...] = ()
            if cause.other_site is not None:
                notes = (f"`{cause.other}` is called at {cause.other_site}",)
            message = (
                f"{many}: {why}; along a random direction in the inputs of tape {tape}, the "
                f"backward pass gives {number(whole.ad)}, the reference {number(whole.oracle)}"
            )
            yield self.finding(
                message, help, span=cause.site or cause.span, tape=tape, launch=cause.launch,
                kernel=cause.kernel if cause.launch >= 0 else "", count=len(group), notes=notes,
            )  # fmt: skip
        shared = [(t.tape, f) for t in session.tapes for f in t.facts_of("Shared")]
        for some in grouped(shared, lambda f: (f[1].arrays, f[1].site)):
            tape, f = some[0]
            yield self.finding(
                f"{_two(*f.arrays)} share memory for their gradients, so the gradient of "
                f"`{f.of}` is wrong (tape {tape})",
                (
                    "give each array a separate gradient, or share gradients only between arrays "
                    "that are not in use at the same time"
                ),
                span=f.site, tape=tape, launch=-1, count=len(some), arrays=f.arrays,
            )  # fmt: skip


def _two(a: str, b: str) -> str:
    return f"two arrays, passed as `{a}`," if a == b else f"`{a}` and `{b}`"


def _why(c: Cause) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    where = f"kernel `{c.kernel}` in launch {c.launch}" if c.launch >= 0 else f"`{c.kernel}`"
    if c.kind == "aliasing":
        return (
            f"an array that {where} writes shares memory with another array that has a separate "
            "gradient",
            "use one array object, or views of it",
        )
    return (
        f"the gradient changes across {where}" if c.kernel else "no single operation is the cause",
        "look for arrays that are overwritten, shared, or written outside of the tape",
    )
