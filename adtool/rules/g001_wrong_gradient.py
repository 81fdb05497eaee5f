"""G001: the adjoint disagrees with a trustworthy reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.report import Finding
from adtool.rules import peers
from adtool.rules.base import (
    Hit,
    Manual,
    Rule,
    derivative,
    grouped,
    hits,
    launches,
    named,
    number,
    other_pairs,
    seen_of,
    values,
    worst_of_first,
)
from engine.autograd import NOT_LINEAR

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import Blame, Handwritten, PairResult
    from engine.diagnostics import Span


class WrongGradient(Rule):
    """Fires for pairs with the verdict `fail`, once a kernel and culprit."""

    code = "G001"
    name = "wrong-gradient"
    severity = "error"
    manual = Manual(
        what="""
            The adjoint of a kernel disagrees with the derivative of the kernel's values. adtool
            checks each launch on the tape alone, at its recorded inputs, and reports it only
            where the reference derivative is accurate enough to tell the difference.

            The same holds for handwritten gradients in other frameworks:
            torch.autograd.Function, custom operators of torch.library, jax.custom_vjp,
            jax.custom_jvp, and others. The finding points at the function that you wrote.
            """,
        why="""
            An optimiser that follows a wrong gradient still moves, and often improves for a
            while. It then converges slowly, to the wrong place, or not at all, and nothing else
            tells you why.
            """,
        example="""
            @engine.func
            def cube(x: float):
                return x * x * x

            @engine.func_grad(cube)
            def adj_cube(x: float, adj_ret: float):
                engine.adjoint[x] += 2.0 * x * adj_ret    # should be 3 x^2

            error[G001]: wrong gradient of kernel `k` in launch 0 of tape 0:
            `d y[0] / d x[0]`: adjoint 4, reference 12
            """,
        todo="""
            If the finding points at a derivative that you wrote, derive it again. It must add
            (derivative of each result) times (adjoint of that result) to the adjoint of each
            input: `engine.adjoint[x] += ...`. The adjoint of an array is its gradient, to which
            other calls add, so an assignment to an element loses their part. All other adjoints
            start at zero in each call, and there an assignment gives the same.

            If a comparison of floats ends a loop of the function (Newton's method), the
            reference is the derivative of the iterations that ran. It differs from the
            derivative of the limit by about the tolerance of the loop. If you wrote the
            derivative of the limit, use a smaller tolerance in the loop, or pass `--rtol`.

            If the finding points at a kernel without such a derivative, look for a thread that
            reads an element that another thread of the same launch writes: such a launch is not
            a function of its inputs. If there is no such thread, it is a bug of the engine.
            Please report the kernel, and the line with the two values.

            A program that runs on Warp itself uses Warp's adjoints, which are wrong for some
            kernels. The finding says so, and gives the reason if adtool knows it.

            If a gradient is intentionally different (a straight-through estimator, a layer that
            reverses gradients), mark its line with a comment: `def backward(ctx, grad):  #
            adtool: ignore[G001]`.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel and suspected place."""
        wrong = [h for h in hits(session, "fail") if not _elsewhere(h)]
        for group in grouped(wrong, lambda h: (h.launch.kernel, _place(h))):
            hit = worst_of_first(group)
            count = launches(group)
            pair, launch = hit.pair, hit.launch
            message = (
                f"wrong gradient of {named(launch)} {seen_of(hit, count)}: "
                f"{derivative(pair, pair.worst)}{values(pair.worst)}"
            )
            notes = other_pairs(group, hit)
            if pair.reason == NOT_LINEAR:
                notes = (
                    "it is not linear in its cotangents: its result for a sum of cotangents is "
                    "not the sum of its results, so it drops, clips or scales some of them",
                    *notes,
                )
            if peer := peers.wrong_peer(launch):
                message = message.replace("wrong gradient", f"wrong gradient by {peer.name}", 1)
                help, notes = peers.told(peer), (*notes, *peers.others(peer))
            elif launch.by_hand is not None:
                if pair.worst is None and pair.reason:
                    fault = (
                        "no gradient of {} can be computed" if _raises(hit) else "wrong rule of {}"
                    )
                    told = fault.format(named(launch))
                    message = f"{told} {seen_of(hit, count)}: {pair.reason}"
                help = _written(hit, launch.by_hand)
            elif launch.blame:
                help = _told(_shown(group, launch.blame[0]))
                if len(launch.blame) > 1:
                    others = ", ".join(f"`{b.derivative}` ({b.span})" for b in launch.blame[1:])
                    notes += (f"also wrong: {others}",)
            elif launch.culprits:
                name = launch.culprits[0][0]
                help = (
                    f"a handwritten derivative of `{name}` runs in this kernel: compare it with "
                    "the derivative of the function"
                )
                if len(launch.culprits) > 1:
                    others = ", ".join(f"`{n}` ({s})" for n, s in launch.culprits[1:])
                    notes += (f"handwritten derivatives also run in {others}",)
            else:
                help = (
                    "this kernel has no handwritten derivative: look for a thread that reads an "
                    f"element that another thread writes; see `adtool explain {self.code}`"
                )
            yield self.finding(
                message, help + _iterated(group, hit), span=_place(hit), tape=hit.tape,
                launch=launch.index, kernel=launch.kernel, count=count, notes=notes,
            )  # fmt: skip
        yield from self._functions(session)
        yield from self._stretches(session)

    def _stretches(self, session: Session) -> Iterator[Finding]:
        """Functions of other frameworks on tapes, once each.

        Not where a gradient that is written by hand for a framework is wrong: it is the cause, as
        far as anybody knows.
        """
        if any(h.launch.by_hand is not None for h in hits(session, "fail")):
            return
        wrong = [
            (t.tape, t.whole, t.whole.cause) for t in session.tapes
            if t.whole is not None and t.whole.verdict in ("fail", "nan")
            and t.whole.cause is not None and t.whole.cause.kind == "stretch"
        ]  # fmt: skip
        for group in grouped(wrong, lambda x: (x[2].kernel, x[2].span)):
            tape, whole, cause = group[0]
            site = f"it is recorded at {cause.site}"
            yield self.finding(
                f"wrong gradient of `{cause.kernel}`, a function of another framework on tape "
                f"{tape}: along a random direction in the inputs of the tape, the backward pass "
                f"gives {number(whole.ad)}, the reference {number(whole.oracle)}",
                "it contains a handwritten derivative (torch.autograd.Function, jax.custom_vjp) "
                "or a detached value: compare the derivative with the function",
                span=cause.span or cause.site, tape=tape, launch=-1, count=len(group),
                notes=(site,) if cause.span is not None and cause.site is not None else (),
                near=tuple(x[2].site for x in group),
            )  # fmt: skip

    def _functions(self, session: Session) -> Iterator[Finding]:
        """Functions given to `Tape.record_func` that are wrong, once each."""
        wrong = [
            (t.tape, f) for t in session.tapes for f in t.facts_of("FunctionCheck")
            if f.wrong and not any(x.lost for x in f.functions)  # that is G003
        ]  # fmt: skip
        for group in grouped(wrong, lambda x: x[1].functions):
            tape, f = group[0]
            named = tuple(dict.fromkeys(f"`{x.name}`" for x in f.functions))
            names = ", ".join(named)
            some = "one of the functions" if len(named) > 1 else "the function"
            first = f.functions[0]
            others = tuple(dict.fromkeys(
                f"`{x.name}` is defined at {x.span}"
                for x in f.functions[1:] if x.span and x.span != first.span
            ))  # fmt: skip
            yield self.finding(
                f"{some} {names}, given to Tape.record_func on tape {tape}, is not a correct "
                "backward pass: if the inputs of the tape move, the loss changes by "
                f"{number(f.oracle)} per step, but the gradient predicts {number(f.ad)}",
                "for each array that it read, it must add (derivative of each result) times "
                "(gradient of that result) to the gradient, and it must clear the gradients of "
                "arrays that it overwrote",
                span=first.span or first.site, tape=tape, launch=-1, count=len(group),
                notes=others, near=tuple(x.site for x in f.functions),
            )  # fmt: skip


def _shown(group: list[Hit], wrong: Blame) -> Blame:
    """The same with operands: not every launch is searched for them."""
    every = (b for h in group for b in h.launch.blame if b.span == wrong.span)
    return wrong if wrong.parts else next((b for b in every if b.parts), wrong)


def _told(wrong: Blame) -> str:
    """What is wrong with a derivative, and where it is furthest off, as far as known."""
    if wrong.replay:
        return (
            f"`{wrong.derivative}`, the replay of `{wrong.function}`, gives the backward pass "
            "values that differ from those of the function"
        )
    if wrong.derivative == wrong.function:
        return f"the `adj_snippet` of `{wrong.function}` is not the derivative of its code"
    text = f"`{wrong.derivative}` is not the derivative of `{wrong.function}`"
    if not wrong.parts:
        return text
    operands = ", ".join(f"{name} = {value}" for name, value in wrong.operands)
    parts = "; ".join(f"by `{name}` it gives {got}, expected {e}" for name, got, e in wrong.parts)
    return f"{text}: with {operands}, {parts}"


def _iterated(group: list[Hit], hit: Hit) -> str:
    """What to do where iterations that were cut off may explain the difference; empty elsewhere.

    An error that is larger than what they may leave is a wrong derivative.
    """
    launch, errors = hit.launch, dict(hit.launch.iterated)
    names = [b.function for b in launch.blame] or [name for name, _ in launch.culprits]
    if not names or any(name not in errors for name in names):
        return ""
    most = max(errors[name] for name in names)
    if not all(_within(h.pair, most) for h in group):
        return ""
    return (
        f"; a comparison of floats ends the loop of `{names[0]}`, and the reference is the "
        "derivative of the iterations that ran: if yours is the derivative of the limit, let the "
        f"loop iterate to a smaller tolerance, or pass `--rtol {number(most)}`"
    )


def _within(pair: PairResult, most: float) -> bool:
    """Whether no error of a pair is larger than a part of its reference."""
    worst = pair.worst
    known = worst is not None and worst.relative is not None and pair.reason != NOT_LINEAR
    return known and pair.max_rel_error <= most


def _written(hit: Hit, written: Handwritten) -> str:
    """What to do about the gradient of a framework's function."""
    pair, name = hit.pair, written.gradient
    if pair.worst is None and pair.reason and not _raises(hit):
        return (
            "it must return the results of the function, and tangents that are linear in its "
            "input tangents"
        )
    if pair.worst is None and pair.reason:
        return f"let `{name}` return one gradient for each argument, of its shape"
    if "not linear" in pair.reason:
        return (
            f"{pair.reason}: make `{name}` linear in its cotangent; twice the cotangent must give "
            "twice the gradient"
        )
    if "wrong for" in pair.reason or "wrong where" in pair.reason:
        return f"{pair.reason}: make `{name}` independent of it"
    if "when the program ran" in pair.reason:
        return f"`{name}` {pair.reason}: let it read only the values that its own call saved"
    if pair.output.startswith("adj_"):
        return (
            f"`{name}` is differentiated itself, and its derivative is wrong: values that it "
            "computes without history (no_grad, detach, tensors kept as ctx.x) count as constant; "
            "mark it with once_differentiable if it needs no derivative"
        )
    told = f"`{name}` is not the derivative of the function"
    e = pair.worst
    if e is not None and e.oracle and abs(e.ad + e.oracle) <= 1e-4 * abs(e.oracle):
        return f"{told}: the sign of this entry is wrong"
    return (
        f"{told}: derive it again; if the difference is intended, mark the line with "
        "`# adtool: ignore[G001]`"
    )


def _raises(hit: Hit) -> bool:
    """Whether a gradient raises an error in place of numbers."""
    return " raises " in hit.pair.reason


def _elsewhere(hit: Hit) -> bool:
    """Whether the gradient is cut and not wrong: G004 says where."""
    by = hit.launch.by_hand
    missing = by is not None and hit.pair.input in by.missing
    return missing or bool(hit.launch.detached) or hit.launch.stopped


def _place(hit: Hit) -> Span:
    peer = peers.wrong_peer(hit.launch)
    if peer is not None:
        return peers.place_of(hit.launch, peer)
    if hit.launch.blame:
        return hit.launch.blame[0].span
    culprits = hit.launch.culprits
    return culprits[0][1] if culprits else hit.launch.span
