"""G003: an array was written after it was read on the tape."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from adtool.counts import counted, more
from adtool.report import Finding, Severity
from adtool.rules.base import Manual, Rule, grouped, named, seen
from adtool.rules.peers import peer_of

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import Overwritten, TapeResult

_SEVERITY: dict[str, Severity] = {
    "wrong": "error", "outside": "error", "restored": "warning", "within": "warning",
    "unneeded": "note",
}  # fmt: skip


class OverwrittenArray(Rule):
    """Fires for reads whose values were gone at the backward pass, once a read and write."""

    code = "G003"
    name = "overwritten-array"
    severity = "error"
    otherwise = "warning if the engine restored the value; note if no adjoint needs the value"
    manual = Manual(
        what="""
            A launch read an array, and an operation wrote to the same elements before the
            backward pass, which needs the values that the launch read. The severity depends on
            the effect:

            error: the gradient is wrong. This happens under engine.config.overwrites =
            "present", and when an operation outside of the tape writes between recording and
            the first backward pass.

            warning: the engine saved and restored the values, so the gradient is right. This
            costs memory, and other engines would give a wrong gradient.

            note: no gradient depends on the lost values.

            A launch that overwrites its own input is a warning or a note, also under "present":
            the engine restores the values that the launch itself overwrote. Accumulation (+=,
            atomic_add, x[i] = x[i] + y) is not an overwrite.

            adtool does not guess whether a gradient depends on the lost values. At the
            program's own backward pass, it runs the adjoint of the launch on copies of the
            gradients, with and without the lost values. For a tape that never runs backward, it
            does so when the program ends. The finding names the elements that the launch read,
            and the first write to them.

            For handwritten gradients of other frameworks, adtool reports: an argument that a
            function changes in place without ctx.mark_dirty; a value that was kept for the
            backward (ctx.y = y) and changed before it ran; a backward that changes its incoming
            gradient, or a saved tensor.
            """,
        why="""
            The gradient mixes values of two times. A check of single launches cannot see this.
            The loss often still goes down, slowly or to the wrong place.
            """,
        example="""
            engine.config.overwrites = "present"
            for step in range(10):
                engine.launch(forces, dim=n, inputs=[x], outputs=[force])   # one array for all
                engine.launch(move, dim=n, inputs=[x, force, mass], outputs=[x_next])
                x = x_next

            error[G003]: `force` (argument `force` of kernel `move` in launch 1 of tape 0) was
            overwritten by kernel `forces` in launch 2 before the backward pass read it
            """,
        todo="""
            Give each step a separate array, or leave engine.config.overwrites at "restore". If
            the write is outside of the tape, run the backward pass before it, or record the
            tape again after it.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a read, a write and an effect."""
        found = [(tape.tape, f) for tape in session.tapes for f in _overwritten(tape)]
        for group in grouped(
            found, lambda x: (x[1].kind, x[1].kernel, x[1].argument, x[1].site, x[1].by.site,
                              x[1].by.name)
        ):  # fmt: skip
            tape, f = group[0]
            launches = sum(x.launches for _, x in group)
            nbytes = sum(x.nbytes for _, x in group)
            many = f" (and {more(launches - 1, 'launch')})" if launches > 1 else ""
            yield self.finding(
                f"{_what(f)} in launch {f.launch} of tape {tape}{many} {_happened(f)}: "
                f"{_elements(f)}; {_effect(f, nbytes)}",
                _help(session, tape, f), span=f.by.site or f.site, tape=tape, launch=f.launch,
                kernel=f.kernel, count=launches, notes=_notes(f), severity=_SEVERITY[f.kind],
                idle=f.kind == "unneeded",
            )  # fmt: skip
        yield from self._functions(session)
        yield from self._in_place(session)

    def _in_place(self, session: Session) -> Iterator[Finding]:
        """What functions of other frameworks, or their gradients, change in place, once each."""
        found = [
            (t.tape, x, c) for t in session.tapes for x in t.launches
            if x.by_hand is not None for c in x.by_hand.changes
        ]  # fmt: skip
        for group in grouped(found, lambda f: (f[1].kernel, f[1].span, f[2].kind, f[2].name)):
            tape, launch, change = group[0]
            written = launch.by_hand.gradient if launch.by_hand is not None else ""
            where = seen(len(group), tape, launch.index, "call")
            message, help = _IN_PLACE[change.kind]
            words = {"name": change.name, "what": named(launch), "written": written}
            yield self.finding(
                f"{message.format(**words)} ({where})", help.format(**words),
                span=change.span or launch.span, tape=tape, launch=launch.index,
                kernel=launch.kernel, count=len(group), near=(launch.site,),
                severity="error" if change.wrong else "warning",
            )  # fmt: skip

    def _functions(self, session: Session) -> Iterator[Finding]:
        """Wrong backward functions of the user's that read what was overwritten, once each."""
        read = [
            (tape.tape, f.lost) for tape in session.tapes
            for c in tape.facts_of("FunctionCheck") if c.wrong
            for f in c.functions if f.lost is not None
        ]  # fmt: skip
        for group in grouped(read, lambda x: (x[1].kernel, x[1].site, x[1].by.site)):
            tape, f = group[0]
            what = f"`{f.variable}`" if f.variable else "an array"
            yield self.finding(
                f"{what}, which the function `{f.kernel}`, given to Tape.record_func, reads in the "
                f"backward pass of tape {tape}, was overwritten {_by(f)} before that: "
                f"{_elements(f)}; the gradient is wrong because of it",
                _HELP[f.kind], span=f.by.site or f.site, tape=tape, launch=-1, count=len(group),
                near=(f.site,),
                notes=() if f.site is None else (f"the function was recorded at {f.site}",),
            )  # fmt: skip


