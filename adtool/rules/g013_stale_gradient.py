"""G013: a gradient is a mixture of two evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.fixes.zeroing import zeroed
from adtool.report import Finding, Fix
from adtool.rules.base import Manual, Rule, grouped

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import Stale


class StaleGradient(Rule):
    """Fires for backward passes that add to, or read, what belongs to another evaluation.

    An error where the program was seen to move the array by such a gradient.
    """

    code = "G013"
    name = "stale-gradient"
    severity = "warning"
    otherwise = "error if the program moves the array by it"
    manual = Manual(
        what="""
            A gradient mixes two evaluations. This happens in one of these ways: a backward pass
            added to a gradient that an earlier pass made at other values of the array; it
            passed on a gradient that an earlier pass left in an intermediate array; it ran
            again on the same tape, from the same arrays, at the same values, so that everything
            counts twice; or the tape was recorded once and ran backward at new inputs, but some
            values that its adjoints read were not computed again. A new array that gets the
            memory of an earlier gradient for its own counts as the earlier array, if that is
            gone and the program read the gradient in between.

            It is a warning if the program reads such a gradient, and an error if the program
            was seen to move the array by it. This is seen if one launch reads the gradient and
            writes the array, as a step of engine.optim or of a kernel does, and if an optimizer
            of PyTorch got the gradient and the array then holds what the optimizer computed.

            Some programs add up gradients at several points, and then make one step, on purpose:
            smoothed gradients, or Heun's method. So a sum over other values of the array is an
            error only if an earlier step, which started from the values of the array, has used
            a part of that sum.

            Steps that the host makes in another way, such as with NumPy, are only seen by their
            results, so adtool demands evidence: two changes of the array, one after the other,
            that are steps along its gradient. Two changes count as such steps in three cases:
            (1) both are the same negative multiple of their gradients, which have numbers of at
            least two sizes; (2) both are multiples of gradients that have numbers of at least
            three sizes and different directions; (3) the array has 8 or more numbers with
            gradients of both signs, each number moves by the sign of its gradient, and either
            numbers with larger gradients move at least as far, or all move about as far (up to a
            factor of 2). In case (3), the changes must not lie on one line, except if all numbers
            move equally far.

            One change alone is evidence if it is a negative multiple of a gradient with numbers
            of at least three sizes, no backward pass follows, and it does not just scale the
            array. All else stays a warning, for example any step of an array with one number.

            Accumulation over several tapes at unchanged values is right, and so is running a
            tape again at new inputs if everything was computed again: adtool reports neither.
            Nor does it report a gradient that is added to and cleared before the program reads
            it.
            """,
        why="""
            Gradients accumulate. A training loop that never clears them follows the sum of all
            gradients so far. It often still converges, slowly or to the wrong place.
            """,
        example="""
            for step in range(100):
                with engine.Tape() as tape:
                    engine.launch(loss_kernel, dim=n, inputs=[x], outputs=[loss])
                tape.backward(loss)                   # adds to x.grad
                engine.launch(descend, dim=n, inputs=[x, x.grad])

            error[G013]: backward() added to the gradient of `x`, which an earlier backward()
            computed at other values of `x`, and the program moves `x` by it
            """,
        todo="""
            Clear the gradients between steps: tape.zero(), or x.grad.zero_(). If the second call
            of backward() is the mistake, remove it. Before the backward pass, run the launches
            again that read changed arrays.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a pass, kind and array."""
        found = [(tape.tape, f) for tape in session.tapes for f in tape.facts_of("Stale")]
        for group in grouped(
            found, lambda x: (x[1].kind, x[1].array, x[1].site, x[1].earlier, x[1].by.site)
        ):
            tape, f = group[0]
            passes = sum(x.passes for _, x in group)
            more = f" ({passes} times, first on tape {tape})" if passes > 1 else ""
            message, help = _said(f, all(x.valid for _, x in group))
            used = any(x.used for _, x in group)
            if used:
                message += f", and the program moves {_it(f)} by it"
            notes = _earlier(f)
            yield self.finding(
                f"{message}{more}", help, span=f.site, tape=tape, launch=f.by.launch,
                kernel=f.by.name if f.by.launch >= 0 else "", count=passes, notes=notes,
                arrays=(f.array,) if f.array else (), fix=_cure(f),
                severity="error" if used else None,
            )  # fmt: skip


def _it(f: Stale) -> str:
    """The array that a step moves: of what is passed on, one that the gradient comes to."""
    known = f.array and f.kind != "passed on"
    return f"`{f.array}`" if known else "an array"


def _cure(f: Stale) -> Fix | None:
    if f.kind not in ("values", "twice"):
        return None
    return zeroed(f.kind, f.site, f.earlier)


def _earlier(f: Stale) -> tuple[str, ...]:
    """Where the earlier pass is."""
    if f.earlier is None:
        return ()
    if f.earlier == f.site:
        return (
            "the earlier backward() is the same call, made earlier (in a loop: in an earlier "
            "iteration)",
        )
    return (f"the earlier backward() is at {f.earlier}",)


def _said(f: Stale, valid: bool) -> tuple[str, str]:
    """What is wrong, and what to do. valid: whether the array's name can be typed there."""
    own = f", or {f.array}.grad.zero_()" if valid else ""
    again = f.earlier is not None and f.earlier == f.site
    when = "between the two backward passes"
    if again:  # there is one line, of which "between" says nothing
        when = "after their use, before this backward() runs again"
    clear = f"clear the gradients {when}: tape.zero(){own}"
    a = f"`{f.array}`" if f.array else "an array"
    if f.kind == "twice":
        clear += "; or run it only once" if again else "; or remove the second pass"
    if f.kind == "values":
        return (
            f"backward() added to the gradient of {a}, which an earlier backward() "
            f"computed at other values of {a}", clear,
        )  # fmt: skip
    if f.kind == "twice":
        return (
            f"backward() ran twice on one tape at the same values: the gradient of {a} counts "
            "everything twice", clear,
        )  # fmt: skip
    if f.kind == "passed on":
        if not again:  # the gradients of both passes may be meant to add up in the parameters
            which = f"{f.array}.grad.zero_()" if valid else "x.grad.zero_() for each of these"
            clear = (
                f"clear the gradients of arrays that the tape computes {when}: {which}; "
                "tape.zero() also clears those of the parameters"
            )
        return (
            f"backward() passed on the gradient that an earlier backward() left in {a}, "
            "which the tape computes", clear,
        )  # fmt: skip
    if f.kind == "recompute":
        kernel = f"kernel `{f.by.name}`" if f.by.launch >= 0 else f"`{f.by.name}`"
        at = f" at {f.by.site}" if f.by.site is not None else ""
        return (
            f"backward() read {a}, which was not computed from the present inputs of the tape: "
            f"{kernel}{at} did not run again after they changed",
            "run all launches of the tape again after its inputs change, or record the tape again",
        )
    return f.text, "record the tape again after its inputs change"
