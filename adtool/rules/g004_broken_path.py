"""G004: the loss depends on an input, but no gradient, or only a part of it, reaches the input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.counts import more
from adtool.fixes.creations import requires_grad
from adtool.fixes.recording import into_block
from adtool.report import Finding, Fix
from adtool.rules.base import Manual, Rule, grouped, mark_of, named, seen

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import Broken, Cause, WholeResult
    from engine.diagnostics import Span

KINDS = ("no gradient", "outside", "no backward")


class BrokenPath(Rule):
    """Fires for tapes through which less than the whole gradient flows, once a place."""

    code = "G004"
    name = "broken-path"
    severity = "error"
    otherwise = "warning if the program uses a gradient that an input does not have"
    manual = Manual(
        what="""
            A result of the tape depends on an array with requires_grad=True, but on the way
            back the gradient, or a part of it, ends before it reaches the array. The finding
            names the place. It can be an array without requires_grad, a kernel without a
            backward pass, a native function without an adjoint, a conversion to an integer, or
            a tape that never ran backward. It can also be a value that was written outside of
            the tape: by the host, by a launch outside of the `with` block, or by a captured
            graph or recorded command that is launched inside of it.

            If several arrays in a row have no requires_grad, each computed from the one before,
            the finding names the launch that reads the first of them, and a note names the
            others. The backward pass ends at the last of them: `adtool trace`, and
            `adtool graph --no-check`, name that launch.

            If the host reads an array while the tape records, adtool runs the script again with
            moved inputs to see whether the loss depends on it. Values that were computed before
            the `with` block from an input of the tape may be intended as constants (a rest
            length, a target). adtool does not report them if the input also gets a gradient by
            another way.

            The finding is a warning if the program prints or computes with the gradient of an
            input of the tape that has no requires_grad (`k.grad` is None), and does not test
            for None there.

            For handwritten gradients of other frameworks: the gradient is None, or zero for all
            values, for an input on which the results depend.
            """,
        why="""
            The parameter gets a gradient of zero, or only a part of its gradient, and no error
            is raised. An optimizer does not move it, or moves it to the wrong place.

            If the tape computes the part that is lost, the check of the whole tape fails, too
            (`end to end: fail`), often with a relative error of 1 or more. If the path leaves
            the tape (by the host, or by a launch outside of the block), it passes: the gradient
            of what the tape has is right.
            """,
        example="""
            y = engine.zeros(n, dtype=float)          # requires_grad is missing
            with engine.Tape() as tape:
                engine.launch(f, dim=n, inputs=[x], outputs=[y])
                engine.launch(g, dim=n, inputs=[y], outputs=[loss])

            error[G004]: no gradient flows to `y` of kernel `g` in launch 1 of tape 0: `y`
            depends on the inputs of the tape, but it has no requires_grad
            """,
        todo="""
            Make every float array between the parameters and the loss with requires_grad=True,
            and compute it on the tape. If the gradient should stop, say so:
            engine.stop_gradient(a) is a constant to everything that reads it.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a place."""
        found = _causes(session)
        said = {(tape, cause.site) for tape, cause in found}
        for group in grouped(found, lambda f: _key(f[1])):
            tape, cause = group[0]
            where = f"tape {tape}"
            if len(group) > 1:
                where += f" (and in {more(len(group) - 1, 'tape')})"
            message, help = _said(cause, where, _made(session, cause, tape))
            if _of_a_peer(session, tape):  # it has no stop_gradient, and its own configuration
                help = help.replace(_MEANT, "").replace("engine.config", "its config")
            fix = None
            if cause.kind == "no gradient":
                fix = requires_grad(_makers(session, {t for t, _ in group}, cause))
            yield self.finding(
                message, help, span=cause.site or cause.span, tape=tape,
                launch=cause.launch, kernel=cause.kernel if cause.launch >= 0 else "",
                count=len(group), fix=fix, notes=_further(cause),
            )  # fmt: skip
        yield from self._missing(session)
        yield from self._read_back(session, said)
        yield from self._native(session)
        yield from self._ways(session, said)
        yield from self._asked(session)

    def _missing(self, session: Session) -> Iterator[Finding]:
        """Gradients that functions of other frameworks leave out: None, or zeros."""
        found = [
            (t.tape, x, name) for t in session.tapes for x in t.launches
            if x.by_hand is not None for name in x.by_hand.missing
        ]  # fmt: skip
        for group in grouped(found, lambda f: (f[1].kernel, f[1].span, f[2])):
            tape, launch, name = group[0]
            hand = launch.by_hand
            written = "" if hand is None else hand.gradient
            what = "zeros" if hand is not None and name in hand.zeros else "None"
            yield self.finding(
                f"no gradient flows to `{name}` through {named(launch)} "
                f"{seen(len(group), tape, launch.index, 'call')}: `{written}` gives {what} for it, "
                "and the result depends on it",
                f"give the derivative by `{name}`, or detach it before the call if the gradient "
                "should stop there",
                span=launch.span, tape=tape, launch=launch.index, kernel=launch.kernel,
                count=len(group), near=(launch.site,),
            )  # fmt: skip

    def _read_back(self, session: Session, said: set[tuple[int, Span | None]]) -> Iterator[Finding]:
        """Kernels that read what they wrote to an array without a gradient."""
        cut = [
            (t.tape, x) for t in session.tapes for x in t.launches
            if x.detached and (t.tape, x.site) not in said
        ]  # fmt: skip
        for group in grouped(cut, lambda x: (x[1].kernel, x[1].site, x[1].detached)):
            tape, launch = group[0]
            names = " and ".join(f"`{name}`" for name in launch.detached)
            made = {f.argument: f.at for t in session.tapes if t.tape == tape
                    for f in t.facts_of("Made") if f.site == launch.site}  # fmt: skip
            known = all(name in made for name in launch.detached)
            fix = requires_grad([made[name] for name in launch.detached]) if known else None
            yield self.finding(
                f"no gradient flows through {names}, which kernel `{launch.kernel}` writes and "
                f"reads back {seen(len(group), tape, launch.index)}: it has no requires_grad",
                "create that array with requires_grad=True, before the launches are recorded"
                f"{_MEANT}", span=launch.site or launch.span, tape=tape, launch=launch.index,
                kernel=launch.kernel, count=len(group), fix=fix,
            )  # fmt: skip

    def _asked(self, session: Session) -> Iterator[Finding]:
        """Gradients that the program reads, of inputs of a tape that have none."""
        found = [(t.tape, u) for t in session.tapes for u in t.facts_of("Ungraded")]
        for tape, u in found:
            made = "" if u.made is None else f" (made at {u.made})"
            yield self.finding(
                f"the program reads `{u.text}`, but `{u.array}`{made} has no requires_grad, so it "
                f"has no gradient: it is an input (argument `{u.argument}`) of kernel `{u.kernel}` "
                f"in launch {u.launch} of tape {tape}",
                f"create `{u.array}` with requires_grad=True, before the launches are recorded; if "
                f"it is a constant, do not read `{u.text}`",
                span=u.site, tape=tape, launch=u.launch, kernel=u.kernel, severity="warning",
                near=(u.made,), fix=None if u.made is None else requires_grad([u.made]),
            )  # fmt: skip

    def _native(self, session: Session) -> Iterator[Finding]:
        """Native functions without an adjoint, through which a result was seen to depend."""
        ends = [
            (t.tape, x) for t in session.tapes for x in t.launches
            if x.stopped and any(p.verdict == "fail" for p in x.pairs)
        ]  # fmt: skip
        for group in grouped(ends, lambda x: x[1].stops[0]):
            tape, launch = group[0]
            name, span = launch.stops[0]
            yield self.finding(
                f"no gradient flows through `{name}` of kernel `{launch.kernel}` "
                f"{seen(len(group), tape, launch.index)}: it is a native function without an "
                "`adj_snippet`", f"give it an `adj_snippet`, or a `@func_grad`{_MEANT}", span=span,
                tape=tape, launch=launch.index, kernel=launch.kernel, count=len(group),
            )  # fmt: skip

    def _ways(self, session: Session, said: set[tuple[int, Span | None]]) -> Iterator[Finding]:
        """Ways that left the tape, seen while the program ran."""
        ways = [
            (t.tape, b) for t in session.tapes for b in t.facts_of("Broken")
            if (t.tape, b.site) not in said and not _same(t.whole, b)
        ]  # fmt: skip
        for group in grouped(ways, lambda x: (x[1].kind, x[1].name, x[1].site)):
            tape, way = group[0]
            many = f" (and on {more(len(group) - 1, 'tape')})" if len(group) > 1 else ""
            yield self.finding(
                f"the loss depends on {_inputs(way)} through {_way(way)}, on tape {tape}{many}, "
                f"but no gradient flows along this path{_PART if way.partial else ''}",
                _advice(way) + _MEANT, span=way.site, tape=tape, launch=-1,
                kernel=way.name if way.kind in _RUN else "", count=len(group),
                arrays=way.inputs, near=(way.to,), fix=_cure(way),
            )  # fmt: skip


def _causes(session: Session) -> list[tuple[int, Cause]]:
    """Tapes whose gradient is broken, and why."""
    return [
        (t.tape, t.whole.cause) for t in session.tapes
        if t.whole is not None and t.whole.cause is not None
        and t.whole.verdict in ("fail", "nan") and t.whole.cause.kind in KINDS
    ]  # fmt: skip


def _key(c: Cause) -> tuple[object, ...]:
    """What causes have in common that are one finding."""
    return c.kind, c.kernel, c.argument, c.site


def unheard(session: Session) -> dict[tuple[int, int], str]:
    """Tapes and launches that no gradient reaches because of a finding here, and its mark."""
    out: dict[tuple[int, int], str] = {}
    first: dict[object, str] = {}
    for tape, cause in _causes(session):
        mark = first.setdefault(_key(cause), mark_of(BrokenPath.code, tape, cause.launch))
        out |= {(tape, launch): mark for launch in cause.silent}
    return out


def _of_a_peer(session: Session, tape: int) -> bool:
    """Whether another package recorded the tape."""
    return any(x.peer is not None for t in session.tapes if t.tape == tape for x in t.launches)


def _same(whole: WholeResult | None, way: Broken) -> bool:
    """Whether a copy goes into the array of which the whole tape says that it has no gradient."""
    cause = None if whole is None or whole.verdict not in ("fail", "nan") else whole.cause
    if cause is None or cause.kind != "no gradient" or way.kind != "copy":
        return False
    name = re.match(r"[\w.]+", cause.variable or cause.argument)
    return name is not None and bool(re.search(rf"(?<![\w.]){re.escape(name[0])}\b", way.name))


_PART = ": the gradient lacks this part"
_MEANT = "; if the gradient should stop there, pass engine.stop_gradient(...) of it"


_RUN = ("launch", "graph", "command")  # kinds of ways that are launches of kernels
_DO = {
    "launch": "launch it inside of the tape's `with` block",
    "copy": "copy from array to array, both with requires_grad=True, inside of the `with` block",
    "host": "compute it by kernels, inside of the `with` block",
    "clone": "remove requires_grad=False",
    "command": "tapes do not record launches of recorded commands (record_cmd): launch the "
    "kernel in the block",
    "graph": "a tape does not record launches of a captured graph: launch the kernels in the "
    "block, or also capture the block of the tape and its backward pass",
    "tape": "run that tape backward afterwards, from the gradient that this pass made: ",
    "cast": "replace it with a function that has a slope (a smooth step, an interpolation), or "
    "write a gradient by hand (@func_grad)",
}


def _advice(b: Broken) -> str:
    if b.kind != "tape":
        return _DO[b.kind]
    a = b.name or "a"
    return f"{_DO[b.kind]}tape.backward(grads={{{a}: {a}.grad}})"


def _inputs(b: Broken) -> str:
    names = [f"`{name}`" for name in b.inputs]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names) or (
        "an input of the tape"
    )  # fmt: skip


def _way(b: Broken) -> str:
    if b.kind == "launch":
        return f"kernel `{b.name}`, which was launched outside of the tape"
    if b.kind in ("graph", "command"):
        what = f"kernel `{b.name}`, which" if b.name else "a copy that"
        by = "captured graph" if b.kind == "graph" else "recorded command"
        return f"{what} a {by} runs here"
    if b.kind == "host":
        back = f" and comes back at {b.to}" if b.to is not None else ""
        return f"the host (it is read here{back})"
    if b.kind == "tape":
        what = f"`{b.name}`" if b.name else "an array"
        return f"{what}, which another tape computes that never runs backward"
    if b.kind == "cast":
        what = {"cast": "a conversion to an integer", "": "integers"}.get(b.name, f"`{b.name}`")
        return f"{what}, which has no derivative"
    return f"`{b.name}`" if b.name else "a copy"


def _made(session: Session, c: Cause, tape: int) -> str:
    """Where the array was made that has no requires_grad, if that is known."""
    if c.kind != "no gradient":
        return ""
    facts = (f for t in session.tapes if t.tape == tape for f in t.facts_of("Made"))
    at = next((f.at for f in facts if (f.argument, f.site) == (c.argument, c.site)), None)
    return "" if at is None else f" (made at {at})"


def _further(c: Cause, limit: int = 6) -> tuple[str, ...]:
    """A note of the arrays that come after the first of a chain, and have no gradient either."""
    names = [f"`{known or name}` at {at}" for name, known, at in c.further if at is not None]
    if not names:
        return ()
    rest = f" and {more(len(names) - limit, 'array')}" if len(names) > limit else ""
    return (f"these also need requires_grad: {', '.join(names[:limit])}{rest}",)


def _makers(session: Session, tapes: set[int], c: Cause) -> list[Span]:
    """Where the arrays of the chain were made that have no requires_grad, on all these tapes."""
    chain = {(c.argument, c.site), *((name, at) for name, _, at in c.further)}
    return [
        f.at for t in session.tapes if t.tape in tapes for f in t.facts_of("Made")
        if (f.argument, f.site) in chain
    ]  # fmt: skip


def _cure(way: Broken) -> Fix | None:
    if way.kind == "launch":
        return into_block(way.site)
    return requires_grad([way.site]) if way.kind == "clone" and way.site is not None else None


def _said(c: Cause, tape: str, made: str) -> tuple[str, str]:
    """What is wrong, and what to do about it. tape: on which ones. made: where its array was."""
    where = f"kernel `{c.kernel}` in launch {c.launch}" if c.launch >= 0 else f"`{c.kernel}`"
    where += f" of {tape}"
    if c.kind == "no backward":
        return (
            f"no gradient flows through {where}, on which the result depends: it has "
            "enable_backward=False",
            "enable its backward pass: enable_backward=True (for the kernel, its module, or "
            "engine.config)",
        )
    named = c.variable if c.variable and c.variable != c.argument else ""
    what = f"`{named or c.argument}`" if named or c.argument else "the result"
    of = f" (argument `{c.argument}`)" if named else ""
    if c.kind == "no gradient":
        return (
            f"no gradient flows to {what}{of} of {where}: {what}{made} depends on the inputs of "
            "the tape, but it has no requires_grad",
            f"create that array with requires_grad=True, before the launches are recorded{_MEANT}",
        )
    return (
        f"no operation on the tape wrote the values that {where} read from {what}{of}, although "
        "the tape computes that array",
        f"write it by a kernel or by `copy` inside of the tape's `with` block{_MEANT}",
    )
