"""G009: two threads of one launch access one element, and one of them writes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from adtool.atomics import atomic_updates
from adtool.counts import counted
from adtool.fixes.updates import atomic
from adtool.report import Finding, Fix, Severity
from adtool.rules.base import Manual, Rule, grouped
from adtool.rules.g008_out_of_bounds import place, where

if TYPE_CHECKING:
    from adtool.faults import Seen
    from adtool.session import Session
    from engine import Fault


class DataRace(Rule):
    """Fires for elements that a thread writes while another one reads or writes them."""

    code = "G009"
    name = "data-race"
    severity = "error"
    otherwise = "note if the race is harmless or was not looked for; warning if it could not be"
    manual = Manual(
        what="""
            One thread of a launch wrote an element, without an atomic update, that another
            thread read or wrote. The result depends on the order in which the threads run.
            adtool compares single elements, with components and views. Atomic updates of one
            element by several threads are no race, and `x[i] += v` is an atomic update. Reading
            an element that other threads of the launch add to is a race.

            The finding is only a note if threads stored separate values that happened to be
            equal, or read an element before an atomic minimum or maximum. Stores of one value
            that is the same for all threads (a flag) are no finding.

            adtool skips launches that it can prove free of races. Of the other launches it
            looks at the first one of each kernel and its arguments; if floats decide which
            elements a thread accesses, it looks at some later ones too. It does not look at
            handwritten adjoints: on the CPU they run in order.
            """,
        why="""
            On the CPU, threads run in order, so the results are the same each time; on a GPU
            they are not. The gradient follows the order that ran, if it can: the gradient of
            `y[0] = y[0] * x[i]` in all threads is exact on the CPU, and refused on GPUs. If all
            threads of a kernel store different values to one element, and no value depends on
            the old one, `backward()` refuses the gradient (E407). Under `adtool check` it
            continues, so that adtool can check the rest.
            """,
        example="""
            i = wp.tid()
            loss[0] = loss[0] + r[i] * r[i]

            error[G009]: threads 0 and 1 of kernel `sum_of_squares` meet in `loss[0]`: thread 0
            writes it, thread 1 reads it
            """,
        todo="""
            Add with `wp.atomic_add`, give each thread a separate element, or read from one
            array and write to another. If one value should win, choose it with `wp.atomic_max`
            or `wp.atomic_cas`.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding for each array and pair of lines; the worst that is known of them."""
        races = [s for s in session.faults if s.fault.kind in _SEVERITY]
        for group in grouped(races, _key):
            seen = min(group, key=_rank)
            found = self._finding(seen) if seen.fault.kind not in _GAPS else self._gap(seen)
            yield replace(found, severity=_SEVERITY[seen.fault.kind])

    def _gap(self, seen: Seen) -> Finding:
        fault = seen.fault
        (what, why), help = _GAPS[fault.kind]
        return self.finding(
            f"kernel `{fault.kernel}` was not checked for {what}{where(seen)}: {why}",
            help,
            span=fault.span, tape=seen.tape, launch=seen.index, kernel=fault.kernel,
            count=seen.count,
        )  # fmt: skip

    def _finding(self, seen: Seen) -> Finding:
        fault = seen.fault
        other, mine = fault.other_at, fault.at
        element = f"`{fault.element}`" if fault.index else f"an element of `{fault.name}`"
        first, second = _DOES[fault.other_access], _DOES[fault.access]
        what = f"thread {other} {first} it, thread {mine} {second} it"
        if fault.access == fault.other_access:
            what = f"both {first.removesuffix('s')} it"
        if fault.kind == "same":
            what += ", with separate values that are equal in this launch"
        at, span, also = fault.span, fault.other_span, f"thread {other} {first}"
        if fault.access == "atomic" and span is not None:  # the other one is to be changed
            at, span, also = span, at, f"thread {mine} {second}"
        notes = []
        if span is not None and span != at:
            notes.append(f"{also} it {place(span, fault)}, column {span.col}")
        if fault.count > 1:
            notes.append(f"{counted(fault.count, 'such meeting')} in the launch")
        return self.finding(
            f"threads {other} and {mine} of kernel `{fault.kernel}` meet in {element}: "
            f"{what}{where(seen, ' that were checked')}",
            _advice(fault),
            span=at, tape=seen.tape, launch=seen.index, kernel=fault.kernel,
            count=seen.count, notes=tuple(notes), fix=_cure(fault),
        )  # fmt: skip


def _advice(fault: Fault) -> str:
    reads = "load" in (fault.access, fault.other_access)
    spans = [s for s in (fault.span, fault.other_span) if s is not None]
    if reads and all(s.file == fault.span.file for s in spans):
        updates = atomic_updates(fault.span.file, [s.line for s in spans])
        if updates:
            written = " and ".join(f"`{u}`" for u in updates)
            return (
                f"write {written}: atomic updates (such as `wp.atomic_add` and `+=`) of one "
                "element by many threads are safe"
            )
    return _HELP[reads].format(fault.name)


def _cure(fault: Fault) -> Fix | None:
    spans = [s for s in (fault.span, fault.other_span) if s is not None]
    if "load" not in (fault.access, fault.other_access):
        return None
    if any(s.file != fault.span.file for s in spans):
        return None
    return atomic(fault.span.file, [s.line for s in spans])


_SEVERITY: dict[str, Severity] = {"race": "error", "mixed": "note", "same": "note",
                                   "unwatched": "note", "unseen": "warning"}  # fmt: skip
# What was not looked for and why, and the way out.
_GAPS = {
    "unwatched": (("races", "its arrays are too large"), "run the script on a smaller problem"),
    "unseen": (("races", "adtool looks for them on the CPU, and the kernel does not compile there"),
               "write native code that CPU compilers accept too"),
}  # fmt: skip
_HELP = {
    True: "read from one array and write to another, or split the work into two launches",
    False: (
        "use an atomic update such as `wp.atomic_add({0}, ...)`, or a separate element for each "
        "thread"
    ),
}
_DOES = {"load": "reads", "store": "writes", "atomic": "updates"}


def _key(seen: Seen) -> object:
    f = seen.fault
    # A thread's load and store of one element are one race, whichever is seen first; so is what
    # one line has with several atomic updates.
    both = (f.access, f.span), (f.other_access, f.other_span or f.span)
    alike = f.access == f.other_access
    lines = frozenset(s.line for access, s in both if alike or access != "atomic")
    return f.kernel, f.name, lines


def _rank(seen: Seen) -> tuple[int, bool]:
    """The worst first; of equal ones, those that may have a fix."""
    f = seen.fault
    return list(_SEVERITY).index(f.kind), "load" not in (f.access, f.other_access)