# Of functions of other frameworks, by what is changed in place: what is wrong, and what to do.
_IN_PLACE = {
    "input": (
        "{what} changes its argument `{name}` in place without ctx.mark_dirty: gradients through "
        "the old values are wrong",
        "call ctx.mark_dirty({name}) and return it, or work on a copy",
    ),
    "saved": (
        "`{name}`, which {what} kept for its backward, was changed in place before the backward "
        "ran, so the gradient is wrong",
        "save it with ctx.save_for_backward, which detects such changes, or save a copy",
    ),
    "cotangent": (
        "`{written}` changes its incoming gradient in place: other functions that share it get a "
        "wrong gradient",
        "work on a copy of it: call `.clone()` on it first",
    ),
    "kept": (
        "`{written}` changes something that it kept, such as `ctx.y`, or gradients that it adds "
        "up: a second run on the same graph gives another gradient",
        "work on a copy, or clear the gradients that it adds up: tape.zero()",
    ),
    "leaf": (
        "`{written}` changes the gradient of the argument `{name}`, and PyTorch then adds the "
        "returned gradient: it counts twice",
        "use separate memory: for kernels, from_torch({name}.detach(), requires_grad=True)",
    ),
}

_HELP = {
    "wrong": 'give each operation a separate array, or set engine.config.overwrites = "restore"',
    "outside": "run the backward pass before that, or record the tape again after it",
    "restored": "give each operation a separate array if memory or other engines matter",
    "within": "write the results to another array if memory or other engines matter",
    "unneeded": "no action is needed",
}


def _help(session: Session, tape: int, f: Overwritten) -> str:
    peer = next((peer_of(t) for t in session.tapes if t.tape == tape), None)
    if peer is None or f.kind != "wrong":
        return _HELP[f.kind]
    return (
        f"{peer.name} reads the values at the time of the pass: give each operation a separate "
        f"array, or run with `--alias {peer.name.lower()} --overwrites restore`, on the engine"
    )


def _overwritten(tape: TapeResult) -> Iterator[Overwritten]:
    """What was seen; or what the check of the whole found, where no backward pass was run."""
    overwritten: tuple[Overwritten, ...] = tape.facts_of("Overwritten")
    yield from overwritten
    cause = None if tape.whole is None else tape.whole.cause
    seen = any(f.kind in ("wrong", "outside") for f in overwritten)
    if cause is not None and cause.kind == "overwrite" and not seen:
        from engine.autograd import Overwritten, Write

        by = Write(cause.other, cause.other_launch, cause.other_site)
        yield Overwritten(
            "wrong" if cause.other else "outside", cause.launch, cause.kernel, cause.argument,
            cause.variable, cause.site, by,
        )  # fmt: skip


def _what(f: Overwritten) -> str:
    if f.variable and f.variable != f.argument:
        return f"`{f.variable}` (argument `{f.argument}` of kernel `{f.kernel}`)"
    return f"`{f.argument}` of kernel `{f.kernel}`"


def _gradients(f: Overwritten) -> Iterator[str]:
    """The arrays whose gradients suffer, as the user calls them."""
    for name, variable in zip_longest(f.gradients, f.passed[: len(f.gradients)], fillvalue=""):
        known = variable and variable != name
        yield f"`{variable}` (argument `{name}`)" if known else f"`{name}`"


def _happened(f: Overwritten) -> str:
    if _by_itself(f):
        return "was overwritten by the launch that had read it"
    then = "afterwards" if f.kind in ("restored", "unneeded") else "before the backward pass"
    return f"was overwritten {_by(f)} {then}"


def _by_itself(f: Overwritten) -> bool:
    """Whether the launch overwrote what it had read."""
    return f.kind == "within" or (
        f.kind == "unneeded" and f.by.tape < 0 and f.launch == f.by.launch
    )


def _by(f: Overwritten) -> str:
    w, off = f.by, " outside of the tape" if f.kind == "outside" else ""
    if w.tape >= 0:
        what = f"kernel `{w.name}` in launch {w.launch}" if w.launch >= 0 else f"`{w.name}`"
        return f"by {what} of tape {w.tape}"
    if w.launch >= 0:
        return f"by kernel `{w.name}` in launch {w.launch}"
    if w.name:
        return f"by `{w.name}`{off}"
    if w.site is not None:
        return "outside of the tape"
    return "by a write that the engine did not see, such as native code or a write to a NumPy view,"


def _elements(f: Overwritten) -> str:
    if not f.count:
        return "its values are lost"
    numbers = counted(f.count, "number")
    if f.first == f.last:
        return f"{numbers}, at {_index(f.first)}"
    return f"{numbers}, from {_index(f.first)} to {_index(f.last)}"


def _index(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]"


def _effect(f: Overwritten, nbytes: int) -> str:
    if f.kind == "unneeded":
        return "no gradient depends on the lost values"
    names = ", ".join(_gradients(f))
    if f.kind in ("wrong", "outside"):
        return f"the gradient{f' by {names}' if names else ''} is wrong because of it"
    return (
        f"the gradient by {names} needs them: the tape saved {_bytes(nbytes)}, which its backward "
        "pass reads instead; other engines (Warp) would read the new values"
    )


def _bytes(n: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return counted(n, "byte")


def _notes(f: Overwritten) -> tuple[str, ...]:
    if f.site is None or f.by.site is None or _by_itself(f):
        return ()
    return (f"it was read by kernel `{f.kernel}` at {f.site}",)
